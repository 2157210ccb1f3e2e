"""How long a driver takes for a kernel that it has not seen: `python -m tests.bench.drivers wgpu:llvmpipe dawn:swiftshader [--all]`.

A kernel is run on a small tensor twice; the first run has the compilation, the second has not, and the difference is what is printed: the
process's time on processors, to which other programs add little. Drivers compile one kernel on one thread. What takes longer than the limit
is compiled twice more, each time with another name for the entry point, and the median is what it took.
Kernels are those that the tests run on this adapter, or the usual text of every kernel of the matrix. Exits with 1 where one takes longer
than the limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import Final

# Mesa keeps what it has compiled on disk.
os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"

from qgen.check import check_shapes, make_inputs, matrix_requests
from qgen.check.compare import run_kernel
from qgen.kernel import Kernel, compile_request
from qgen.request import Request
from qgen.runtime import open_device
from tests.conformance.sample import sample_matrix, texts_to_run
from tests.conformance.stacks import SAMPLES

LIMIT: Final = 150.0
_SAMPLE: Final = (580, 1)
_WARM: Final = 5
"""Kernels that are run before anything is timed: a device starts threads and compiles its own shaders with the first of them."""
_SLOWEST: Final = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """What a driver takes for one text, in milliseconds."""

    cold: float
    name: str


def main() -> int:
    """Print the times of each stack, and return 1 where one is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stacks", nargs="+", metavar="STACK")
    parser.add_argument("--all", action="store_true", help="every kernel of the matrix, not the sample of the tests")
    arguments = parser.parse_args()
    slow = False
    for stack in arguments.stacks:
        timings = sorted((_time(text, stack) for text in _texts(stack, whole=arguments.all)), key=lambda timing: -timing.cold)
        times = [timing.cold for timing in timings]
        middle, high = statistics.median(times), times[len(times) // 100]
        print(
            f"{stack} ({open_device(stack).name}): {len(times):,} texts, median {middle:.1f} ms, 99% {high:.1f} ms, most {times[0]:.1f} ms"
        )
        for timing in timings[:_SLOWEST]:
            print(f"  {timing.cold:6.1f} ms  {timing.name}")
        slow = slow or times[0] > LIMIT
    return int(slow)


def _texts(stack: str, *, whole: bool) -> list[Request]:
    requests = list(matrix_requests())
    for request in requests[:: len(requests) // _WARM]:
        _run(compile_request(request), stack)
    if whole:
        return requests
    return [text for number, request in sample_matrix(*SAMPLES.get(stack, _SAMPLE)) for text in texts_to_run(request, number)]


def _time(request: Request, stack: str) -> Timing:
    kernel = compile_request(request)
    cold = _cold(kernel, stack)
    if cold > LIMIT:
        again = [_cold(compile_request(replace(request, entry_point=name)), stack) for name in ("second", "third")]
        cold = statistics.median([cold, *again])
    return Timing(cold, kernel.name)


def _cold(kernel: Kernel, stack: str) -> float:
    return 1000 * (_run(kernel, stack) - _run(kernel, stack))


def _run(kernel: Kernel, stack: str) -> float:
    inputs = make_inputs(kernel, check_shapes(kernel)[0], 0)
    start = time.process_time()
    run_kernel(kernel, stack, inputs)
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
