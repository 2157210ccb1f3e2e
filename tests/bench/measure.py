"""One sample on one device of the Python stacks: its kernels beside copies, checked and timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from qgen.errors import InternalError
from qgen.signatures.tables import DYNAMIC
from tests.bench.copies import COPIES, half_of, make_copy, make_reader, make_twin
from tests.bench.device import Arm, TimingDevice
from tests.bench.rows import Row, fast_of, share_of_processor, summarise
from tests.bench.sample import Sample

Buffers = dict[str, Any]


def measure_sample(device: TimingDevice, stack: str, sample: Sample, rounds: int, harness: Path | None) -> list[Row]:
    """Return a row for each kernel of `sample`, timed in one run.

    Raises `InternalError` where a kernel of a mode other than `fast` has a wrong bit.
    """
    buffers: Buffers = {name: device.make_buffer(len(tensor.padded), tensor.padded) for name, tensor in sample.inputs.items()}
    buffers |= {name: device.make_buffer(len(tensor.padded)) for name, tensor in sample.outputs.items()}
    half = half_of(sample.nbytes)
    source, into = device.make_buffer(half, np.random.default_rng(0).bytes(half)), device.make_buffer(half)
    kernels = {
        (form, mode): device.make_kernel(kernel, kernel.plan(sample.shapes), buffers) for (form, mode), kernel in sample.kernels.items()
    }
    wrong = {at: _count_wrong(device, arm, sample, buffers) for at, arm in kernels.items()}
    for (form, mode), count in wrong.items():
        if count and mode != "fast":
            raise InternalError(f"{sample.case.name}, {form}, {sample.data} data, {mode} on {device.name}: {count} words are wrong")
    movers = {
        f"copy {size}x{vectors}": device.make_mover(make_copy(2 * half, size, vectors, harness), source, into) for size, vectors in COPIES
    }
    copies = tuple(movers)
    read, written = sample.inputs["x"].data.size, sample.outputs["y"].data.size
    movers["twin"] = device.make_mover(make_twin(read, written, harness), buffers["x"], buffers["y"])
    if sample.case.op == DYNAMIC:
        again = device.make_mover(make_reader(read), buffers["x"], into)
        movers = {name: arm + again for name, arm in movers.items()}
    movers["nothing"] = device.make_mover(make_copy(0, *COPIES[0], harness), source, into)
    times = device.time({f"{form} {mode}": arm for (form, mode), arm in kernels.items()} | movers, rounds)
    device.destroy((*buffers.values(), source, into))
    return [
        summarise(
            times.stamps,
            f"{form} {mode}",
            copies,
            fast_of(form, kernels) if mode != "fast" else None,
            stack=stack,
            adapter=device.name,
            is_software=device.is_software,
            case=sample.case.name,
            form=form,
            data=sample.data,
            mode=mode,
            count=sample.count,
            rounds=rounds,
            nbytes=sample.nbytes,
            vs_twin_processor=share_of_processor(times.processor, f"{form} {mode}") if device.is_software else None,
            compile_ms=arm.compile_ms,
            wrong=wrong[form, mode],
        )
        for (form, mode), arm in kernels.items()
    ]


def _count_wrong(device: TimingDevice, arm: Arm, sample: Sample, buffers: Buffers) -> int:
    """Return how many words of the results are not the oracle's."""
    for name in sample.outputs:
        device.clear(buffers[name])
    device.run(arm)
    return sum(
        int((np.frombuffer(device.read(buffers[name], len(right.padded)), "<u4") != np.frombuffer(right.padded, "<u4")).sum())
        for name, right in sample.outputs.items()
    )
