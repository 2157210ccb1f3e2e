"""One case on one device: its kernels beside copies, checked and timed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qgen.arrays import pack_words
from qgen.dtypes import DTYPES
from qgen.errors import InternalError
from qgen.signatures.tables import DYNAMIC
from tests.bench.cases import Case, shape_of
from tests.bench.copies import COPIES, half_of, make_copy, make_reader, make_twin
from tests.bench.data import make_data
from tests.bench.device import Arm, TimingDevice


@dataclass(frozen=True, slots=True)
class Timing:
    """What one kernel takes: milliseconds (median), and medians over rounds of ratios.

    `vs_twin` and `vs_copy` are the share that the kernel reaches of their speed; `vs_fast` how many times it takes of what `fast` takes.
    """

    ms: float
    copy_ms: float
    vs_twin: float
    vs_copy: float
    vs_fast: float | None
    compile_ms: float
    wrong: int
    """Elements with a wrong bit; none in `exact`."""


def measure_case(
    device: TimingDevice,
    case: Case,
    *,
    form: str,
    kind: str,
    count: int,
    rounds: int,
    modes: Sequence[str],
    target: str,
    harness: Path | None,
) -> dict[str, Timing]:
    """Return the timings of a case by numerics mode. Raises `InternalError` where a mode other than `fast` has a wrong bit."""
    shape = shape_of(count, form)
    kernels = {mode: case.compile(form, shape, mode, target) for mode in modes}
    inputs = make_data(case, kind, shape)
    kernel = kernels[modes[0]]
    words = {name: pack_words(array, DTYPES[_dtype(case, name)]) for name, array in inputs.items()}
    want = {name: pack_words(array, DTYPES[_dtype(case, name)]) for name, array in kernel.reference(inputs).items()}
    buffers = {name: device.make_buffer(array.nbytes, array.tobytes()) for name, array in words.items()}
    buffers |= {name: device.make_buffer(array.nbytes) for name, array in want.items()}
    read, written = words["x"].nbytes, want["y"].nbytes
    half = half_of(sum(array.nbytes for array in (*words.values(), *want.values())))
    source, into = device.make_buffer(half, np.random.default_rng(0).bytes(half)), device.make_buffer(half)
    arms: dict[str, Arm] = {}
    wrong = {}
    for mode in modes:
        arms[mode] = device.make_kernel(kernels[mode], kernels[mode].plan({name: array.shape for name, array in inputs.items()}), buffers)
        for name in want:
            device.clear(buffers[name])
        device.run(arms[mode])
        wrong[mode] = sum(
            int((np.frombuffer(device.read(buffers[name], array.nbytes), np.uint32) != array).sum()) for name, array in want.items()
        )
        if wrong[mode] and mode != "fast":
            raise InternalError(f"{case.name}, {form}, {kind}, {mode} on {device.name}: {wrong[mode]} words are wrong")
    for size, vectors in COPIES:
        arms[f"copy {size}x{vectors}"] = device.make_mover(make_copy(2 * half, size, vectors, harness), source, into)
    arms["twin"] = device.make_mover(make_twin(read, written, harness), buffers["x"], buffers["y"])
    if case.op == DYNAMIC:
        again = device.make_mover(make_reader(read), buffers["x"], into)
        arms |= {name: arm + again for name, arm in arms.items() if name not in modes}
    times = device.time(arms, rounds)
    for buffer in (*buffers.values(), source, into):
        buffer.destroy()
    return {mode: summarise(times, mode, arms[mode].compile_ms, wrong[mode]) for mode in modes}


def summarise(times: Mapping[str, Sequence[float]], mode: str, compile_ms: float, wrong: int) -> Timing:
    """Return the timing of the arm `mode`, given the milliseconds of each arm in each round."""
    copy = min((name for name in times if name.startswith("copy")), key=lambda name: statistics.median(times[name]))
    return Timing(
        ms=statistics.median(times[mode]),
        copy_ms=statistics.median(times[copy]),
        vs_twin=paired(times["twin"], times[mode]),
        vs_copy=paired(times[copy], times[mode]),
        vs_fast=paired(times[mode], times["fast"]) if "fast" in times and mode != "fast" else None,
        compile_ms=compile_ms,
        wrong=wrong,
    )


def paired(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the median over rounds of the first's time divided by the second's."""
    return statistics.median(one / other for one, other in zip(first, second, strict=True))


def _dtype(case: Case, name: str) -> str:
    if name in {"x", "y"}:
        return case.x if name == "x" else case.y
    return case.scale if name.endswith("scale") else case.quantized.name
