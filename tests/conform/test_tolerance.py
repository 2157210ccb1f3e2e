"""`fast` within its stated bound: elements outside the domain do not count, what is beyond the bound is found."""

from __future__ import annotations

import numpy as np
import pytest

import qgen
from qgen.arrays import to_codes
from qgen.check import make_inputs, matrix_requests
from qgen.conform import tolerance
from qgen.conform.matrix import mode_variants
from qgen.conform.tolerance import check_tolerance, count_steps, find_domain
from qgen.dtypes import DTYPES
from qgen.kernel import Kernel, compile_request
from tests.conform.faults import Words, flip, inject


def fast(**words: object) -> Kernel:
    return qgen.compile("QuantizeLinear", x="float32", numerics="fast", **words)  # type: ignore[arg-type]  # options by name


@pytest.mark.parametrize("stack", ["cpu", "cpu:worst"])
def test_kernels_spread_over_the_matrix_are_within_their_bound(stack: str) -> None:
    numbered = list(enumerate(matrix_requests()))
    for number, request in numbered[1 :: len(numbered) // 12]:
        result = check_tolerance(compile_request(mode_variants(request, number, "fast")[0]), stack, 67 * number)
        assert result.ok, str(result)
        assert result.elements > 0


@pytest.mark.parametrize("y", ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"])
def test_what_overflows_leaves_its_neighbours_alone(y: str) -> None:
    kernel = fast(y=y, saturate=False)
    x = np.array([1.0, 3e9, 2.0, -3e9, -1.0, 1e6, np.inf, 0.5], np.float32)
    got = to_codes(kernel.run({"x": x, "y_scale": np.ones((), np.float32)}, "cpu")["y"], y)
    want = to_codes(kernel.reference({"x": x, "y_scale": np.ones((), np.float32)})["y"], y)
    assert count_steps(got[[0, 2, 4, 5, 7]], want[[0, 2, 4, 5, 7]], DTYPES[y]).tolist() == [0] * 5


def test_a_step_too_far_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def far(_kernel: Kernel, _device: str, words: Words) -> Words:
        return flip(words, 0x02)

    kernel = fast(y="uint8")
    assert kernel.sidecar["numerics"]["max_error"] == 1
    inject(monkeypatch, far, tolerance)
    result = check_tolerance(kernel, "cpu", 0)
    assert result.mismatches > 0
    assert result.first is not None
    assert abs(result.first.got - result.first.want) == 2


def test_the_domain_is_what_the_sidecar_says() -> None:
    kernel = fast(y="uint8")
    x = np.array([1.0, 0.0, 2.0**17, np.inf, np.nan, 2.0**-127, 2.0**-110, 65535.0], np.float32)
    inside = find_domain(kernel, {"x": x, "y_scale": np.ones((), np.float32)}, x.shape)
    assert inside.tolist() == [True, True, False, False, False, False, False, True]
    for scale in (0.0, np.inf, np.nan, 2.0**-127):
        assert not find_domain(kernel, {"x": x, "y_scale": np.array(scale, np.float32)}, x.shape).any()


def test_operands_are_judged_as_the_division_takes_them() -> None:
    kernel = fast(y="uint8", precision="float16")
    x = np.array([1.0, 2.0**-30, 1e6], np.float32)
    assert find_domain(kernel, {"x": x, "y_scale": np.ones((), np.float32)}, x.shape).tolist() == [True, True, False]


def test_ordinary_inputs_are_inside() -> None:
    kernel = fast(y="int8", zero_point=True)
    inputs = make_inputs(kernel, (5, 64), 8, calm=True)
    assert find_domain(kernel, inputs, (5, 64)).mean() > 0.9


@pytest.mark.parametrize(
    ("dtype", "got", "want", "steps"),
    [
        ("uint8", 3, 250, 247),
        ("int8", 0xFF, 0x01, 2),
        ("float16", 0x8000, 0x0000, 0),
        ("float16", 0x8001, 0x0001, 2),
        ("float8e4m3fn", 0x7E, 0x7F, 1),
        ("float8e4m3fn", 0xFF, 0x7F, 0),
        ("float8e4m3fn", 0x7F, 0xFD, 2),
        ("float8e4m3fnuz", 0x80, 0xFF, 1),
        ("float8e4m3fnuz", 0x7F, 0x80, 1),
        ("float8e5m2", 0x7C, 0xFE, 1),
        ("float6e2m3", 0x21, 0x00, 1),
    ],
)
def test_steps_are_counted_in_the_order_of_values(dtype: str, got: int, want: int, steps: int) -> None:
    codes = np.array([got, want], np.uint32)
    assert count_steps(codes[:1], codes[1:], DTYPES[dtype]).tolist() == [steps]
