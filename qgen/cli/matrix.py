"""`qgen emit --all`: every distinct kernel into one folder, with an index."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from qgen.check.matrix import matrix_requests
from qgen.cli.files import write_if_changed
from qgen.cli.terminal import Progress, count
from qgen.compiler import compile_kernel
from qgen.dtypes import DType
from qgen.errors import QgenError
from qgen.request import Request
from qgen.sidecar.text import print_sidecar

INDEX: Final = "index.json"
_CHUNK: Final = 8


@dataclass(frozen=True, slots=True)
class Emitted:
    """One kernel's files, and its entry in the index."""

    name: str
    wgsl: str
    sidecar: str
    entry: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The parts of a `QgenError`, which does not travel between processes itself."""

    code: str
    message: str
    hint: str


def emit_matrix(folder: Path, like: Request, jobs: int, *, is_quiet: bool) -> int:
    """Write every distinct kernel and the index into `folder`, with `jobs` processes. Returns the exit code.

    Numerics mode, target, entry point and group are those of `like`.
    """
    requests = [
        replace(request, mode=like.mode, target=like.target, entry_point=like.entry_point, group=like.group)
        for request in matrix_requests()
    ]
    entries: dict[str, dict[str, Any]] = {}
    written = 0
    with Progress("kernels", is_quiet=is_quiet) as progress:
        for done, result in enumerate(_compile_all(requests, jobs), 1):
            if isinstance(result, Refused):
                raise QgenError(result.code, result.message, hint=result.hint)
            files = {f"{result.name}.wgsl": result.wgsl, f"{result.name}.json": result.sidecar}
            changed = [write_if_changed(folder / name, text) for name, text in files.items()]
            written += any(changed)
            entries[result.name] = result.entry
            progress.show(done, len(requests))
    write_if_changed(folder / INDEX, print_index(entries))
    if not is_quiet:
        print(f"{count(len(entries), 'kernel')} in {folder}: {written:,} written, {len(entries) - written:,} unchanged")
    return 0


def print_index(entries: dict[str, dict[str, Any]]) -> str:
    """Return the index's text: what each kernel computes, by its name."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(entries.items()))
    return f'{{\n "format": "qgen.matrix",\n "format_version": 1,\n "kernels": {{\n{rows}\n }}\n}}\n'


def _compile_all(requests: Sequence[Request], jobs: int) -> Iterator[Emitted | Refused]:
    if jobs == 1:
        yield from map(_compile_one, requests)
        return
    with multiprocessing.Pool(jobs, _leave_interrupts) as pool:
        yield from pool.imap(_compile_one, requests, _CHUNK)


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that waits for the results: it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _compile_one(request: Request) -> Emitted | Refused:
    try:
        compiled = compile_kernel(request)
    except QgenError as error:
        return Refused(error.code, error.message, error.hint)
    signature = request.signature
    entry = {
        "op": signature.op,
        "x": signature.x.name,
        "scale": signature.scale.name,
        "y": signature.y.name,
        "zero_point": signature.zero_point,
        "granularity": request.granularity.kind,
        "division": signature.division.name if isinstance(signature.division, DType) else signature.division and signature.division.value,
        "saturate": signature.saturate,
    }
    return Emitted(compiled.name, compiled.wgsl, print_sidecar(compiled.sidecar), entry)
