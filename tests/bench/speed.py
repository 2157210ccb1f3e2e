"""How fast the kernels are, beside copies of the same bytes and beside ONNX Runtime: `python -m tests.bench.speed --stack wgpu:llvmpipe`.

A stack is an adapter of wgpu or Dawn, or `chromium` (with SwiftShader) or `chromium:default` (with the adapter that it chooses), where
onnxruntime-web is timed in the same page. Each line is a kernel: what it takes (ms), bytes moved a second, the share of the twin's speed
that it reaches (`copies.py` says what that is), the same by the time on processors, the share of the quickest copy's, how many times as
fast as ONNX Runtime it is, how many times what `fast` takes, and what the driver takes to compile the text (ms of the process's time; in
a browser, of wall time). `!` marks what is below its goal. Ratios are medians over interleaved rounds, by timestamps on the device; on a
machine that others use, those by time on processors are the ones to look at, on 4M elements. Results are compared with the oracle first: a
wrong bit ends the run.

`--harness` names the folder of the harness that times ONNX Runtime, copies and the twin in a browser (`browser.py`); without it there is no
stack `chromium`, and copies and the twin are this repository's own texts to the same definition. `--out FOLDER` writes `bench.json` and
`bench.html` there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Final

from qgen.errors import QgenError, UnavailableError
from qgen.runtime import list_devices
from tests.bench import browser
from tests.bench.cases import CASES, FORMS, Case
from tests.bench.data import KINDS
from tests.bench.device import TimingDevice
from tests.bench.measure import measure_sample
from tests.bench.page import print_page
from tests.bench.report import HEAD, ROUNDS, count_in_words, print_row, print_summary
from tests.bench.rows import Row, to_json
from tests.bench.sample import Sample, make_sample

_HARNESS: Final = Path(__file__).parents[3] / "shared" / "bench"
_SOFTWARE: Final = ("wgpu:llvmpipe", "dawn:swiftshader")
_SUFFIXES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Job:
    """What is timed in one go: the forms share a tensor."""

    case: Case
    count: int
    data: str
    forms: tuple[str, ...]


def main(words: Sequence[str] | None = None) -> int:
    """Print the lines, stack by stack, and what misses its goal; return 1 where a stack is not there."""
    arguments = make_parser().parse_args(words)
    os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"  # Mesa keeps what it has compiled on disk
    try:
        _measure(arguments)
    except QgenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _measure(arguments: argparse.Namespace) -> None:
    stacks = arguments.stack or _stacks(arguments.harness)
    jobs = plan_jobs(arguments.case, arguments.size or [1 << 20], arguments.form or ["baked"], arguments.data or ["random"])
    if arguments.all:
        jobs = [job for size in arguments.size or [1 << 20] for job in plan_all(arguments.case, size)]
    rows: list[Row] = []
    try:
        for stack in stacks:
            is_browser = stack.split(":")[0] == browser.STACK
            found = _in_browser(jobs, stack, arguments) if is_browser else _on_device(jobs, stack, arguments)
            for row in found:
                if not rows or rows[-1].stack != stack:
                    print(f"{stack}: {row.adapter}\n{HEAD}")
                rows.append(row)
                print(print_row(row), flush=True)
    finally:  # what was measured is worth an hour
        print(print_summary(rows))
        if arguments.out is not None:
            _write(arguments.out, rows, arguments)


def _stacks(harness: Path | None) -> list[str]:
    """Return the stacks of whom names none: software adapters, which are the same everywhere, a GPU and the browser where they are."""
    hardware = ["gpu"] if not all(device.is_software for device in list_devices()) else []
    return [*hardware, *_SOFTWARE, *([browser.STACK] if harness and browser.is_installed() else [])]


def _write(folder: Path, rows: list[Row], arguments: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = {"rounds": arguments.rounds, "harness": arguments.harness is not None, "rows": to_json(rows)}
    (folder / "bench.json").write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    (folder / "bench.html").write_text(print_page(rows, arguments.rounds), encoding="utf-8")
    print(f"{folder / 'bench.html'} shows this")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--stack", action="append", help="may be given often; where none is, software adapters, and a GPU and Chromium where they are")
    add("--case", default="", metavar="REGEX", help="only the cases in whose names this is found")
    add("--size", action="append", type=parse_size, help="elements, such as 4M; may be given often; 1M where none is")
    add("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS} where it is not given")
    add("--mode", action="append", choices=["exact", "fast", "strict"], help="may be given often; exact and fast where none is")
    add("--form", action="append", choices=FORMS, help="what the text knows of the shape; may be given often; baked where none is")
    add("--data", action="append", choices=KINDS, help="may be given often; random where none is")
    add("--all", action="store_true", help="every form on random data, and every kind of data with the shape baked in")
    add("--target", default="webgpu", help="as for `qgen emit`")
    add("--harness", type=Path, default=_HARNESS if _HARNESS.is_dir() else None, help="a folder with ort_web.mjs and page.mjs")
    add("--out", type=Path, help="a folder for bench.json and bench.html")
    return parser


def plan_jobs(case: str, sizes: Sequence[int], forms: Sequence[str], kinds: Sequence[str]) -> list[Job]:
    """Return the jobs of every combination, size by size; forms of one tensor are timed together."""
    chosen = [form for form in FORMS if form in forms]
    together = [tuple(form for form in chosen if form.startswith("ragged") is ragged) for ragged in (False, True)]
    cases = [one for one in CASES if re.search(case, one.name)]
    return [Job(one, size, kind, some) for size, one, kind, some in product(sizes, cases, kinds, filter(None, together))]


def plan_all(case: str, size: int) -> list[Job]:
    """Return the jobs of a whole table: each case in every form on random data, and with its shape baked in on the other data."""
    beside = plan_jobs(case, [size], ["baked"], [kind for kind in KINDS if kind != "random"])
    return sorted([*plan_jobs(case, [size], FORMS, ["random"]), *beside], key=lambda job: CASES.index(job.case))


def parse_size(text: str) -> int:
    """Return the number of elements that `4M` means; the letters are powers of 2^10."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is no number of elements")
    return int(match[1]) * _SUFFIXES[match[2]]


def _on_device(jobs: list[Job], stack: str, arguments: argparse.Namespace) -> Iterator[Row]:
    device = TimingDevice(stack)
    for job in jobs:
        sample = _make_sample(job, arguments)
        largest = max(len(tensor.padded) for tensor in (*sample.inputs.values(), *sample.outputs.values()))
        if largest > device.binding_limit:
            print(f"{job.case.name}, {count_in_words(job.count)}: {largest} bytes, and {device.name} binds {device.binding_limit}")
            continue
        yield from measure_sample(device, stack, sample, arguments.rounds, arguments.harness)


def _in_browser(jobs: list[Job], stack: str, arguments: argparse.Namespace) -> Iterator[Row]:
    if arguments.harness is None:
        raise UnavailableError("QG611", "the stack chromium needs a harness", hint="name its folder with --harness")
    adapter = stack.partition(":")[2] or "swiftshader"
    # One run of the browser has all cases of one kind, and no more: their files take a gigabyte.
    for _, some in groupby(sorted(jobs, key=_kind), key=_kind):
        samples = (_make_sample(job, arguments) for job in some)
        with tempfile.TemporaryDirectory() as folder:
            yield from browser.measure_in_browser(
                samples, Path(folder), harness=arguments.harness.resolve(), rounds=arguments.rounds, adapter=adapter
            )


def _kind(job: Job) -> tuple[int, int, tuple[str, ...]]:
    return job.count, KINDS.index(job.data), job.forms


def _make_sample(job: Job, arguments: argparse.Namespace) -> Sample:
    modes = tuple(dict.fromkeys(arguments.mode or ("exact", "fast")))
    return make_sample(job.case, data=job.data, count=job.count, forms=job.forms, modes=modes, target=arguments.target)


if __name__ == "__main__":
    sys.exit(main())
