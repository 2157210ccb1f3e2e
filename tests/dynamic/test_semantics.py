"""SEMANTICS 1.4 and rows 21 to 23 of 2.1 by name: scale, zero point and y of the oracle and of the kernel, and what the others give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from qgen.shapes import Granularity, blocked, per_axis, per_tensor
from tests.dynamic.implementations import run_onnx_reference, run_onnxruntime
from tests.dynamic.kernels import INF, NAN, bits, dynamic, float32
from tests.dynamic.scalar import quantize, quantize_groups


@dataclass(frozen=True, slots=True)
class Case:
    """x, and what it becomes."""

    title: str
    x: list[float]
    scale: float
    zero_point: int
    y: list[int]


TINY = 2.0**-149
GREATEST = float(np.finfo(np.float32).max)
CASES = (
    Case("1.4: zero lies inside", [-0.5, 254.5], 1, 0, [0, 254]),
    Case("1.4: zero is the least of positive numbers", [51, 255], 1, 0, [51, 255]),
    Case("1.4: zero is the greatest of negative numbers", [-255, -51], 1, 255, [0, 204]),
    Case("1.4: 0.5 as zero point rounds to even", [-0.5, 254.5, 0.5, 1.5], 1, 0, [0, 254, 0, 2]),
    Case("1.4: 1.5 as zero point rounds to even", [-1.5, 253.5, 1.5, 2.5], 1, 2, [0, 255, 4, 4]),
    Case("1.4: round, then shift, then clamp", [-127.5, 127.5], 1, 128, [0, 255]),
    Case("1.4: all zeros but one", [0, 0, 255], 1, 0, [0, 0, 255]),
    Case("1.4: the range overflows", [GREATEST, -GREATEST, 1, 0], INF, 0, [0, 0, 0, 0]),
    Case("1.4: the scale underflows to zero", [TINY, -TINY], 0, 255, [255, 0]),
    Case("1.4: the scale underflows to zero, and so is a quotient of zeros NaN", [TINY, -TINY, 0], 0, 255, [255, 0, 0]),
    Case("1.4: the scale is subnormal", [255 * TINY, 0, TINY], TINY, 0, [255, 0, 1]),
    Case("1.4: an infinite maximum", [INF, 0, 1, -1], INF, 0, [0, 0, 0, 0]),
    Case("1.4: -0 is 0", [-0.0, 255], 1, 0, [0, 255]),
    Case("21: all zero", [0, 0], 1, 0, [0, 0]),
    Case("21: -0 alone", [-0.0], 1, 0, [0]),
    Case("21: zeros of both signs", [0.0, -0.0], 1, 0, [0, 0]),
    Case("22: NaN first", [NAN, 1, -1], NAN, 0, [0, 0, 0]),
    Case("22: NaN last", [1, -1, NAN], NAN, 0, [0, 0, 0]),
    Case("22: NaN and infinities", [INF, NAN, -INF], NAN, 0, [0, 0, 0]),
    Case("22: NaN alone", [NAN], NAN, 0, [0]),
    Case("23: -infinity", [1, -INF], INF, 255, [255, 0]),
    Case("23: both infinities", [INF, -INF, 0], INF, 255, [0, 0, 255]),
)  # fmt: skip


@pytest.mark.parametrize("numerics", ["exact", "strict"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.title))
def test_what_x_becomes(case: Case, numerics: str) -> None:
    x = float32(case.x)
    wanted = bits({"y": np.array(case.y, np.uint8), "y_scale": float32(case.scale), "y_zero_point": np.array(case.zero_point, np.uint8)})
    assert bits(dynamic().reference({"x": x})) == wanted
    assert bits(dynamic(numerics=numerics).run({"x": x}, device="cpu")) == wanted
    assert bits(dynamic(shape=x.shape, numerics=numerics).run({"x": x}, device="cpu")) == wanted
    y, scale, zero_point = quantize(x)
    assert bits({"y": np.array(y, np.uint8), "y_scale": float32(scale), "y_zero_point": np.array(zero_point, np.uint8)}) == wanted


GROUPS: list[tuple[Granularity, tuple[int, ...], tuple[int, ...]]] = [
    (per_tensor(), (0,), ()),
    (per_tensor(), (2, 0, 3), ()),
    (per_axis(0), (3, 0), (3,)),
    (per_axis(-1), (3, 0), (0,)),
    (blocked(-1, 4), (0, 5), (0, 2)),
    (blocked(0, 2), (3, 0), (2, 0)),
]


@pytest.mark.parametrize("is_baked", [False, True], ids=["uniform", "baked"])
@pytest.mark.parametrize(("granularity", "shape", "groups"), GROUPS, ids=str)
def test_row_21_an_empty_x_has_the_constants_of_the_sidecar(
    granularity: Granularity, shape: tuple[int, ...], groups: tuple[int, ...], *, is_baked: bool
) -> None:
    kernel = dynamic(granularity, shape if is_baked else None)
    wanted = bits({"y": np.zeros(shape, np.uint8), "y_scale": np.ones(groups, np.float32), "y_zero_point": np.zeros(groups, np.uint8)})
    x = np.zeros(shape, np.float32)
    assert kernel.sidecar["on_empty"] == {"y_scale": 0x3F800000, "y_zero_point": 0}
    assert kernel.plan({"x": shape}).is_empty
    assert bits(kernel.reference({"x": x})) == wanted
    assert bits(kernel.run({"x": x}, device="cpu")) == wanted


@pytest.mark.parametrize("place", range(5))
def test_row_22_a_nan_makes_all_of_its_group_zero_and_nothing_else(place: int) -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    x[1, place] = np.nan
    wanted = quantize_groups(x, per_axis(0))
    assert np.isnan(wanted["y_scale"]).tolist() == [False, True, False]
    assert bits(dynamic(per_axis(0)).run({"x": x}, device="cpu")) == bits(dict(wanted))


def test_where_another_implementation_is_not_right_semantics_decides() -> None:
    """What is said of them in rows 21 to 23, as they are today."""
    for x, reference, runtime in (
        ([0, 0], (1 / np.float32(255), 0, [0, 0]), (1, 0, [0, 0])),
        ([1, -INF], (INF, 255, [255, 0]), (INF, 255, [255, 0])),
        ([NAN, 1], (NAN, 255, None), None),
    ):
        for run, wanted in ((run_onnx_reference, reference), (run_onnxruntime, runtime)):
            if wanted is None:
                continue
            results = run(float32(x))
            scale, zero_point, y = wanted
            assert np.array_equal(results["y_scale"], float32(scale), equal_nan=True)
            assert results["y_zero_point"] == zero_point
            if y is not None:
                assert results["y"].tolist() == y


def test_row_22_onnxruntime_depends_on_where_the_nan_stands() -> None:
    x = np.linspace(-100, 50, 40, dtype=np.float32)
    scales = set()
    for place in range(x.size):
        moved = x.copy()
        moved[place] = np.nan
        scales.add(repr(float(run_onnxruntime(moved)["y_scale"])))
    assert len(scales) > 1
