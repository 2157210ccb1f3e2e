"""`fast` within its stated bound: elements outside the domain do not count, what is beyond the bound is found."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import qgen
from qgen.arrays import from_codes, to_codes, unpack_words
from qgen.check import make_inputs, matrix_requests
from qgen.check.compare import run_kernel
from qgen.check.edges import decode, encode
from qgen.conform import tolerance
from qgen.conform.matrix import mode_variants
from qgen.conform.tolerance import check_tolerance, count_steps, find_domain
from qgen.dtypes import DTYPES
from qgen.evaluate.worst import worst_models
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


def bounded() -> list[Kernel]:
    """Return a kernel of each output type, type of the division and bound that the matrix has, x being float32 or int32."""
    found: dict[tuple[str, str, int], Kernel] = {}
    for request in matrix_requests(numerics="fast"):
        signature = request.signature
        if request.granularity.kind == "per_axis" and signature.x.name in {"float32", "int32"} and signature.is_quantize:
            kernel = compile_request(request)
            bound = kernel.sidecar["numerics"]["max_error"]
            found.setdefault((signature.y.name, str(signature.division), bound), kernel)
    return list(found.values())


def just_off_a_tie(kernel: Kernel) -> tuple[Fraction, Fraction]:
    """Return x and scale whose quotient 2.5 ULP take across a midpoint: of two codes of y, or of two of float16 and so of y.

    2018 / 1793 is 2.3 ULP below the midpoint after 9 / 8.
    """
    signature = kernel.request.signature
    y = signature.y
    if signature.division != DTYPES["float16"]:
        tie = Fraction(1, 2) if y.format is None else Fraction(float(decode(np.array([1], np.uint32), y)[0])) / 2
        return (tie, Fraction(1)) if signature.x.is_float else (Fraction(1), 1 / tie)
    if y.is_integer:
        return Fraction(2018), Fraction(1793) / (4 if y.bits < 16 else 1 << (14 if y.min else 15))
    raise AssertionError(f"no native quotient of float16s becomes {y.name}")


def midpoints_crossed() -> Iterator[tuple[float, float]]:
    """Yield the two float16 beside each midpoint that a quotient of float16s in [1, 2) may cross, the right one first, of all there are."""
    for divisor in range(1 << 10, 1 << 11):
        significands = np.arange(1 << 10, 1 << 11)
        x = np.where(significands < divisor, 2 * significands, significands)
        below = (x << 11) // divisor
        for middle in (below, below + 1):
            # In units of 2^-11 / divisor; an ULP is 2^-12 of the divisor. A midpoint itself is rounded up.
            off = (x << 11) - middle * divisor
            crosses = (middle % 2 == 1) & ((off < 0) & (-off << 13 <= 5 * divisor) | (off > 0) & (off << 13 <= 3 * divisor))
            for number, is_below in zip(middle[crosses].tolist(), (off[crosses] < 0).tolist(), strict=True):
                beside = ((number - 1) / 2048, (number + 1) / 2048)
                yield beside if is_below else beside[::-1]


def test_no_midpoint_beside_a_tie_of_three_bits_is_crossed() -> None:
    crossed = np.array(sorted(set(midpoints_crossed())))
    assert len(crossed) > 100
    reached = set()
    for name in ("uint2", "int2", "float4e2m1", "uint4", "int4", "float6e2m3", "float6e3m2", "float8e4m3fn", "float8e5m2"):
        for exponent in range(-9, 5):
            right, wrong = (encode(column * 2.0**exponent, DTYPES[name]) for column in crossed.T)
            if (right != wrong).any():
                reached.add(name)
    assert reached == {"uint4", "int4", "float6e2m3", "float6e3m2", "float8e4m3fn", "float8e5m2"}
    for name in ("uint2", "int2", "float4e2m1"):
        kernel = fast(y=name, precision="float16", zero_point=True)
        assert kernel.sidecar["numerics"]["max_error"] == 0


def test_every_bound_of_fast_is_reached_within_a_factor_of_two() -> None:
    kernels = bounded()
    bounds = [kernel.sidecar["numerics"]["max_error"] for kernel in kernels]
    assert set(bounds) == {0, 1, 32}
    for kernel, bound in zip(kernels, bounds, strict=True):
        if bound == 0:
            continue
        x, scale = just_off_a_tie(kernel)
        signature = kernel.request.signature
        shape, groups = (1, 256), (256,)  # what fills no invocation is computed in integers
        operands = {"x": (x, signature.x, shape), "y_scale": (scale, signature.scale, groups), "y_zero_point": (None, signature.y, groups)}
        inputs = {}
        for name in kernel.inputs:
            value, dtype, dims = operands[name]
            inputs[name] = from_codes(encode(np.full(groups, float(value or 0)), dtype), dtype, dims)
        assert find_domain(kernel, inputs, shape).all(), kernel.name
        want = to_codes(kernel.reference(inputs)["y"], signature.y)
        steps = 0
        for model in worst_models("exact"):
            words = run_kernel(kernel, "cpu", inputs, model)["y"]
            got = to_codes(unpack_words(words, signature.y, shape), signature.y)
            steps = max(steps, int(count_steps(got, want, signature.y).max()))
        assert bound <= 2 * steps <= 2 * bound, f"{kernel.name}: {steps} of {bound} steps"


@pytest.mark.parametrize(
    ("op", "words", "bound"),
    [
        ("DequantizeLinear", {"x": "int32", "scale": "float32"}, 0),
        ("DynamicQuantizeLinear", {"x": "float32"}, 1),
        ("QuantizeLinear", {"x": "float32", "y": "uint16", "zero_point": True, "precision": "bfloat16"}, 0),
        ("QuantizeLinear", {"x": "float32", "y": "uint16", "zero_point": True, "precision": "float16"}, 32),
        ("QuantizeLinear", {"x": "float32", "y": "uint16", "zero_point": True}, 1),
        ("QuantizeLinear", {"x": "float16", "scale": "bfloat16", "y": "uint16", "zero_point": True, "precision": "float16"}, 0),
        ("QuantizeLinear", {"x": "int32", "scale": "float32", "y": "uint16", "zero_point": True}, 1),
    ],
)
def test_bounds_go_by_what_is_divided(op: str, words: dict[str, Any], bound: int) -> None:
    assert qgen.compile(op, numerics="fast", **words).sidecar["numerics"]["max_error"] == bound


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
