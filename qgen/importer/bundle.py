"""The kernels of a model, and which node is computed by which."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from qgen.files import save_files
from qgen.kernel import Kernel
from qgen.sidecar.text import print_sidecar

INDEX_FILE: Final = "index.json"
INDEX_FORMAT: Final = "qgen.bundle"
INDEX_VERSION: Final = 1

Dim: TypeAlias = int | str | None
"""A dimension: its size, the model's name for it, or nothing known."""
Dims: TypeAlias = tuple[Dim, ...] | None
"""A shape; None where not even the rank is known."""
Source: TypeAlias = Literal["initializer", "constant", "input", "value"]
"""Where a tensor comes from: an initialiser, a Constant node, an input of the graph or function, or another node."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node has no kernel: an error's code, message and hint."""

    code: str
    message: str
    hint: str

    def __str__(self) -> str:
        """Return the reason as one line."""
        return f"{self.code}: {self.message} ({self.hint})"


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One node of the model, with the kernel that computes it or the reason why none does.

    `path` names it within the model and is printable and unique: the nodes and functions around it, its own name, `#` and its index where
    the name does not tell. `tensors`, `sources` and `shapes` go by the operator's names of its operands (`x`, `y_scale`, …). With
    `plain_scale` the kernel relies on the values of the scale, which the model fixes.
    """

    path: str
    name: str
    domain: str
    op: str
    kernel: str | None
    reason: Reason | None
    tensors: Mapping[str, str]
    sources: Mapping[str, Source]
    shapes: Mapping[str, Dims]
    warnings: tuple[str, ...] = ()
    plain_scale: bool = False


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a model gave: each kernel once by name, every node in the model's order, and what was noticed about the model as a whole."""

    kernels: Mapping[str, Kernel]
    nodes: tuple[NodeRecord, ...]
    warnings: tuple[str, ...] = ()

    @property
    def index(self) -> dict[str, Any]:
        """What `index.json` holds: format, the kernels' names, and for each node its kernel or the reason why it has none."""
        return {
            "format": INDEX_FORMAT,
            "format_version": INDEX_VERSION,
            "kernels": list(self.kernels),
            "nodes": [_describe(node) for node in self.nodes],
            "warnings": list(self.warnings),
        }

    @property
    def files(self) -> dict[str, str]:
        """The texts that `save` writes, by file name: those of each kernel, then `index.json`."""
        texts = {name: text for kernel in self.kernels.values() for name, text in kernel.files.items()}
        return texts | {INDEX_FILE: print_sidecar(self.index)}

    def save(self, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Write each kernel's `.wgsl` and `.json`, then `index.json`, into `folder` (made where it is not there); return their paths.

        All files appear, or none. Raises `QgenError` QG110 where the folder cannot be written.
        """
        return save_files(folder, self.files)


def _describe(node: NodeRecord) -> dict[str, Any]:
    reason = node.reason
    return {
        "node": node.path,
        "name": node.name,
        "domain": node.domain,
        "op": node.op,
        "kernel": node.kernel,
        "reason": None if reason is None else {"code": reason.code, "message": reason.message, "hint": reason.hint},
        "tensors": dict(node.tensors),
        "sources": dict(node.sources),
        "plain_scale": node.plain_scale,
        "shapes": {operand: None if dims is None else list(dims) for operand, dims in node.shapes.items()},
        "warnings": list(node.warnings),
    }
