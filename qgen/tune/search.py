"""Times a handful of schedules of each kernel against one another, and takes another than the target's own where it is clearly faster."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from qgen.arrays import pack_words
from qgen.check import check_kernel
from qgen.errors import QgenError
from qgen.kernel import Kernel, compile_request
from qgen.profile import Entry, Schedule, describe_kernel
from qgen.runtime import Device, TimedRun, open_device
from qgen.tune.data import timing_inputs, timing_shape

ROUNDS: Final = 21
"""Rounds of timing: a median of so many paired ratios repeats within a tenth on a busy machine."""

CLEARLY: Final = 0.97
"""A schedule is taken where its time is at most this part of that of the target's own."""

_LANES: Final = (16, 32, 64, 128)
_WORKGROUPS: Final = (64, 128, 256)
_CHECKS: Final = 2
"""Rounds in which a candidate is held against the oracle, on each shape."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was found for one kernel: the medians of each schedule's time over that of the target's own, and the entry for a profile."""

    kernel: Kernel
    ratios: dict[Schedule, float]
    entry: Entry

    @property
    def is_default(self) -> bool:
        """Whether no schedule is clearly faster than the target's own."""
        return self.entry.time == 1.0


def tune_kernels(
    kernels: Sequence[Kernel], device: str, rounds: int = ROUNDS, show: Callable[[int, int], None] = lambda _done, _of: None
) -> Iterator[Tuned]:
    """Yield what is found for each of `kernels` on the adapter `device`; `show` is called with the rounds that are over, of how many.

    Every candidate is first held against the oracle, on the adapter. Raises `QgenError` QG109 where one gives a wrong bit, QG108 for a
    kernel whose target has options, QG302 for one without elements, and what `open_device` and `Device.time` raise.
    """
    adapter = open_device(device)
    total = 2 * len(kernels) * rounds
    for number, kernel in enumerate(kernels):
        before = 2 * number * rounds
        yield _tune(kernel, adapter, device, rounds, partial(_add, before, total, show))


def _add(before: int, total: int, show: Callable[[int, int], None], done: int) -> None:
    show(before + done, total)


def _tune(kernel: Kernel, adapter: Device, device: str, rounds: int, show: Callable[[int], None]) -> Tuned:
    target = kernel.request.target
    if ":" in target.name:
        message = f"the kernel {kernel.name} is for the target `{target.name}`, whose options are what is tuned"
        raise QgenError("QG108", message, hint="emit it for the target without options")
    candidates = _candidates(kernel)
    for candidate in candidates.values():
        result = check_kernel(candidate, device, rounds=_CHECKS)
        if not result.ok:
            raise QgenError(
                "QG109", f"a schedule gives a wrong result: {result}", hint="report it with this line; profiles never change a result"
            )
    own, *_ = candidates
    runs = {schedule: _timed(candidate) for schedule, candidate in candidates.items()}
    ratios = _ratios(runs, adapter, rounds, show)
    # The least of many noisy medians is too small, so it is taken again.
    best = min(ratios, key=lambda schedule: ratios[schedule])
    time = _ratios({own: runs[own], best: runs[best]}, adapter, rounds, lambda done: show(rounds + done))[best]
    if time > CLEARLY:
        best, time = own, 1.0
    return Tuned(kernel, ratios, Entry(describe_kernel(kernel.request), best, round(time, 3)))


def _ratios(runs: Mapping[Schedule, TimedRun], adapter: Device, rounds: int, show: Callable[[int], None]) -> dict[Schedule, float]:
    """Return the median of each run's time over that of the first."""
    own, *_ = times = adapter.time(list(runs.values()), rounds, show)
    medians = (statistics.median(mine / max(1, base) for mine, base in zip(ticks, own, strict=True)) for ticks in times)
    return dict(zip(runs, medians, strict=True))


def _candidates(kernel: Kernel) -> dict[Schedule, Kernel]:
    """Return the kernels to be timed, the target's own first; of schedules that give one text, the first."""
    target = kernel.request.target
    own = Schedule(target.lanes, target.workgroup_size)
    found: dict[Schedule, Kernel] = {}
    texts: set[str] = set()
    for schedule in (own, *(Schedule(lanes, size) for lanes in _LANES for size in _WORKGROUPS)):
        candidate = compile_request(replace(kernel.request, target=schedule.target(target.name)))
        if candidate.wgsl not in texts:
            texts.add(candidate.wgsl)
            found[schedule] = candidate
    return found


def _timed(kernel: Kernel) -> TimedRun:
    shape = timing_shape(kernel)
    inputs = timing_inputs(kernel, shape)
    plan = kernel.plan({name: tuple(array.shape) for name, array in inputs.items()})
    if plan.is_empty:
        raise QgenError("QG108", f"the kernel {kernel.name} has no elements, so there is nothing to time", hint="leave it out")
    bound = [operand for operand in kernel.compiled.checked.bound if not operand.is_output]
    words = {operand.name: pack_words(inputs[operand.name], operand.dtype).tobytes() for operand in bound}
    return TimedRun(kernel.wgsl, kernel.sidecar, plan, words)
