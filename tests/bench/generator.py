"""How fast qgen makes kernels: `python -m tests.bench.generator [--count N] [--cold N]`.

Prints kernels a second on one core, `qgen.compile(...).wgsl`, for signatures that the process has not seen and for shapes of those it has;
what a fresh process takes for `qgen emit` and `qgen --version`; how much memory grows; and each pass's share of the time. All times are the
process's own on a processor, to which other programs add less than to the time on the wall; a rate is that of the middle batch, and of the
fastest in parentheses.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from qgen.api import compile as compile_kernel
from qgen.check.matrix import BAKED, matrix_requests
from qgen.ir.verify import Verifier
from qgen.request import Request

_WARM: Final = 1000
"""Kernels made before anything is timed: by then every function of the library has been lowered."""
_BATCH: Final = 100
_ROOT: Final = Path(__file__).parents[2]
_COLD: Final = {
    "qgen --version": "--version",
    "qgen emit, DequantizeLinear": "emit DequantizeLinear --x int8 --scale float16 --per-axis 0 -o -",
    "qgen emit, QuantizeLinear": "emit QuantizeLinear --x float32 --y uint4 --zero-point --blocked -1:32 --shape 64,96 -o -",
}
_PASSES: Final = {
    "qgen.compiler": ("canonical_request", "check_signature", "emit_module"),
    "qgen.passes.pipeline": (
        "split_reductions",
        "realise",
        "guard_quick",
        "hoist_groups",
        "plan_kernel",
        "place_words",
        "fold_constants",
        "legalise",
        "rename_reserved",
    ),
}
"""What is timed, where the compiler looks it up."""


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="kernels of each kind")
    parser.add_argument("--cold", type=int, default=5, help="fresh processes of each kind")
    arguments = parser.parse_args()
    for name, words in _COLD.items():
        times = sorted(_cold(words) for _ in range(arguments.cold))
        print(f"{name}: {statistics.median(times):.0f} ms of CPU time, least {times[0]:.0f} ms")
    requests = list(matrix_requests())
    random.Random(1).shuffle(requests)
    _time(requests[:_WARM])
    fresh = requests[_WARM:][: arguments.count]
    baked = [_bake(request, number) for number, request in enumerate(fresh)]
    before = _resident()
    _print_rate("signatures not seen before", fresh)
    _print_rate("their shapes", baked)
    print(f"memory after {len(fresh) + len(baked):,} more kernels: {(_resident() - before) / 2**20:+.1f} MiB")
    _print_shares(fresh)
    return 0


def _cold(words: str) -> float:
    """Return the milliseconds of CPU time of a fresh process."""
    settings = {**os.environ, "PYTHONPATH": str(_ROOT)}
    with subprocess.Popen([sys.executable, "-m", "qgen", *words.split()], env=settings, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return 1000 * (usage.ru_utime + usage.ru_stime)


def _bake(request: Request, number: int) -> Request:
    choices = BAKED[request.granularity.kind]
    granularity, shape = choices[number % len(choices)]
    return replace(request, granularity=granularity, shape=shape)


def _make(request: Request) -> str:
    signature = request.signature
    return compile_kernel(
        signature.op,
        x=signature.x,
        scale=signature.scale,
        y=signature.y,
        zero_point=signature.zero_point,
        granularity=request.granularity,
        shape=request.shape,
        precision=signature.precision,
        saturate=signature.saturate,
    ).wgsl


def _time(requests: Sequence[Request]) -> float:
    """Return the seconds of CPU time for each kernel."""
    start = time.process_time()
    for request in requests:
        _make(request)
    return (time.process_time() - start) / len(requests)


def _print_rate(what: str, requests: Sequence[Request]) -> None:
    batches = [requests[at : at + _BATCH] for at in range(0, len(requests), _BATCH)]
    times = [_time(batch) for batch in batches]
    half = len(times) // 2
    drift = statistics.median(times[half:]) / statistics.median(times[:half] or times)
    print(f"{what}: {1 / statistics.median(times):,.0f} kernels/s ({1 / min(times):,.0f}), later half / first half {drift:.2f}")


def _resident() -> int:
    """Return the bytes of memory that the process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _print_shares(requests: Sequence[Request]) -> None:
    spent: dict[str, float] = defaultdict(float)
    with _timed(spent):
        each = _time(requests)
    total = each * len(requests)
    print("share of the time:")
    for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {100 * seconds / total:5.1f} %  {name}")
    print(f"  {100 * (1 - sum(spent.values()) / total):5.1f} %  everything else")


@contextmanager
def _timed(spent: dict[str, float]) -> Iterator[None]:
    """Add the seconds that each pass takes to `spent`."""

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - whatever the pass takes and returns
            start = time.process_time()
            result = function(*args, **options)
            spent[name] += time.process_time() - start
            return result

        return call

    patches = [
        patch(f"{module}.{name}", timed(name, getattr(sys.modules[module], name))) for module, names in _PASSES.items() for name in names
    ]
    patches.append(patch.object(Verifier, "verify", timed("verify", Verifier.verify)))
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


if __name__ == "__main__":
    sys.exit(main())
