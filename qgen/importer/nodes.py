"""One node to the request for its kernel, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from onnx import AttributeProto, NodeProto, TensorProto

from qgen.dtypes import BY_ONNX, DTYPES, DType
from qgen.errors import QgenError
from qgen.importer.bundle import Dims, Source
from qgen.importer.functions import normal_domain
from qgen.importer.granularity import find_granularity
from qgen.importer.scopes import UNKNOWN, Value
from qgen.importer.tensors import has_data
from qgen.importer.text import printable
from qgen.importer.walk import Site
from qgen.profile import Profile
from qgen.request import Request, make_request
from qgen.signatures import Row, find_rows, signature_warnings
from qgen.signatures.tables import ATTRIBUTE_DEFAULTS, DEQUANTIZE, DYNAMIC, DYNAMIC_ROW, MICROSOFT, ONNX, QUANTIZE

_INT32: Final = DTYPES["int32"]
_UINT8: Final = DTYPES["uint8"]
_FLOAT32: Final = DTYPES["float32"]
_OPERANDS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    QUANTIZE: (("x", "y_scale", "y_zero_point"), ("y",)),
    DEQUANTIZE: (("x", "x_scale", "x_zero_point"), ("y",)),
    DYNAMIC: (("x",), ("y", "y_scale", "y_zero_point")),
}
"""The names of each operator's inputs and outputs."""
_EXPORTER: Final = "the exporter is at fault: `onnx.checker.check_model` says more"


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose for all kernels of a model."""

    shapes: str
    target: str
    numerics: str
    any_scale: bool
    """Whether kernels take any scales, those that the model fixes notwithstanding."""
    profile: Profile | None = None


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a node by the operator's names: x, y, scale, and zero point where there is one."""

    names: Mapping[str, str]
    values: Mapping[str, Value]

    @property
    def sources(self) -> dict[str, Source]:
        """Where each comes from."""
        return {operand: value.source for operand, value in self.values.items()}

    @property
    def shapes(self) -> dict[str, Dims]:
        """What is known of each shape."""
        return {operand: value.dims for operand, value in self.values.items()}


def find_operands(site: Site) -> Operands:
    """Return the operands of a node; those that it lacks are not there, and another operator than the three has none."""
    node = site.node
    inputs, outputs = _OPERANDS.get(node.op_type, ((), ()))
    given = (*zip(inputs, node.input, strict=False), *zip(outputs, node.output, strict=False))
    names = {operand: name for operand, name in given if name}
    return Operands(names, {operand: site.scope.find(name) for operand, name in names.items()})


def find_scale(operands: Operands) -> Value:
    """Return the scale that a node takes; of DynamicQuantizeLinear it is a result, and no value is known of that."""
    return next((operands.values[name] for name in ("y_scale", "x_scale") if name in operands.values), UNKNOWN)


def make_node_request(site: Site, operands: Operands, choices: Choices) -> tuple[Request, tuple[str, ...]]:
    """Return the request for a node's kernel and what to tell the user about it; raises `QgenError`, the reason, where there is none."""
    node, domain = site.node, normal_domain(site.node.domain)
    row = _find_row(site, domain)
    attributes = _read_attributes(node, row)
    if row is DYNAMIC_ROW:
        return _dynamic_request(site, operands, choices), ()
    x, scale, zero_point = _inputs(node, operands)
    y = operands.values.get("y", UNKNOWN)
    x_dtype, scale_dtype, y_dtype = _dtypes(row, attributes, (x, scale, zero_point, y))
    granularity, warnings = find_granularity(
        x.dims, scale.dims, attributes["axis"], attributes["block_size"], None if zero_point is None else zero_point.dims
    )
    precision = _optional_dtype(attributes["precision"], "precision")
    request = make_request(
        node.op_type,
        x=x_dtype,
        scale=scale_dtype,
        y=y_dtype,
        zero_point=zero_point is not None,
        granularity=granularity,
        shape=_baked(x.dims) if choices.shapes == "baked" else None,
        opset=site.opsets.get(domain, 1),
        precision=precision,
        saturate=bool(attributes["saturate"]),
        domain=domain,
        numerics=choices.numerics,
        target=choices.target,
    )
    warnings += signature_warnings(request.signature, granularity.kind)
    if zero_point is not None:
        warnings += _judge_zero_point(zero_point, y_dtype if row.is_quantize else x_dtype, is_quantize=row.is_quantize)
    return request, warnings


def _dynamic_request(site: Site, operands: Operands, choices: Choices) -> Request:
    """Return the request for a DynamicQuantizeLinear, whose types are given by its text."""
    node = site.node
    inputs, outputs = _OPERANDS[DYNAMIC]
    if len(node.input) != len(inputs) or len(node.output) != len(outputs) or len(operands.names) != len((*inputs, *outputs)):
        what = f"it has {len(node.input)} inputs and {len(node.output)} outputs, with names for {len(operands.names)}"
        raise QgenError("QG425", f"{what}: {DYNAMIC} takes x, and gives y, its scale and its zero point", hint=_EXPORTER)
    x = operands.values["x"]
    _agree(_UINT8, _known_dtype(operands.values["y"], "y"), "what the node computes", "y as the model declares it")
    _agree(_FLOAT32, _known_dtype(operands.values["y_scale"], "the scale"), "the scale", "the scale as the model declares it")
    _agree(_UINT8, _known_dtype(operands.values["y_zero_point"], "the zero point"), "the zero point", "that which the model declares")
    return make_request(
        DYNAMIC,
        x=_known_dtype(x, "x") or _FLOAT32,
        shape=_baked(x.dims) if choices.shapes == "baked" else None,
        opset=site.opsets[ONNX],
        numerics=choices.numerics,
        target=choices.target,
    )


def _find_row(site: Site, domain: str) -> Row:
    op = site.node.op_type
    rows = (DYNAMIC_ROW,) if (domain, op) == (ONNX, DYNAMIC) else find_rows(domain, op)
    if not rows:
        if domain == MICROSOFT:
            message = f"of com.microsoft's operators qgen compiles QuantizeLinear and DequantizeLinear, not {printable(op)}"
        else:
            message = f"qgen does not compile {printable(op)} of {printable(domain)}"
        raise QgenError("QG420", message, hint="the runtime's own kernel remains")
    if not site.is_called:
        message = "the node is in a function that nothing calls, so its operands have no types"
        raise QgenError("QG427", message, hint="remove the function, or call it")
    if domain == MICROSOFT:
        return rows[-1]
    if domain not in site.opsets:
        raise QgenError("QG426", f"the operators of {domain} are used but not imported", hint=_EXPORTER)
    opset = site.opsets[domain]
    return next((row for row in reversed(rows) if row.version <= opset), rows[0])


def _read_attributes(node: NodeProto, row: Row) -> dict[str, int]:
    """Return every attribute of the operator, with the default where it is not given; all of them are integers."""
    values = dict(ATTRIBUTE_DEFAULTS)
    seen: set[str] = set()
    for attribute in node.attribute:
        name = printable(attribute.name)
        if name not in row.attributes or name in seen:
            message = (
                f"the attribute `{name}` is given twice" if name in seen else f"{row.op} version {row.version} has no attribute `{name}`"
            )
            known = ", ".join(sorted(row.attributes)) or "none"
            raise QgenError("QG424", message, hint=f"its attributes are: {known}")
        # A writer by proto3 leaves a zero out, and one of the first version of the format the type.
        if attribute.type != AttributeProto.INT and not (attribute.type == AttributeProto.UNDEFINED and attribute.HasField("i")):
            raise QgenError("QG424", f"the attribute `{name}` is not an integer", hint=_EXPORTER)
        values[name] = attribute.i
        seen.add(name)
    return values


def _inputs(node: NodeProto, operands: Operands) -> tuple[Value, Value, Value | None]:
    prefix = "y" if node.op_type == QUANTIZE else "x"
    names = ("x", f"{prefix}_scale")
    missing = [name for name in names if name not in operands.values]
    if missing or len(node.input) > 3 or len(node.output) != 1 or "y" not in operands.names:
        what = f"the input `{missing[0]}` is missing" if missing else f"it has {len(node.input)} inputs and {len(node.output)} outputs"
        raise QgenError("QG425", f"{what}: {node.op_type} takes x, a scale and at most a zero point, and gives y", hint=_EXPORTER)
    x, scale = (operands.values[name] for name in names)
    return x, scale, operands.values.get(f"{prefix}_zero_point")


def _dtypes(row: Row, attributes: Mapping[str, int], values: tuple[Value, Value, Value | None, Value]) -> tuple[DType, DType, DType]:
    """Return the types of x, scale and y: as inferred, or as the operator ties one to another."""
    x, scale, zero_point, y = values
    zero_type = None if zero_point is None else _known_dtype(zero_point, "the zero point")
    scale_type = _known_dtype(scale, "the scale")
    x_type, y_type = _known_dtype(x, "x"), _known_dtype(y, "y")
    output = _optional_dtype(attributes["output_dtype"], "output_dtype")
    if row.is_quantize:
        x_type = x_type or (scale_type if row.scale_is_x else None)
        result = zero_type or output or (_UINT8 if zero_point is None else y_type)
        _agree(zero_type, output, "the zero point", "`output_dtype`")
    else:
        x_type = x_type or zero_type
        _agree(x_type, zero_type, "x", "the zero point")
        result = output or scale_type
    x_type, scale_type, result = _needed(x_type, "x"), _needed(scale_type, "the scale"), _needed(result, "y")
    _agree(result, y_type, "what the node computes", "y as the model declares it")
    return x_type, scale_type, result


def _agree(first: DType | None, second: DType | None, first_name: str, second_name: str) -> None:
    if first is not None and second is not None and first != second:
        raise QgenError("QG428", f"{first_name} is {first.name}, but {second_name} is {second.name}", hint="make the two the same type")


def _needed(dtype: DType | None, what: str) -> DType:
    if dtype is None:
        hint = "save the model with its inferred types: onnxruntime.tools.symbolic_shape_infer knows those of com.microsoft's operators"
        raise QgenError("QG421", f"the type of {what} is not known: inference does not reach it", hint=hint)
    return dtype


def _known_dtype(value: Value, what: str) -> DType | None:
    return _optional_dtype(value.elem_type, what)


def _optional_dtype(number: int, what: str) -> DType | None:
    """Return the dtype of a number of `TensorProto.DataType`, None for 0."""
    if number and number not in BY_ONNX:
        name = TensorProto.DataType.Name(number).lower() if number in TensorProto.DataType.values() else f"number {number}"
        raise QgenError("QG422", f"{what} has the type {name}, which no quantized tensor has", hint=_EXPORTER)
    return BY_ONNX.get(number)


def _baked(dims: Dims) -> tuple[int, ...] | None:
    """Return the shape where every dimension is known."""
    if dims is None:
        return None
    known = tuple(dim for dim in dims if isinstance(dim, int))
    return known if len(known) == len(dims) else None


def _judge_zero_point(value: Value, dtype: DType, *, is_quantize: bool) -> tuple[str, ...]:
    """Return what to tell of a zero point whose values are at hand (SEMANTICS 2.1, rows 11, 13 and 20); raises `QgenError` QG112."""
    tensor = value.tensor
    if tensor is None or not has_data(tensor):
        return ()
    codes = {code & dtype.mask for code in (*tensor.int32_data, *tensor.raw_data)}
    if dtype.is_float8:
        is_signed = dtype.format is not None and dtype.format.has_negative_zero
        if codes <= ({0x00, 0x80} if is_signed else {0x00}):
            return ()
        if is_quantize:
            return (f"the zero point of {dtype.name} is not zero, and takes no part in the result",)
        hint = "shift x before it is quantized: the operator has no zero point for float8"
        raise QgenError("QG112", f"the zero point of {dtype.name} is not zero, and is never subtracted", hint=hint)
    if dtype == _INT32 and any(codes):
        return ("the zero point of an int32 input should be 0 (ONNX); it is subtracted all the same, as ONNX Runtime does",)
    return ()
