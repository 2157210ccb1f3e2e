"""Kernels for plain scales: which scales are, what their kernels say of it, and that no other scale is taken in silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

import qgen
from qgen.arrays import from_codes, to_codes
from qgen.check import check_kernel, make_inputs
from qgen.compiler import find_condition
from qgen.evaluate import worst_models
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.types import Scalar
from qgen.kernel import Kernel, compile_request, know_scale
from qgen.passes import pipeline
from qgen.passes.discharge import Condition
from qgen.plain import are_plain, plain_intervals
from qgen.request import make_request, request_of_sidecar
from tests.sidecar.test_schema import VALIDATOR

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
SCALES: Final = ("float32", "float16", "bfloat16", "float8e8m0", "int32")
"""The types of scales; the last for QuantizeLinear alone."""


def condition_of(op: str = DEQUANTIZE, scale: str = "float32") -> Condition:
    words: dict[str, Any] = {"x": "int8", "y": "float32"} if op == DEQUANTIZE else {"x": "float32", "y": "uint8", "precision": "float32"}
    condition = find_condition(make_request(op, scale=scale, **words))
    assert condition is not None
    return condition


def inside(codes: NDArray[np.uint32], condition: Condition) -> NDArray[np.bool_]:
    """Return which codes lie in one of the intervals."""
    found: NDArray[np.bool_] = np.any([(codes >= low) & (codes <= high) for low, high in plain_intervals(condition)], axis=0)
    return found


def dequantize(**choices: Any) -> Kernel:  # noqa: ANN401 - what `qgen.compile` takes
    return qgen.compile(DEQUANTIZE, **{"x": "int8", "scale": "float32", "granularity": qgen.per_axis(0), "shape": (4, 32), **choices})


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("op", [QUANTIZE, DEQUANTIZE])
def test_the_intervals_are_the_condition(op: str, scale: str) -> None:
    if (op, scale) == (DEQUANTIZE, "int32"):
        op = QUANTIZE
    condition = condition_of(op, scale)
    dtype = condition.scale.dtype
    if dtype.bits <= 16:
        codes = np.arange(1 << dtype.bits, dtype=np.uint32)
    else:
        ends = np.array(plain_intervals(condition), np.int64).reshape(-1)
        near = (ends[:, np.newaxis] + np.arange(-300, 301)).reshape(-1)
        some = np.random.default_rng(4).integers(0, 1 << 32, 1 << 20)
        codes = np.unique(np.concatenate([near, some, np.arange(0, 1 << 32, 65_521)]) % (1 << 32)).astype(np.uint32)
    assert np.array_equal(are_plain(condition, codes), inside(codes, condition))


def test_the_ends_are_those_of_the_exponents_that_the_library_names() -> None:
    assert plain_intervals(condition_of()) == ((0x01000000, 0x72FFFFFF), (0x81000000, 0xF2FFFFFF))
    assert plain_intervals(condition_of(QUANTIZE)) == ((0x0C800000, 0x76FFFFFF), (0x8C800000, 0xF6FFFFFF))
    assert plain_intervals(condition_of(QUANTIZE, "int32")) == ((1, 0xFFFFFFFF),)


def test_a_kernel_for_known_scales_has_neither_their_test_nor_other_code() -> None:
    any_scale, plain = dequantize(), dequantize(known_scale=np.full(4, 0.5, np.float32))
    assert {"is_plain", "mul_small"} <= set(any_scale.wgsl.replace("(", " ").split())
    assert "is_plain" not in plain.wgsl
    assert "mul_small" not in plain.wgsl
    assert "again" not in plain.wgsl
    assert len(plain.wgsl) < len(any_scale.wgsl) / 2
    assert plain.name.startswith("dequantize_linear_i8_f32_f32_axis0_4x32_exact_plain_")


def test_a_tail_is_computed_by_quick_code_too() -> None:
    plain = dequantize(shape=None, plain_scale=True)
    assert "mul_small" not in plain.wgsl
    assert check_kernel(plain, "cpu").ok


def test_what_depends_on_x_stays() -> None:
    plain = qgen.compile(QUANTIZE, x="float32", y="uint8", shape=(64,), plain_scale=True)
    assert "rint_quotient_takes_s" not in plain.wgsl
    assert "rint_quotient_holds_4" in plain.wgsl
    assert "fn div_f32" in plain.wgsl


@pytest.mark.parametrize("value", [0.0, float("nan"), 1e-39, 2e31])
def test_one_scale_that_is_not_plain_gives_the_kernel_for_any(value: float) -> None:
    scales = np.array([0.5, 0.25, value, 1.0], np.float32)
    assert dequantize(known_scale=scales).wgsl == dequantize().wgsl


@pytest.mark.parametrize("mode", ["strict", "fast"])
def test_where_nothing_is_asked_of_a_scale_nothing_is_left_out(mode: str) -> None:
    assert dequantize(numerics=mode, plain_scale=True).sidecar == dequantize(numerics=mode).sidecar
    assert dequantize(numerics=mode, known_scale=np.ones(4, np.float32)).sidecar == dequantize(numerics=mode).sidecar


@pytest.mark.parametrize(
    ("code", "words", "scale"),
    [
        ("QG240", {}, np.ones(4, np.float64)),
        ("QG226", {}, np.ones(5, np.float32)),
        ("QG113", {"plain_scale": True}, np.zeros(4, np.float32)),
    ],
)
def test_scales_that_cannot_be_the_kernels_are_refused(code: str, words: dict[str, Any], scale: NDArray[Any]) -> None:
    with pytest.raises(qgen.QgenError) as caught:
        dequantize(known_scale=scale, **words)
    assert caught.value.code == code


def test_a_scale_that_is_a_result_is_not_known() -> None:
    with pytest.raises(qgen.QgenError) as caught:
        know_scale(make_request("DynamicQuantizeLinear", x="float32"), np.ones((), np.float32))
    assert caught.value.code == "QG111"


def test_the_sidecar_says_what_is_relied_on_and_the_kernel_is_found_again_by_it() -> None:
    plain = dequantize(plain_scale=True)
    VALIDATOR.validate(plain.sidecar)
    (assumed,) = plain.sidecar["assumes"]
    assert assumed["buffer"] == "x_scale"
    assert assumed["codes"] == [[0x01000000, 0x72FFFFFF], [0x81000000, 0xF2FFFFFF]]
    assert assumed["condition"] == "every x_scale has a magnitude from 2.3509887e-38 to 1.01412042e+31"
    assert "fn is_plain(x_scale: u32) -> bool {" in assumed["wgsl"]
    assert f"// Relies on: {assumed['condition']}." in plain.wgsl
    again = compile_request(request_of_sidecar(plain.sidecar))
    assert (again.wgsl, again.sidecar) == (plain.wgsl, plain.sidecar)
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(plain.sidecar | {"assumes": [{"buffer": "x_scale"}]})
    assert "assumes" not in dequantize().sidecar


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ("float16", "every y_scale has a magnitude from 5.96046448e-08 to 65504"),
        ("float8e8m0", "every y_scale is from 1.97215226e-31 to 1.29807421e+33"),
        ("int32", "every y_scale is from -2147483648 to -1, or from 1 to 2147483647"),
    ],
)
def test_the_words_fit_the_type_of_the_scale(scale: str, words: str) -> None:
    kernel = qgen.compile(QUANTIZE, x="float32", scale=scale, y="uint8", precision="float32", plain_scale=True)
    assert kernel.sidecar["assumes"][0]["condition"] == words


@pytest.mark.parametrize("op", [QUANTIZE, DEQUANTIZE])
def test_inputs_for_a_kernel_of_plain_scales_are_plain_and_reach_the_ends(op: str) -> None:
    words: dict[str, Any] = {"x": "int8", "scale": "float32"} if op == DEQUANTIZE else {"x": "float32", "y": "uint8"}
    kernel = qgen.compile(op, granularity=qgen.per_axis(0), plain_scale=True, **words)
    condition = find_condition(kernel.request)
    assert condition is not None
    seen: set[int] = set()
    for seed in range(4):
        codes = to_codes(make_inputs(kernel, (64, 8), seed, calm=seed == 3)[kernel.inputs[1]], "float32")
        assert are_plain(condition, codes).all()
        seen |= set(codes.tolist())
    assert seen >= set(np.array(plain_intervals(condition)).reshape(-1).tolist())


@pytest.mark.parametrize("step", [-1, 1])
def test_the_neighbours_of_the_ends_are_refused_or_fall_back(step: int) -> None:
    plain, condition = dequantize(plain_scale=True), condition_of()
    ends = np.array(plain_intervals(condition), np.int64)[:, 0 if step < 0 else 1]
    x = np.arange(128, dtype=np.uint8).view(np.int8).reshape(4, 32)
    for end in ends:
        scales = [
            from_codes(np.array([0x3F000000, code, 0x3F000000, 0x3F000000], np.uint32), "float32", (4,)) for code in (end, end + step)
        ]
        taken, refused = ({"x": x, "x_scale": scale} for scale in scales)
        assert plain.run(taken, "cpu")["y"].tobytes() == plain.reference(taken)["y"].tobytes()
        with pytest.raises(qgen.QgenError, match="element 1 of `x_scale`") as caught:
            plain.run(refused, "cpu")
        assert caught.value.code == "QG113"
        fallback = dequantize(known_scale=scales[1])
        assert fallback.wgsl == dequantize().wgsl
        assert fallback.run(refused, "cpu")["y"].tobytes() == fallback.reference(refused)["y"].tobytes()


def forget_every_condition(program: Program) -> Program:
    """Return the program as a wrong discharge would leave it: without the conditions on x too."""
    true = ir.Literal(value=True, type=Scalar.BOOL)
    bodies = [
        tuple(
            ir.Write(stmt.operand, stmt.quick.value, ir.Quick(stmt.quick.value, true))
            if isinstance(stmt, ir.Write) and stmt.quick is not None
            else stmt
            for stmt in kernel.body
        )
        for kernel in program.kernels
    ]
    return replace(program, kernels=tuple(replace(kernel, body=body) for kernel, body in zip(program.kernels, bodies, strict=True)))


def test_a_condition_on_x_that_is_left_out_is_found_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    words: dict[str, Any] = {"x": "float32", "y": "uint8", "granularity": qgen.per_axis(0), "shape": (64, 32), "plain_scale": True}
    right = qgen.compile(QUANTIZE, **words)
    monkeypatch.setattr(pipeline, "discharge_scale", forget_every_condition)
    pipeline._hoist_kept.cache_clear()
    wrong = qgen.compile(QUANTIZE, **words)
    pipeline._hoist_kept.cache_clear()
    # What a division may be off by is what the conditions on x are for: the CPU's own is off by nothing.
    assert all(check_kernel(right, "cpu", model=model).ok for model in worst_models("exact"))
    assert not all(check_kernel(wrong, "cpu", model=model).ok for model in worst_models("exact"))


def test_a_scale_that_is_wrongly_taken_for_plain_is_found_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = dequantize(shape=(64, 32), plain_scale=True)
    assert check_kernel(kernel, "cpu").ok
    monkeypatch.setattr("qgen.check.inputs.are_plain", lambda _, codes: np.ones(codes.shape, np.bool_))
    with pytest.raises(qgen.QgenError) as caught:
        check_kernel(kernel, "cpu")
    assert caught.value.code == "QG113"
    monkeypatch.setattr("qgen.plain.are_plain", lambda _, codes: np.ones(codes.shape, np.bool_))
    assert not check_kernel(kernel, "cpu").ok


def test_a_function_for_known_scales_is_as_short() -> None:
    words: dict[str, Any] = {"x": "int4", "scale": "float16", "shape": (4, 64), "granularity": qgen.blocked(-1, 32)}
    any_scale = qgen.compile_function(DEQUANTIZE, **words)
    plain = qgen.compile_function(DEQUANTIZE, known_scale=np.ones((4, 2), np.float16), **words)
    assert "mul_small" in any_scale.wgsl
    assert "mul_small" not in plain.wgsl
    assert "// Relies on: every x_scale has a magnitude from 5.96046448e-08 to 65504. Nothing here tests it." in plain.wgsl
