"""What is known of each value of a graph: element type, shape, where it comes from, and its tensor where it is a constant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from qgen.importer.bundle import Dim, Dims, Source


@dataclass(frozen=True, slots=True)
class Value:
    """`elem_type` is a number of `TensorProto.DataType`, 0 where it is not known or the value is no tensor."""

    elem_type: int = 0
    dims: Dims = None
    source: Source = "value"
    tensor: TensorProto | None = None
    type: TypeProto | None = None
    is_default: bool = False
    """Whether the tensor is but the default of an input, whose caller may give another."""


UNKNOWN: Final = Value()


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that nodes of one graph can name: its own, then those of the graphs around it."""

    values: Mapping[str, Value] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, name: str) -> Value:
        """Return what is known of the value `name`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return UNKNOWN


def make_scope(graph: GraphProto, inferred: GraphProto, outer: Scope | None = None) -> Scope:
    """Return the scope of `graph`; `inferred` is the same graph with the types that inference found."""
    values: dict[str, Value] = {}
    for info in (*graph.value_info, *graph.output, *inferred.value_info, *inferred.output):
        _add(values, info, "value")
    for info in (*graph.input, *inferred.input):
        _add(values, info, "input")
    inputs = {info.name for info in graph.input}
    for tensor in graph.initializer:
        values[tensor.name] = replace(_of_tensor(tensor, "initializer"), is_default=tensor.name in inputs)
    for sparse in graph.sparse_initializer:
        values[sparse.values.name] = Value(sparse.values.data_type, tuple(sparse.dims), "initializer")
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in {"", "ai.onnx"} and node.output:
            values[node.output[0]] = _of_constant(node, values.get(node.output[0], UNKNOWN))
    return Scope(values, outer)


def function_scope(nodes: Iterable[NodeProto], inputs: Iterable[str]) -> Scope:
    """Return the scope of a function that nothing calls: its inputs and constants are all there is to know."""
    values = {name: Value(source="input") for name in inputs}
    values |= {node.output[0]: _of_constant(node, UNKNOWN) for node in nodes if node.op_type == "Constant" and node.output}
    return Scope(values)


def _add(values: dict[str, Value], info: ValueInfoProto, source: Source) -> None:
    """Add what a declaration says, unless it says less than one before it."""
    if not info.type.HasField("tensor_type"):
        values.setdefault(info.name, Value(source=source))
        return
    tensor = info.type.tensor_type
    dims = (
        tuple(_dim(dim.WhichOneof("value"), dim.dim_value, dim.dim_param) for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    )
    before = values.get(info.name, UNKNOWN)
    if dims is None and before.dims is not None and before.elem_type == tensor.elem_type:
        return
    values[info.name] = Value(tensor.elem_type, dims, source, None, info.type)


def _dim(kind: str | None, value: int, param: str) -> Dim:
    return value if kind == "dim_value" else param or None


def _of_tensor(tensor: TensorProto, source: Source) -> Value:
    type_ = TypeProto()
    type_.tensor_type.elem_type = tensor.data_type
    type_.tensor_type.shape.SetInParent()
    for dim in tensor.dims:
        type_.tensor_type.shape.dim.add(dim_value=dim)
    return Value(tensor.data_type, tuple(tensor.dims), source, tensor, type_)


def _of_constant(node: NodeProto, inferred: Value) -> Value:
    """Return the value of a Constant node, by its one attribute."""
    for attribute in node.attribute:
        match attribute.name:
            case "value" if attribute.type == AttributeProto.TENSOR:
                return _of_tensor(attribute.t, "constant")
            case "value_float":
                return _of_tensor(TensorProto(data_type=TensorProto.FLOAT, float_data=[attribute.f]), "constant")
            case "value_int":
                return Value(TensorProto.INT64, (), "constant")
            case "value_floats":
                floats = attribute.floats
                return _of_tensor(TensorProto(data_type=TensorProto.FLOAT, dims=[len(floats)], float_data=floats), "constant")
            case "value_ints":
                return Value(TensorProto.INT64, (len(attribute.ints),), "constant")
            case _:
                pass
    return Value(inferred.elem_type, inferred.dims, "constant", None, inferred.type)
