"""Kernels back from their files: the sidecar, the text beside it, and the same kernel compiled again."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qgen.cli.files import read_bytes, read_text
from qgen.errors import QgenError, UnavailableError
from qgen.kernel import CPU, Kernel, compile_request
from qgen.request import request_of_sidecar
from qgen.sidecar.plan import FORMAT, FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class StoredKernel:
    """A kernel from disk. `kernel` has the file's text and sidecar, and the programs of the same request compiled here."""

    path: Path
    kernel: Kernel
    is_current: bool
    """Whether this qgen compiles the very text of the file."""

    def resolve_device(self, device: str) -> str:
        """Return `device`, made definite as by `resolve_device`.

        Raises `QgenError` QG904 for the CPU where the file's text is not what is compiled here, which is what the evaluator runs.
        """
        device = resolve_device(device)
        if device == CPU and not self.is_current:
            message = f"the text of {self.path} is not what this qgen compiles from its sidecar, and the CPU runs nothing else"
            raise QgenError("QG904", message, hint="emit it anew with `qgen emit`, or run it on an adapter with --device gpu")
        return device


def resolve_device(device: str) -> str:
    """Return `device`, with `auto` made `gpu` where there is an adapter and `cpu` where there is none."""
    if device != "auto":
        return device
    from qgen.runtime import open_device  # an adapter takes seconds to open

    try:
        open_device("gpu")
    except UnavailableError:
        return CPU
    return "gpu"


def describe_device(device: str) -> str:
    """Return the name of a resolved device: the adapter's own, and what drives it."""
    if device == CPU:
        return "the CPU"
    from qgen.runtime import open_device  # an adapter takes seconds to open

    opened = open_device(device)
    return f"{opened.name} ({opened.backend})"


def load_kernel(path: Path) -> StoredKernel:
    """Return the kernel of the sidecar at `path`.

    Raises `QgenError`: QG902 for a file that cannot be read, QG903 for one that is no sidecar, QG904 where text and sidecar do not go
    together, QG106 and what `make_request` raises where the sidecar asks for what there is not.
    """
    sidecar = read_sidecar(path)
    try:
        entry = sidecar["passes"][0]["wgsl"]
        file, digest = str(entry["file"]), entry["sha256"]
        entry_points = [str(step["entry_point"]) for step in sidecar["passes"]]
    except (KeyError, IndexError, TypeError) as error:
        raise _no_sidecar(path, "it names no text, or no entry point of it") from error
    if Path(file).name != file:
        raise _no_sidecar(path, f"its text `{file}` is not beside it")
    wgsl = read_text(path.parent / file)
    if hashlib.sha256(wgsl.encode()).hexdigest() != digest:
        message = f"the text {file} is not the one that the sidecar describes: its SHA-256 differs"
        raise QgenError("QG904", message, hint="emit both anew with `qgen emit`", place=str(path))
    for entry_point in entry_points:
        if not re.search(rf"\bfn {re.escape(entry_point)}\(", wgsl):
            raise _no_sidecar(path, f"its text has no entry point `{entry_point}`")
    try:
        compiled = compile_request(request_of_sidecar(sidecar)).compiled
    except QgenError as error:
        raise QgenError(error.code, error.message, hint=error.hint, place=str(path)) from error
    is_current = compiled.wgsl == wgsl
    changed = _find_change(sidecar, compiled.sidecar) if is_current else None
    if changed is not None:
        message = f"`{changed}` of the sidecar is not what it is of its text"
        raise QgenError("QG904", message, hint="emit both anew with `qgen emit`", place=str(path))
    return StoredKernel(path, Kernel(replace(compiled, wgsl=wgsl, given_sidecar=sidecar)), is_current)


def _find_change(found: Any, own: Any, place: str = "") -> str | None:  # noqa: ANN401 - JSON
    """Return the first place at which a sidecar differs from that of the same text; what only one of them has is of another version."""
    match found, own:
        case dict(), dict():
            parts = [(f"{place}.{key}" if place else key, value, own[key]) for key, value in found.items() if key in own]
        case list(), list() if len(found) == len(own):
            parts = [(f"{place}[{number}]", *pair) for number, pair in enumerate(zip(found, own, strict=True))]
        case _:
            # A boolean is no number; the text may have been given another file name.
            is_same = (found, type(found)) == (own, type(own)) or place.endswith(".wgsl.file")
            return None if is_same else place
    return next((change for where, mine, its in parts if (change := _find_change(mine, its, where)) is not None), None)


def read_sidecar(path: Path) -> dict[str, Any]:
    """Return the sidecar at `path`. Raises `QgenError` QG902 and QG903."""
    try:
        sidecar = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise _no_sidecar(path, f"it is not JSON: {error}") from error
    if not isinstance(sidecar, dict) or sidecar.get("format") != FORMAT:
        raise _no_sidecar(path, f"its `format` is not `{FORMAT}`")
    if sidecar.get("format_version") != FORMAT_VERSION:
        raise _no_sidecar(path, f"its `format_version` is not {FORMAT_VERSION}")
    return sidecar


def read_format(path: Path) -> str | None:
    """Return the `format` of a file of qgen's (`qgen.kernel`, and the indexes of folders), None for any other file."""
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError):
        return None
    kind = content.get("format") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) and kind.startswith("qgen.") else None


def _no_sidecar(path: Path, reason: str) -> QgenError:
    return QgenError("QG903", f"this is no sidecar of a kernel: {reason}", hint="name the .json that `qgen emit` wrote", place=str(path))
