"""Types and shapes of every value of a graph, by ONNX's shape inference in a process of its own."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from qgen.errors import QgenError
from qgen.importer.functions import normal_domain, subgraphs
from qgen.signatures.tables import DEQUANTIZE, MICROSOFT, QUANTIZE
from qgen.validate.hosts import open_host

_HOST_FILE: Final = Path(__file__).parent / "infer_host.py"
_CAST_LIKE: Final = 15
"""The opset that has CastLike."""


def infer_model(model: ModelProto) -> tuple[ModelProto, str | None]:
    """Return the model with what inference found in its `value_info`, subgraphs too; or as it is, and why nothing was found.

    Its nodes stay in their places, but com.microsoft's operators, which ONNX cannot infer, have stand-ins.
    """
    stand_ins = ModelProto()
    stand_ins.CopyFrom(model)
    opset = next((entry.version for entry in model.opset_import if normal_domain(entry.domain) == "ai.onnx"), None)
    if opset is not None:
        _put_stand_ins(stand_ins.graph, opset, {})
    request = {"model": base64.b64encode(stand_ins.SerializeToString()).decode("ascii")}
    try:
        answer = open_host("shape inference", (sys.executable, "-P", str(_HOST_FILE))).ask(request, "a model")
    except QgenError:
        return model, "its process ended or fell silent"
    if "failed" in answer:
        return model, str(answer["failed"]).splitlines()[0]
    return ModelProto.FromString(base64.b64decode(answer["model"])), None


def _put_stand_ins(graph: GraphProto, opset: int, outer: Mapping[str, int]) -> None:
    """Replace com.microsoft's QuantizeLinear and DequantizeLinear, in place, by casts with the same types and shapes.

    `outer` has the element types of the values around the graph that are known without inference.
    """
    known = dict(outer)
    known |= {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input)}
    known |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    known |= {node.output[0]: attribute.t.data_type for node in graph.node for attribute in _constant(node)}
    for node in graph.node:
        if node.domain == MICROSOFT and node.op_type in {QUANTIZE, DEQUANTIZE}:
            _cast(node, opset, known)
        for _, inner in subgraphs(node):
            _put_stand_ins(inner, opset, known)


def _constant(node: NodeProto) -> Sequence[AttributeProto]:
    return [attribute for attribute in node.attribute if attribute.name == "value"] if node.op_type == "Constant" and node.output else []


def _cast(node: NodeProto, opset: int, known: Mapping[str, int]) -> None:
    like = 2 if node.op_type == QUANTIZE else 1
    has_like = len(node.input) > like and node.input[like]
    type_ = known.get(node.input[like], 0) if has_like else TensorProto.UINT8 if node.op_type == QUANTIZE else 0
    if not node.input or (not type_ and not (has_like and opset >= _CAST_LIKE)):
        return
    inputs = [node.input[0]] if type_ else [node.input[0], node.input[like]]
    node.domain, node.op_type = "", "Cast" if type_ else "CastLike"
    del node.input[:], node.attribute[:]
    node.input.extend(inputs)
    if type_:
        node.attribute.add(name="to", type=2, i=type_)
