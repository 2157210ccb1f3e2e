"""`qgen emit --all`: every distinct kernel into one folder, with an index."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from qgen.cli.files import write_if_changed
from qgen.cli.terminal import Progress
from qgen.compiler import compile_kernel, make_request
from qgen.errors import QgenError
from qgen.shapes import Granularity, blocked, per_axis, per_tensor
from qgen.sidecar.text import print_sidecar
from qgen.signatures import GranularityKind, Signature, distinct_key, enumerate_signatures

INDEX: Final = "index.json"
GRANULARITIES: Final[Mapping[GranularityKind, Granularity]] = {
    "per_tensor": per_tensor(),
    "per_axis": per_axis(1),
    "blocked": blocked(-1, 32),
}
"""The granularity that stands for its kind."""

_CHUNK: Final = 8

Variant = tuple[Signature, GranularityKind]


@dataclass(frozen=True, slots=True)
class Emitted:
    """One kernel's files."""

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
    place: Any


def distinct_variants() -> list[Variant]:
    """Return one signature, the newest, for each distinct kernel before shapes."""
    return list({distinct_key(signature, kind): (signature, kind) for signature, kind in enumerate_signatures()}.values())


def emit_matrix(folder: str, words: Mapping[str, Any], jobs: int, *, is_quiet: bool) -> int:
    """Write every distinct kernel and the index into `folder`; `words` go to `make_request`. Returns the exit code."""
    variants = distinct_variants()
    entries: dict[str, dict[str, Any]] = {}
    written = 0
    with Progress(len(variants), "kernels", is_quiet=is_quiet) as progress:
        for result in _compile_all(variants, words, jobs):
            if isinstance(result, Refused):
                raise QgenError(result.code, result.message, hint=result.hint, place=result.place)
            changed = [
                write_if_changed(Path(folder, f"{result.name}.wgsl"), result.wgsl),
                write_if_changed(Path(folder, f"{result.name}.json"), result.sidecar),
            ]
            written += any(changed)
            entries[result.name] = result.entry
            progress.advance()
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(entries.items()))
    write_if_changed(Path(folder, INDEX), f'{{\n "format": "qgen.matrix",\n "format_version": 1,\n "kernels": {{\n{rows}\n }}\n}}\n')
    if not is_quiet:
        print(f"{len(entries)} kernels in {folder}: {written} written, {len(entries) - written} unchanged")
    return 0


def _compile_all(variants: list[Variant], words: Mapping[str, Any], jobs: int) -> Iterator[Emitted | Refused]:
    work = partial(_compile_one, words=words)
    if jobs == 1:
        yield from map(work, variants)
        return
    with multiprocessing.Pool(jobs, _leave_interrupts) as pool:
        yield from pool.imap(work, variants, _CHUNK)


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that waits for the results: it ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _compile_one(variant: Variant, words: Mapping[str, Any]) -> Emitted | Refused:
    signature, kind = variant
    try:
        request = make_request(
            signature.op,
            x=signature.x,
            scale=signature.scale,
            y=signature.y,
            zero_point=signature.zero_point,
            granularity=GRANULARITIES[kind],
            opset=signature.version,
            precision=signature.precision,
            saturate=signature.saturate,
            domain=signature.domain,
            **words,
        )
        compiled = compile_kernel(request)
    except QgenError as error:
        return Refused(error.code, error.message, error.hint, error.place)
    entry = {
        "op": signature.op,
        "x": signature.x.name,
        "scale": signature.scale.name,
        "y": signature.y.name,
        "zero_point": signature.zero_point,
        "granularity": kind,
    }
    return Emitted(compiled.name, compiled.wgsl, print_sidecar(compiled.sidecar), entry)
