"""The cases that are timed: what a table has, and the data that they are timed on."""

from __future__ import annotations

import numpy as np
import pytest

from qgen.arrays import pack
from qgen.dtypes import DTYPES
from tests.bench.cases import CASES, FORMS, ONNX_CASES, Case, shape_of
from tests.bench.data import KINDS, make_data
from tests.bench.sample import make_sample

COUNT = 1 << 12


def test_each_case_has_its_name_and_its_kernels() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        for form in [form for form in FORMS if case.has_form(form, "exact")]:
            kernel = case.compile(form, shape_of(COUNT, form), "exact", "webgpu")
            assert (kernel.request.shape is None) is ("uniform" in form)


def test_names_say_what_a_case_is() -> None:
    names = [case.name for case in CASES]
    assert names[:3] == [
        "dequantize uint8 → float32 per-tensor zp",
        "dequantize uint4 → float32 per-tensor zp",
        "dequantize uint4 → float32 blocked 32 axis 1 zp",
    ]
    assert names[-2:] == ["quantize float32 → float4e2m1 blocked 32 axis 1 scale float8e8m0", "dynamic float32 → uint8"]


def test_quantize_has_every_case_of_dequantize() -> None:
    twins = {(case.quantized.name, case.granularity) for case in CASES if case.is_quantize and case.x == "float32"}
    missing = {(case.x, case.granularity) for case in ONNX_CASES} - twins
    assert {dtype for dtype, _ in missing} == {"int32"}  # no output of QuantizeLinear
    assert all(case.has_ort for case in ONNX_CASES)


def test_ragged_rows_end_within_a_word_and_a_block() -> None:
    assert (shape_of(1 << 20, "baked"), shape_of(1 << 20, "ragged uniform")) == ((1024, 1024), (1024, 1023))
    assert (shape_of(1 << 21, "uniform"), shape_of(1 << 21, "ragged")) == ((2048, 1024), (2048, 1023))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_data_are_of_the_case_and_the_same_each_time(case: Case) -> None:
    for kind in KINDS:
        shape = shape_of(COUNT, "ragged")
        first, second = make_data(case, kind, shape), make_data(case, kind, shape)
        assert list(first) == list(case.compile("ragged", shape, "exact", "webgpu").inputs)
        assert all(np.array_equal(first[name].view(np.uint8), second[name].view(np.uint8)) for name in first if first[name].ndim)


def quantized(case: Case, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the results of a per-tensor QuantizeLinear, and its quotients."""
    inputs = make_data(case, kind, (64, 64))
    kernel = case.compile("baked", (64, 64), "exact", "webgpu")
    quotients = inputs["x"].astype(np.float64) / inputs["y_scale"].astype(np.float64)
    return kernel.reference(inputs)["y"].astype(np.int64) - inputs["y_zero_point"].astype(np.int64), quotients


def test_each_kind_of_data_has_what_it_is_named_for() -> None:
    case = next(case for case in CASES if case.name == "quantize float32 → uint8 per-tensor zp")
    plain, quotients = quantized(case, "random")
    assert np.abs(quotients).max() == pytest.approx(127)
    assert np.mean(np.abs(plain) < 127) > 0.99
    zeros, _ = quantized(case, "half-zero")
    assert 0.45 < np.mean(zeros == 0) < 0.6
    _, beyond = quantized(case, "saturating")
    assert np.mean(np.abs(beyond) > 128) > 0.4
    _, ties = quantized(case, "ties")
    assert 0.45 < np.mean(np.abs(np.abs(ties - np.floor(ties)) - 0.5) < 1e-4) < 0.6


def test_half_of_the_products_are_ties_in_float16() -> None:
    case = next(case for case in CASES if case.name == "dequantize int8 → float16 per-axis 0")
    inputs = make_data(case, "ties", (64, 64))
    products = np.abs(inputs["x"].astype(np.float64) * inputs["x_scale"].astype(np.float64)[:, None])
    units = products / 2.0 ** (np.floor(np.log2(np.maximum(products, 1e-30))) - DTYPES["float16"].mantissa_bits)
    assert 0.45 < np.mean(units % 1 == 0.5) < 0.65


def test_a_sample_has_tensors_as_onnx_packs_them_and_the_oracle_s_results() -> None:
    case = next(case for case in CASES if case.name == "dequantize uint4 → float32 blocked 32 axis 1 zp")
    sample = make_sample(case, data="random", count=COUNT, forms=("ragged", "ragged uniform"), modes=("exact",), target="webgpu")
    inputs = make_data(case, "random", (64, 63))
    assert list(sample.kernels) == [("ragged", "exact"), ("ragged uniform", "exact")]
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in sample.inputs.items()} == {
        "x": ("uint4", (64, 63)),
        "x_scale": ("float32", (64, 2)),
        "x_zero_point": ("uint4", (64, 2)),
    }
    right = sample.kernels["ragged", "exact"].reference(inputs)["y"]
    assert sample.outputs["y"].data.tobytes() == pack(right, "float32").tobytes()
    assert len(sample.inputs["x"].padded) == sample.inputs["x"].data.size == 64 * 63 // 2
    assert sample.nbytes == 64 * 63 // 2 + 64 * 2 * 4 + 64 + 64 * 63 * 4
