"""Small models for the importer's tests, in ONNX's text form or built node by node."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import helper, parser

from qgen.importer import Bundle, NodeRecord, load_bundle

IMPORTS = '"" : 21, "com.microsoft" : 1, "local" : 1'


def parse(text: str, imports: str = IMPORTS) -> onnx.ModelProto:
    """Return the model whose graph (and functions) `text` has."""
    model: onnx.ModelProto = parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{text}")
    return model


def save(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def load(folder: Path, text: str, imports: str = IMPORTS, **choices: Any) -> Bundle:  # noqa: ANN401 - the importer's own choices
    return load_bundle(save(parse(text, imports), folder), **choices)


def one_node(folder: Path, text: str, imports: str = IMPORTS, **choices: Any) -> NodeRecord:  # noqa: ANN401 - the importer's own choices
    (node,) = load(folder, text, imports, **choices).nodes
    return node


def build(nodes: Sequence[onnx.NodeProto], initializers: Sequence[onnx.TensorProto] = (), opset: int = 21) -> onnx.ModelProto:
    """Return a model of these nodes with the float input `a` and the output of the last node."""
    image = helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [2, 3])
    output = onnx.ValueInfoProto(name=nodes[-1].output[0])
    graph = helper.make_graph(list(nodes), "graph", [image], [output], list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
