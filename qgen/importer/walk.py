"""Every node that the importer has something to say about, wherever in the model it stands, with what is known around it.

Functions are walked once a call, so that each node of a body has the types of that call; inference, which costs, is done once for equal
calls. A function that nothing calls is walked once, without types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto

from qgen.errors import QgenError
from qgen.importer.functions import (
    DEEPEST,
    FunctionKey,
    all_nodes,
    call_key,
    function_place,
    functions_by_key,
    instantiate,
    normal_domain,
    reachable,
    subgraphs,
)
from qgen.importer.infer import infer_model
from qgen.importer.scopes import Scope, Value, function_scope, make_scope
from qgen.importer.tensors import has_data
from qgen.importer.text import printable
from qgen.signatures.tables import DEQUANTIZE, DYNAMIC, MICROSOFT, ONNX, QUANTIZE

_FUNCTION_IR: Final = 10
"""The version of the format that has functions with overloads and types."""
_INTEGERS: Final = frozenset({TensorProto.INT64, TensorProto.INT32})
_MOST_SHAPE_VALUES: Final = 1024
"""A constant integer argument of at most so many elements may be a shape: it goes into a function with the call."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node, its path (printable, unique), the values it can name, and the version of each operator domain there."""

    node: NodeProto
    path: str
    scope: Scope
    opsets: Mapping[str, int]
    is_called: bool = True


@dataclass(frozen=True, slots=True)
class _Around:
    """What a list of nodes lies in."""

    path: str
    opsets: Mapping[str, int]
    depth: int


@dataclass(slots=True)
class Walk:
    """The walk over one model; `warnings` has what it noticed, once it is over."""

    model: ModelProto
    functions: Mapping[FunctionKey, FunctionProto] = field(init=False)
    warnings: list[str] = field(default_factory=list)
    _bodies: dict[tuple[FunctionKey, bytes], tuple[GraphProto, GraphProto]] = field(default_factory=dict)
    _paths: set[str] = field(default_factory=set)
    _called: set[FunctionKey] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Index the functions."""
        self.functions = functions_by_key(self.model)

    def sites(self) -> Iterator[Site]:
        """Yield the sites: the main graph in its order, subgraphs and functions where they are used, then functions that are not."""
        inferred = self._infer(self.model, "the model")
        around = _Around("", _opsets(self.model.opset_import), 0)
        yield from self._graph(self.model.graph, inferred.graph, None, around)
        for key, function in self.functions.items():
            if key not in self._called:
                opsets = _opsets(function.opset_import)
                scope = function_scope(all_nodes(function.node), function.input)
                for index, node in enumerate(all_nodes(function.node)):
                    if self._is_listed(node):
                        path = f"{function_place(key)}/{printable(node.name) or f'#{index}'}"
                        yield Site(node, self._unique(path, index), scope, opsets, is_called=False)

    def _graph(self, graph: GraphProto, inferred: GraphProto, outer: Scope | None, around: _Around) -> Iterator[Site]:
        if around.depth > DEEPEST:
            message = f"functions and subgraphs lie within one another more than {DEEPEST} deep"
            raise QgenError("QG413", message, hint="inline functions with `onnx.inliner.inline_local_functions`", place=around.path)
        scope = make_scope(graph, inferred, outer)
        names = Counter(node.name for node in graph.node)
        for index, (node, twin) in enumerate(zip(graph.node, inferred.node, strict=True)):
            name = printable(node.name)
            path = around.path + (name if name and names[node.name] == 1 else f"{name}#{index}")
            if self._is_listed(node):
                yield Site(node, self._unique(path, index), scope, around.opsets)
            elif (key := call_key(node)) in self.functions:
                self._called.add(key)
                body, typed = self._body(key, node, scope)
                inside = _Around(f"{path}/{function_place(key)}/", _opsets(self.functions[key].opset_import), around.depth + 1)
                yield from self._graph(body, typed, None, inside)
            for (label, inner), (_, inner_twin) in zip(subgraphs(node), subgraphs(twin), strict=False):
                inside = _Around(f"{path}/{printable(label)}/", around.opsets, around.depth + 1)
                yield from self._graph(inner, inner_twin, scope, inside)

    def _is_listed(self, node: NodeProto) -> bool:
        """Tell whether the index lists the node: the three operators in any domain, and all of com.microsoft's."""
        domain = normal_domain(node.domain)
        if domain in {ONNX, MICROSOFT} and node.op_type in {QUANTIZE, DEQUANTIZE, DYNAMIC}:
            return True
        if call_key(node) in self.functions:
            return False
        return domain == MICROSOFT or node.op_type in {QUANTIZE, DEQUANTIZE, DYNAMIC}

    def _body(self, key: FunctionKey, call: NodeProto, scope: Scope) -> tuple[GraphProto, GraphProto]:
        values = [scope.find(name) for name in call.input]
        body = instantiate(self.functions[key], call, [value.type for value in values], [_shape_constant(value) for value in values])
        memo = (key, body.SerializeToString(deterministic=True))
        if memo not in self._bodies:
            model = ModelProto(ir_version=max(self.model.ir_version, _FUNCTION_IR), graph=body)
            model.opset_import.extend(self.functions[key].opset_import)
            model.functions.extend(reachable(key, self.functions).values())
            self._bodies[memo] = body, self._infer(model, f"function {function_place(key)}").graph
        return self._bodies[memo]

    def _infer(self, model: ModelProto, what: str) -> ModelProto:
        inferred, failure = infer_model(model)
        if failure is not None:
            warning = f"shape inference failed on {what}, so only what it declares is known: {printable(failure)}"
            if warning not in self.warnings:
                self.warnings.append(warning)
        return inferred

    def _unique(self, path: str, index: int) -> str:
        while path in self._paths:
            path = f"{path}#{index}"
        self._paths.add(path)
        return path


def _opsets(imports: Sequence[OperatorSetIdProto]) -> dict[str, int]:
    return {normal_domain(entry.domain): entry.version for entry in imports}


def _shape_constant(value: Value) -> TensorProto | None:
    tensor = value.tensor
    if tensor is None or tensor.data_type not in _INTEGERS or not has_data(tensor):
        return None
    count = 1
    for dim in tensor.dims:
        count *= dim
    return tensor if count <= _MOST_SHAPE_VALUES else None
