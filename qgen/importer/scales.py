"""The values of scales that a model fixes: initialisers and constants, as the set of their codes.

Large tensors lose their data once they have been checked, and external ones are not read. Those that some node takes as its scale are read
before that, and what is kept of each is its distinct codes; the tensor is left with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto

from qgen.dtypes import BY_ONNX
from qgen.importer.functions import all_nodes
from qgen.importer.scopes import Value
from qgen.importer.tensors import drop_large_data, has_data, read_data
from qgen.signatures.tables import DEQUANTIZE, QUANTIZE

Codes = NDArray[np.uint32]

_KEY: Final = "qgen.scale"
"""The entry of `external_data` that has the number of what is kept; no file has one, for a tensor's own are dropped with its data."""
_BITS: Final = (8, 16, 32)


@dataclass(slots=True)
class Scales:
    """The codes of scales whose tensors lost their data."""

    names: frozenset[str] = frozenset()
    """What the model's nodes take as scales."""
    kept: list[Codes] = field(default_factory=list)

    def drop_data(self, tensor: TensorProto, name: str, folders: tuple[Path, ...]) -> None:
        """Take the data of a large tensor away, in place, and keep its codes where it may be a scale."""
        codes = _codes(tensor, read_data(tensor, folders)) if name in self.names else None
        drop_large_data(tensor)
        if codes is not None and not has_data(tensor):
            tensor.external_data.add(key=_KEY, value=str(len(self.kept)))
            self.kept.append(codes)

    def find(self, value: Value) -> Codes | None:
        """Return the distinct codes of a value that the model fixes; None where it does not, or their type is no scale's."""
        tensor = value.tensor
        if tensor is None or value.is_default:
            return None
        if has_data(tensor):
            return _codes(tensor, tensor.raw_data)
        return next((self.kept[int(entry.value)] for entry in tensor.external_data if entry.key == _KEY), None)


def scale_names(model: ModelProto) -> frozenset[str]:
    """Return the names that quantizing and dequantizing nodes give their scales, wherever in the model."""
    lists = [model.graph.node, *(function.node for function in model.functions)]
    return frozenset(name for nodes in lists for node in all_nodes(nodes) for name in _scale(node))


def _scale(node: NodeProto) -> Iterator[str]:
    if node.op_type in {QUANTIZE, DEQUANTIZE} and len(node.input) > 1 and node.input[1]:
        yield node.input[1]


def _codes(tensor: TensorProto, data: bytes) -> Codes | None:
    """Return the distinct codes of a tensor, of `data` where these are its bytes."""
    dtype = BY_ONNX.get(tensor.data_type)
    if dtype is None or dtype.bits not in _BITS:
        return None
    if data:
        codes = np.frombuffer(data, f"<u{dtype.bits // 8}")
    elif tensor.data_type == TensorProto.FLOAT:
        codes = np.array(tensor.float_data, np.float32).view(np.uint32)
    else:
        codes = np.array(tensor.int32_data, np.int64) & dtype.mask
    return np.unique(codes).astype(np.uint32)
