"""The oracle and the kernel against onnx.backend.test, onnx.reference and ONNX Runtime, bit for bit, where these are right."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from numpy.typing import NDArray
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from qgen.shapes import per_tensor
from tests.dynamic.implementations import RESULTS, run_onnx_reference, run_onnxruntime
from tests.dynamic.kernels import INF, bits, dynamic, float32
from tests.dynamic.scalar import quantize_groups

BACKEND_CASES = (
    "test_dynamicquantizelinear",
    "test_dynamicquantizelinear_max_adjusted",
    "test_dynamicquantizelinear_min_adjusted",
)


@pytest.fixture(scope="module")
def backend_cases() -> dict[str, TestCase]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx computes the cases of all its operators, some of them at infinity
        cases = load_model_tests(kind="node")
    return {case.name: case for case in cases if case.name.startswith("test_dynamicquantizelinear")}


def test_no_case_of_onnx_backend_test_is_left_out(backend_cases: dict[str, TestCase]) -> None:
    """Those whose names end in `_expanded` compute the function body, in which row 21 comes out otherwise."""
    assert sorted(name for name in backend_cases if not name.endswith("_expanded")) == sorted(BACKEND_CASES)


@pytest.mark.parametrize("name", BACKEND_CASES)
def test_a_case_of_onnx_backend_test(name: str, backend_cases: dict[str, TestCase]) -> None:
    case = backend_cases[name]
    assert case.data_sets
    for (x,), outputs in case.data_sets:
        given = _from_onnx(x)
        wanted = bits(dict(zip(RESULTS, map(_from_onnx, outputs), strict=True)))
        assert bits(dynamic().reference({"x": given})) == wanted
        assert bits(dynamic().run({"x": given}, device="cpu")) == wanted
        assert bits(dynamic(shape=given.shape).run({"x": given}, device="cpu")) == wanted


def _from_onnx(array: Any) -> NDArray[Any]:  # noqa: ANN401 - what onnx has in its data sets: arrays, numpy scalars and TensorProto
    if isinstance(array, onnx.TensorProto):
        return onnx.numpy_helper.to_array(array)
    return np.asarray(array)


TINY, GREATEST = 2.0**-149, float(np.finfo(np.float32).max)
FEW: tuple[list[float], ...] = (
    [0, 0], [5, 5], [-1, -2, -3], [1e-45, -1e-45, 0], [1e-40, 3e-40], [3e38, -3e38, 0], [1, INF, -1], [1, -INF, 0], [-0.0],
    [-0.5, 254.5], [-1.5, 253.5, 1.5, 2.5], [-127, 128, 0.5], [-253, 257, 3], [2.0**-126], [GREATEST], [-GREATEST], [GREATEST, -GREATEST],
    [TINY], [-TINY], [254 * TINY, -TINY, 0], [127 * TINY, 0], [128 * TINY, 0], [INF, -INF], [0.0, -0.0], [INF], [-INF],
    [-2.5, 252.5, 0.5, 1.5], [-254.5, 0.5], [-255.5, 0.0], [-1e-30, 1.0], [2.0**-126, -(2.0**-126)], [1.17549421e-38, 3.4e38],
)  # fmt: skip
"""By hand: nothing to divide, ties of the zero point and of y, ends of the format, underflow and overflow of the scale."""


def _many() -> Iterator[NDArray[np.float32]]:
    """Yield numbers of every magnitude, of one sign and of both, and halves of small integers."""
    rng = np.random.default_rng(11)
    for number in range(2000):
        x = rng.normal(size=rng.integers(1, 400)) * 10.0 ** rng.uniform(-44, 37)
        if number % 3 == 0:
            x = np.rint(rng.normal(size=x.size) * 100) / 2
        if number % 4 == 0:
            x = np.abs(x) * rng.choice([-1, 1])
        yield x.astype(np.float32)


@pytest.mark.parametrize("x", FEW, ids=str)
def test_few_numbers_are_those_of_onnxruntime(x: list[float]) -> None:
    given = float32(x)
    wanted = bits(run_onnxruntime(given))
    assert bits(dynamic().reference({"x": given})) == wanted
    assert bits(dynamic().run({"x": given}, device="cpu")) == wanted


@pytest.mark.parametrize("x", [x for x in FEW if any(x)], ids=str)
def test_few_numbers_are_those_of_onnx_reference_unless_all_are_zero(x: list[float]) -> None:
    given = float32(x)
    results = dynamic().reference({"x": given})
    wanted = run_onnx_reference(given)
    # What is undefined there: a quotient that is NaN or infinite, as an integer (rows 1 and 4).
    with np.errstate(all="ignore"):
        defined = np.isfinite(given / results["y_scale"])
    assert results["y"][defined].tolist() == wanted["y"][defined].tolist()
    assert results["y_scale"] == wanted["y_scale"]
    assert results["y_zero_point"] == wanted["y_zero_point"]


def test_many_numbers_are_those_of_both() -> None:
    kernel = dynamic()
    for x in _many():
        results = bits(kernel.reference({"x": x}))
        assert results == bits(run_onnxruntime(x)), x
        assert results == bits(dict(quantize_groups(x, per_tensor()))), x
        if x.any():
            assert results == bits(run_onnx_reference(x)), x


def test_many_numbers_are_those_of_onnxruntime_in_the_evaluator() -> None:
    kernel = dynamic()
    for number, x in enumerate(_many()):
        if number % 10 == 0:
            assert bits(kernel.run({"x": x}, device="cpu")) == bits(run_onnxruntime(x)), x


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (4, 1, 5), (2, 3, 2, 4), (1, 2, 1, 3, 2), (5000,), (70, 70)], ids=str)
def test_every_rank_is_that_of_onnxruntime(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(len(shape)).normal(0, 3, shape).astype(np.float32)
    wanted = bits(run_onnxruntime(x))
    for kernel in (dynamic(), dynamic(shape=shape)):
        assert bits(kernel.reference({"x": x})) == wanted
        assert bits(kernel.run({"x": x}, device="cpu")) == wanted
