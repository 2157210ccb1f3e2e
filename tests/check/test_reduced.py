"""Kernels that reduce: the ranges that their inputs have, shapes on which each pass has several workgroups, and what is said of a group."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import qgen
from qgen.arrays import pack_words
from qgen.check import CounterExample, check_kernel, check_shapes, make_inputs
from qgen.check.compare import describe_mismatch
from qgen.check.reduced import RANGES, STEPS, make_reduced
from qgen.dtypes import DTYPES
from qgen.ir import nodes as ir
from tests.check.kernels import with_changed

FLOAT32 = DTYPES["float32"]
KERNEL = qgen.compile("DynamicQuantizeLinear", x="float32")


def elements(kind: str, count: int = 1000) -> np.ndarray:
    x: np.ndarray = make_inputs(KERNEL, (count,), RANGES.index(kind))["x"]
    return x


def test_inputs_are_the_elements_alone_and_the_same_every_time() -> None:
    for shape in ((), (1,), (5, 7), (2, 0)):
        inputs = make_inputs(KERNEL, shape, 3)
        assert {name: (array.shape, array.dtype) for name, array in inputs.items()} == {"x": (shape, np.dtype(np.float32))}
        assert make_inputs(KERNEL, shape, 3)["x"].tobytes() == inputs["x"].tobytes()


def test_seeds_in_order_give_every_kind_of_range() -> None:
    assert elements("spread").min() < 0 < elements("spread").max()
    one_sign = elements("one sign")
    assert one_sign.min() > 0 or one_sign.max() < 0
    assert np.isnan(elements("edges")).any()
    assert np.isfinite(elements("codes")).all()
    assert np.abs(elements("codes")).max() > 2.0**120
    tiny = elements("tiny")
    assert 0 < np.abs(tiny).max() < 2.0**-126
    zeros = elements("zeros")
    assert not zeros.any()
    assert 0 < np.signbit(zeros).sum() < zeros.size


def test_a_range_is_fitted_to_a_power_of_two_and_its_elements_lie_beside_ties() -> None:
    counts = dict.fromkeys((-1, 0, 1), 0)
    for seed in range(RANGES.index("fitted"), 10 * len(RANGES), len(RANGES)):
        x = make_inputs(KERNEL, (1000,), seed)["x"]
        scale = KERNEL.reference({"x": x})["y_scale"]
        assert math.frexp(float(scale))[0] == 0.5
        quotient = x[2:].astype(np.float64) / float(scale)
        tie = np.floor(quotient) + 0.5
        for step in counts:
            units = np.spacing(np.abs(x[2:])).astype(np.float64) / float(scale)
            counts[step] += int((quotient == tie + step * units).sum())
        assert x.max() - x.min() == STEPS * scale
    assert min(counts.values()) > 1000, counts


def test_one_element_of_a_special_range_is_not_finite_or_the_greatest() -> None:
    found = set()
    for seed in range(RANGES.index("special"), 100 * len(RANGES), len(RANGES)):
        x = make_inputs(KERNEL, (100,), seed)["x"]
        (special,) = x[~(np.abs(x) < 2.0**127)]
        found.add(repr(float(special)))
    assert found == {"inf", "-inf", "nan", "3.4028234663852886e+38", "-3.4028234663852886e+38"}


def test_groups_beside_one_another_have_ranges_of_different_kinds() -> None:
    of, position = (np.repeat(np.arange(len(RANGES)), 50), np.tile(np.arange(50), len(RANGES)))
    values = make_reduced(FLOAT32, of, position, 0, calm=False).view(np.float32).reshape(len(RANGES), 50)
    assert not values[RANGES.index("zeros")].any()
    assert 0 < np.abs(values[RANGES.index("tiny")]).max() < 2.0**-126
    assert values[RANGES.index("spread")].min() < 0 < values[RANGES.index("spread")].max()


def test_calm_inputs_are_ordinary() -> None:
    for seed in range(9):
        x = np.abs(make_inputs(KERNEL, (1000,), seed, calm=True)["x"])
        assert x[x > 0].min() > 2.0**-40
        assert x.max() < 2.0**20


def test_each_pass_over_the_elements_has_several_workgroups_on_some_shape() -> None:
    most: dict[str, int] = {}
    for shape in check_shapes(KERNEL):
        for step in KERNEL.plan({"x": shape}).passes:
            most[step.entry_point] = max(most.get(step.entry_point, 0), math.prod(step.dispatch))
    assert most["reduce"] >= 2
    assert most["main"] >= 2


@pytest.mark.parametrize("shape", [None, (), (3, 43)])
@pytest.mark.parametrize("numerics", ["strict", "exact"])
def test_a_right_kernel_is_found_right(shape: tuple[int, ...] | None, numerics: str) -> None:
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32", shape=shape, numerics=numerics)
    result = check_kernel(kernel, "cpu")
    assert result.ok
    shapes = check_shapes(kernel)
    assert result.elements == 4 * sum(math.prod(each) + len(("y_scale", "y_zero_point")) for each in shapes)


def test_a_wrong_scale_is_found() -> None:
    def shorter(expr: ir.Expr) -> ir.Expr:
        """Change 255 as a float to 254."""
        return replace(expr, value=0x437E0000) if isinstance(expr, ir.Literal) and expr.value == 0x437F0000 else expr

    kernel = with_changed(KERNEL, shorter, only="dynamic_quantize_linear_scale")
    result = check_kernel(kernel, "cpu", [(5, 13)], rounds=len(RANGES))
    assert result.mismatches > len(RANGES) // 2
    assert result.first is not None


def test_a_wrong_result_of_a_group_is_described_by_its_first_element() -> None:
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32", granularity=qgen.blocked(1, 4))
    inputs = make_inputs(kernel, (3, 9), 0)
    want = kernel.reference(inputs)["y_scale"]
    assert want.shape == (3, 3)
    words = pack_words(want, FLOAT32)
    wrong = words.copy()
    wrong[4] ^= 1
    first = describe_mismatch(kernel, inputs, ((3, 9), 0, False), 4, (wrong, words, FLOAT32), name="y_scale")
    x = int(inputs["x"].view(np.uint32)[1, 4])
    assert first == CounterExample((3, 9), 0, calm=False, index=4, inputs={"x": x}, got=int(wrong[4]), want=int(words[4]), result="y_scale")
    assert str(first) == f"shape [3, 9], seed 0, element 4 of y_scale: x {x:#x} gives {int(wrong[4]):#x} instead of {int(words[4]):#x}"


def test_padding_of_a_result_with_one_element_for_each_group_is_described() -> None:
    example = CounterExample((3,), seed=2, calm=False, index=1, inputs={}, got=0xFF, want=0, result="y_zero_point")
    assert str(example) == "shape [3], seed 2, the padding of the last word of y_zero_point gives 0xff instead of 0x0"
