"""What a kernel is measured against: copies, and the twin, which moves the bytes of a case in and out and computes nothing.

The twin reads and writes 16 bytes at a time, so many of them on the smaller side as the case has there; it is the floor of what a kernel
can cost. A copy moves as many bytes as the case, half of them in and half out. The texts are those of a harness where one is given: its
`page.mjs` has two functions, `COPY(workgroup size, vectors an invocation)` and `TWIN(bytes read, bytes written)`, which are called as they
stand. Without one they are written here, to the same definition.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

VECTOR_BYTES: Final = 16
COPIES: Final = ((64, 1), (256, 16))
"""The copies that are tried, by workgroup size and vectors an invocation; the quickest counts."""

_TWIN_WORKGROUP: Final = 128
_ROW: Final = 65535

# Loading the page's module touches a few names of the browser, and exports neither function.
_ASK: Final = """
import fs from 'node:fs';
const [page, what, ...numbers] = process.argv.slice(1);
for (const name of ['GPUCommandEncoder', 'GPUAdapter', 'GPUDevice']) globalThis[name] = class {};
globalThis.window = {};
const text = fs.readFileSync(page, 'utf8') + '\\nexport { COPY, TWIN };';
const module = await import('data:text/javascript;base64,' + Buffer.from(text).toString('base64'));
console.log(JSON.stringify(module[what](...numbers.map(Number))));
"""


@dataclass(frozen=True, slots=True)
class Mover:
    """A text whose entry point `main` has the buffer to read at binding 0 and the one to write at binding 1, and its workgroups."""

    wgsl: str
    dispatch: tuple[int, int, int]


def make_copy(total: int, size: int, vectors: int, harness: Path | None) -> Mover:
    """Return a copy of half of `total` bytes by workgroups of `size`, `vectors` of 16 bytes an invocation."""
    wgsl = _ask(harness, "COPY", size, vectors) if harness else _copy(size, vectors)
    return Mover(str(wgsl), _grid(_ceil_div(half_of(total), VECTOR_BYTES * size * vectors)))


def make_twin(read: int, written: int, harness: Path | None) -> Mover:
    """Return the twin of a case that reads `read` bytes and writes `written`."""
    wgsl = str(_ask(harness, "TWIN", read, written)[2]) if harness else _twin(read, written)
    return Mover(wgsl, _grid(_ceil_div(min(read, written), VECTOR_BYTES * _TWIN_WORKGROUP)))


def make_reader(read: int) -> Mover:
    """Return what reads `read` bytes and, in effect, writes nothing: the second reading of an operator that needs the data twice."""
    vectors = 16
    return Mover(_reader(vectors), _grid(_ceil_div(read, VECTOR_BYTES * _TWIN_WORKGROUP * vectors)))


def half_of(total: int) -> int:
    """Return half of `total` bytes, up to whole vectors."""
    return _ceil_div(total, 2 * VECTOR_BYTES) * VECTOR_BYTES


@cache
def _ask(harness: Path, what: str, *numbers: int) -> str | list[str]:
    command = ["node", "--input-type=module", "--eval", _ASK, "--", str(harness / "page.mjs"), what, *map(str, numbers)]
    answer: str | list[str] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


_HEAD: Final = """@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> into: array<vec4<u32>>;

@compute @workgroup_size(SIZE)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = workgroup.y * workgroups.x + workgroup.x;
"""


def _copy(size: int, vectors: int) -> str:
    lines = [
        f"    let first = number * {size * vectors}u + local;",
        f"    for (var step = 0u; step < {vectors}u; step++) {{",
        f"        let at = first + step * {size}u;",
        "        if (at < arrayLength(&into)) { into[at] = source[at]; }",
        "    }",
    ]
    return _text(size, lines)


def _twin(read: int, written: int) -> str:
    times = max(1, round(max(read, written) / min(read, written)))
    fewer = "source" if written >= read else "into"
    lines = [f"    let at = number * {_TWIN_WORKGROUP}u + local;", f"    if (at >= arrayLength(&{fewer})) {{ return; }}"]
    if fewer == "source":
        lines += ["    let value = source[at];", *(f"    into[at * {times}u + {index}u] = value;" for index in range(times))]
    else:
        lines.append(f"    into[at] = {' ^ '.join(f'source[at * {times}u + {index}u]' for index in range(times))};")
    return _text(_TWIN_WORKGROUP, lines)


def _reader(vectors: int) -> str:
    lines = [
        f"    let first = number * {_TWIN_WORKGROUP * vectors}u + local;",
        "    var seen = vec4<u32>();",
        f"    for (var step = 0u; step < {vectors}u; step++) {{",
        f"        let at = first + step * {_TWIN_WORKGROUP}u;",
        "        if (at < arrayLength(&source)) { seen |= ~source[at]; }",
        "    }",
        "    if (all(seen == vec4<u32>())) { into[0] = seen; }",  # so that the reading cannot be left out
    ]
    return _text(_TWIN_WORKGROUP, lines)


def _text(size: int, lines: list[str]) -> str:
    return _HEAD.replace("SIZE", str(size)) + "\n".join(lines) + "\n}\n"


def _grid(workgroups: int) -> tuple[int, int, int]:
    rows = _ceil_div(workgroups, _ROW)
    return (_ceil_div(workgroups, max(1, rows)), rows, 1)


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)
