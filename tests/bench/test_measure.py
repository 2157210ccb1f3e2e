"""One sample from end to end: copies move bytes, kernels are judged before they are timed. Nothing here asks how long anything takes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from qgen.errors import InternalError, UnavailableError
from tests.bench.cases import CASES, Case
from tests.bench.copies import COPIES, Mover, half_of, make_copy, make_reader, make_twin
from tests.bench.device import TimingDevice
from tests.bench.measure import measure_sample
from tests.bench.sample import Sample, Tensor, make_sample
from tests.runtime.stacks import LAVAPIPE, SWIFTSHADER

COUNT = 1 << 10
HARNESS = """
const beginComputePass = GPUCommandEncoder.prototype.beginComputePass, requestDevice = GPUAdapter.prototype.requestDevice;
GPUDevice.prototype.createShaderModule = () => null;
const COPY = (size, vectors) => `copy ${size} ${vectors}`;
const TWIN = (read, written) => [true, 4, `twin ${read} ${written}`];
window.PB = {};
"""


@pytest.fixture(scope="module")
def device() -> TimingDevice:
    return TimingDevice(LAVAPIPE)


def find(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def sample_of(name: str) -> Sample:
    return make_sample(find(name), data="random", count=COUNT, forms=("baked", "uniform"), modes=("exact", "fast"), target="webgpu")


def moved(device: TimingDevice, mover: Mover, nbytes: int, into: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what was in one buffer, and what is in the other after `mover` ran."""
    data = np.random.default_rng(0).integers(0, 1 << 32, nbytes // 4, np.uint64).astype("<u4")
    buffers = device.make_buffer(nbytes, data.tobytes()), device.make_buffer(into)
    assert device.run(device.make_mover(mover, *buffers)) >= 0
    found = np.frombuffer(device.read(buffers[1], into), "<u4")
    device.destroy(buffers)
    return data.reshape(-1, 4), found.reshape(-1, 4)


@pytest.mark.parametrize(("size", "vectors"), COPIES)
@pytest.mark.parametrize("total", [32, 1 << 16, (1 << 22) + 64])
def test_a_copy_moves_half_of_the_bytes(device: TimingDevice, size: int, vectors: int, total: int) -> None:
    data, found = moved(device, make_copy(total, size, vectors, None), half_of(total), half_of(total))
    assert np.array_equal(found, data)


def test_the_twin_of_a_case_that_writes_more_repeats_what_it_reads(device: TimingDevice) -> None:
    data, found = moved(device, make_twin(1 << 12, 1 << 14, None), 1 << 12, 1 << 14)
    assert np.array_equal(found, data.repeat(4, axis=0))


def test_the_twin_of_a_case_that_reads_more_folds_it(device: TimingDevice) -> None:
    data, found = moved(device, make_twin(1 << 14, 1 << 11, None), 1 << 14, 1 << 11)
    assert np.array_equal(found, np.bitwise_xor.reduce(data.reshape(-1, 8, 4), axis=1))


def test_the_second_reading_writes_nothing(device: TimingDevice) -> None:
    _, found = moved(device, make_reader(1 << 14), 1 << 14, 16)
    assert not found.any()


def test_the_texts_of_a_harness_are_taken_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "page.mjs").write_text(HARNESS, encoding="utf-8")
    assert make_twin(100, 400, tmp_path) == Mover("twin 100 400", (1, 1, 1))
    assert make_copy(1 << 30, 64, 1, tmp_path) == Mover("copy 64 1", (58255, 9, 1))


@pytest.mark.parametrize("name", ["dequantize uint4 → float32 blocked 32 axis 1 zp", "dynamic float32 → uint8"])
def test_a_sample_gives_a_row_a_kernel(device: TimingDevice, name: str) -> None:
    rows = measure_sample(device, LAVAPIPE, sample_of(name), 1, None)
    assert [(row.form, row.mode) for row in rows] == [("baked", "exact"), ("baked", "fast"), ("uniform", "exact"), ("uniform", "fast")]
    assert all(row.ms > 0 and row.is_software and row.adapter == device.name for row in rows)
    assert [row.vs_fast is None for row in rows] == [False, True, False, True]
    assert [row.wrong for row in rows if row.mode == "exact"] == [0, 0]


def test_a_wrong_bit_ends_the_run(device: TimingDevice) -> None:
    sample = sample_of("dequantize int8 → float32 per-axis 0")
    right = sample.outputs["y"]
    data = right.data.copy()
    data[5] ^= 1
    changed = dataclasses.replace(sample, outputs={"y": Tensor(right.dtype, right.shape, data)})
    with pytest.raises(InternalError, match=r"dequantize int8 → float32 per-axis 0, baked, random data, exact on .*: 1 words are wrong"):
        measure_sample(device, LAVAPIPE, changed, 1, None)


def test_dawn_takes_timestamps_too() -> None:
    rows = measure_sample(TimingDevice(SWIFTSHADER), SWIFTSHADER, sample_of("quantize float32 → uint8 per-tensor zp"), 1, None)
    assert all(row.ms > 0 and "SwiftShader" in row.adapter for row in rows)


def test_what_has_no_python_api_is_refused() -> None:
    with pytest.raises(UnavailableError, match="QG611"):
        TimingDevice("node")
