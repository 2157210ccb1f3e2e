"""Requests: defaults, opsets, the division type, what is normalised and what is refused, the errors as goldens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from qgen.dtypes import DTYPES, EXACT, parse_dtype
from qgen.errors import QgenError
from qgen.signatures import GranularityKind, find_rows, resolve_signature, signature_warnings
from tests.goldens import Goldens

RESOLVES_TO = {
    10: 10, 11: 10, 12: 10, 13: 13, 14: 13, 15: 13, 16: 13, 17: 13, 18: 13, 19: 19, 20: 19, 21: 21, 22: 21, 23: 23, 24: 24, 25: 25,
    26: 25, 27: 25, 28: 28,
}  # fmt: skip
OPS = ["QuantizeLinear", "DequantizeLinear"]


def quantize(**request: Any) -> Any:  # noqa: ANN401 - keywords of any type
    return resolve_signature("QuantizeLinear", **({"x": "float32"} | request))


def dequantize(**request: Any) -> Any:  # noqa: ANN401 - keywords of any type
    return resolve_signature("DequantizeLinear", **({"x": "uint8"} | request))


def error_of(call: Callable[[], object]) -> QgenError:
    with pytest.raises(QgenError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("opset", RESOLVES_TO)
def test_an_opset_means_the_newest_version_not_above_it(opset: int) -> None:
    assert quantize(opset=opset).version == dequantize(opset=opset).version == RESOLVES_TO[opset]


@pytest.mark.parametrize("opset", [29, 30, 1000, 9, 1, 0, -1, True, 13.0, "13", None])
@pytest.mark.parametrize("op", OPS)
def test_other_opsets_are_refused_and_28_is_named(op: str, opset: Any) -> None:  # noqa: ANN401 - what a user may pass
    error = error_of(lambda: resolve_signature(op, x="float32" if op == OPS[0] else "uint8", opset=opset))
    assert error.code == "QG202"
    assert "28" in error.hint


def test_defaults() -> None:
    f32, f16, bf16, u8 = (DTYPES[name] for name in ("float32", "float16", "bfloat16", "uint8"))
    plain = quantize()
    assert (plain.domain, plain.version, plain.x, plain.scale, plain.y) == ("ai.onnx", 28, f32, f32, u8)
    assert (plain.zero_point, plain.precision, plain.division, plain.saturate) == (False, None, f32, True)
    assert plain.is_quantize
    assert quantize(x="bfloat16").scale == bf16
    plain = dequantize()
    assert (plain.x, plain.scale, plain.y, plain.division, plain.precision, plain.saturate) == (u8, f32, f32, None, None, True)
    assert not plain.is_quantize
    assert (dequantize(y="float16").scale, dequantize(scale="bfloat16").y) == (f16, bf16)
    assert (dequantize(scale="bfloat16", y="float16").scale, dequantize(scale="bfloat16", y="float16").y) == (bf16, f16)


def test_dtypes_come_in_every_spelling_and_the_domain_may_be_empty() -> None:
    spelled = resolve_signature("QuantizeLinear", x=np.float16, scale=np.dtype("float16"), y=ml_dtypes.uint4, precision="f32", domain="")
    assert spelled == quantize(x="float16", y="uint4", precision="float32")


@pytest.mark.parametrize(
    ("x", "scale", "version", "precision", "division"),
    [
        ("float32", "float32", 10, None, "float32"),
        ("float32", "float32", 13, None, "float32"),
        ("float16", "float16", 19, None, "float16"),
        ("bfloat16", "bfloat16", 21, None, "bfloat16"),
        ("float32", "float16", 23, None, "float16"),
        ("float16", "float32", 23, None, "float32"),
        ("float16", "bfloat16", 28, None, "bfloat16"),
        ("float32", "float16", 23, "float32", "float32"),
        ("float32", "float32", 28, "bfloat16", "bfloat16"),
        ("float32", "float8e8m0", 24, None, "float32"),
        ("float16", "float8e8m0", 24, None, "float32"),
        ("float16", "float8e8m0", 24, "float16", "float16"),
        ("int32", "float32", 10, None, "exact"),
        ("int32", "float32", 13, None, "exact"),
        ("int32", "int32", 19, None, "exact"),
        ("int32", "int32", 28, None, "exact"),
        ("float32", "int32", 23, None, "exact"),
        ("float32", "int32", 23, "float16", "float16"),
        ("int32", "float32", 23, None, "float32"),
        ("int32", "float16", 28, None, "float16"),
        ("int32", "float8e8m0", 28, None, "float32"),
    ],
)
def test_division_types(x: str, scale: str, version: int, precision: str | None, division: str) -> None:
    row = next(row for row in find_rows("ai.onnx", "QuantizeLinear") if row.version == version)
    given = None if precision is None else parse_dtype(precision)
    assert row.division(parse_dtype(x), parse_dtype(scale), given) == (EXACT if division == "exact" else parse_dtype(division))


def test_com_microsoft_divides_in_float32() -> None:
    assert quantize(x="float16", domain="com.microsoft").division == DTYPES["float32"]
    assert quantize(x="float16", opset=19).division == DTYPES["float16"]


@pytest.mark.parametrize("opset", [1, 10, 17, 28])
def test_com_microsoft_has_version_1_whatever_the_opset(opset: int) -> None:
    assert quantize(domain="com.microsoft", opset=opset).version == 1


def test_saturate_is_normalised_where_it_has_no_effect() -> None:
    assert quantize(opset=19, saturate=False) == quantize(opset=19)
    assert quantize(y="int4", saturate=False).saturate is True


@pytest.mark.parametrize("op", OPS)
def test_per_axis_at_opset_10_is_accepted_with_a_warning(op: str) -> None:
    x = "float32" if op == OPS[0] else "uint8"
    signature = resolve_signature(op, x=x, opset=12, granularity_kind="per_axis")
    assert signature.version == 10
    (warning,) = signature_warnings(signature, "per_axis")
    assert "axis 1" in warning
    assert signature_warnings(signature, "per_tensor") == ()
    assert signature_warnings(resolve_signature(op, x=x, opset=13, granularity_kind="per_axis"), "per_axis") == ()
    assert error_of(lambda: resolve_signature(op, x=x, opset=10, granularity_kind="per_axis", axis=0)).code == "QG211"
    assert resolve_signature(op, x=x, opset=13, granularity_kind="per_axis", axis=0).version == 13


@pytest.mark.parametrize(
    ("op", "operand", "dtype", "opset", "first"),
    [
        ("QuantizeLinear", "x", "float16", 18, 19),
        ("QuantizeLinear", "scale", "bfloat16", 13, 19),
        ("QuantizeLinear", "scale", "float8e8m0", 23, 24),
        ("QuantizeLinear", "y", "float8e5m2", 18, 19),
        ("QuantizeLinear", "y", "uint4", 20, 21),
        ("QuantizeLinear", "y", "float4e2m1", 22, 23),
        ("QuantizeLinear", "y", "int2", 24, 25),
        ("QuantizeLinear", "y", "float6e3m2", 27, 28),
        ("DequantizeLinear", "x", "float8e4m3fn", 13, 19),
        ("DequantizeLinear", "x", "int16", 19, 21),
        ("DequantizeLinear", "x", "uint2", 24, 25),
        ("DequantizeLinear", "x", "float6e2m3", 25, 28),
        ("DequantizeLinear", "scale", "float16", 13, 19),
        ("DequantizeLinear", "scale", "float8e8m0", 23, 24),
        ("DequantizeLinear", "y", "bfloat16", 13, 19),
    ],
)
def test_the_first_opset_that_allows_a_dtype_is_named(op: str, operand: str, dtype: str, opset: int, first: int) -> None:
    request: dict[str, Any] = {"x": "float32" if op == OPS[0] else "uint8", operand: dtype, "zero_point": True, "opset": opset}
    error = error_of(lambda: resolve_signature(op, **request))
    assert error.code == "QG203"
    assert f"from opset {first} on" in error.message
    assert f"`{operand}`" in str(error.place)


@pytest.mark.parametrize(
    ("code", "op", "request_"),
    [
        ("QG204", "QuantizeLinear", {"x": "uint8"}),
        ("QG204", "QuantizeLinear", {"x": "float32", "y": "int32"}),
        ("QG204", "QuantizeLinear", {"x": "float32", "y": "float16"}),
        ("QG204", "QuantizeLinear", {"x": "float32", "scale": "uint8"}),
        ("QG204", "DequantizeLinear", {"x": "float32"}),
        ("QG204", "DequantizeLinear", {"x": "uint8", "y": "int8"}),
        ("QG204", "DequantizeLinear", {"x": "uint8", "scale": "int32", "y": "float32"}),
        ("QG204", "DequantizeLinear", {"x": "uint8", "y": "float8e8m0"}),
        ("QG204", "QuantizeLinear", {"x": "bfloat16", "domain": "com.microsoft"}),
        ("QG204", "DequantizeLinear", {"x": "int2", "domain": "com.microsoft"}),
        ("QG205", "QuantizeLinear", {"x": "float16", "scale": "float32", "opset": 22}),
        ("QG205", "QuantizeLinear", {"x": "float16", "scale": "float32", "domain": "com.microsoft"}),
        ("QG205", "QuantizeLinear", {"x": "int32", "scale": "float32", "opset": 19}),
        ("QG206", "QuantizeLinear", {"x": "float32", "y": "int8", "opset": 20}),
        ("QG206", "QuantizeLinear", {"x": "float32", "y": "uint4", "domain": "com.microsoft"}),
        ("QG207", "DequantizeLinear", {"x": "uint8", "scale": "float32", "y": "float16", "opset": 22}),
        ("QG207", "DequantizeLinear", {"x": "uint8", "scale": "float16", "y": "float32", "domain": "com.microsoft"}),
        ("QG208", "DequantizeLinear", {"x": "uint8", "scale": "float8e8m0"}),
        ("QG209", "QuantizeLinear", {"x": "float32", "precision": "float32", "opset": 22}),
        ("QG209", "QuantizeLinear", {"x": "float32", "precision": "float32", "domain": "com.microsoft"}),
        ("QG209", "QuantizeLinear", {"x": "float32", "saturate": False, "opset": 18}),
        ("QG209", "QuantizeLinear", {"x": "float32", "saturate": False, "domain": "com.microsoft"}),
        ("QG209", "DequantizeLinear", {"x": "uint8", "precision": "float32"}),
        ("QG209", "DequantizeLinear", {"x": "uint8", "saturate": False}),
        ("QG210", "QuantizeLinear", {"x": "float32", "precision": "int32"}),
        ("QG210", "QuantizeLinear", {"x": "float32", "precision": "float8e8m0"}),
        ("QG101", "QuantizeLinear", {"x": "float32", "precision": "float64"}),
        ("QG101", "QuantizeLinear", {"x": "float64"}),
        ("QG211", "QuantizeLinear", {"x": "float32", "granularity_kind": "blocked", "opset": 20}),
        ("QG211", "DequantizeLinear", {"x": "uint8", "granularity_kind": "blocked", "domain": "com.microsoft"}),
        ("QG200", "QuantiseLinear", {"x": "float32"}),
        ("QG200", "", {"x": "float32"}),
        ("QG201", "QuantizeLinear", {"x": "float32", "domain": "ai.onnx.ml"}),
    ],
)
def test_what_is_refused(code: str, op: str, request_: dict[str, Any]) -> None:
    error = error_of(lambda: resolve_signature(op, **request_))
    assert error.code == code
    assert error.hint


@pytest.mark.parametrize(
    ("op", "hint"),
    [
        ("quantizelinear", "`QuantizeLinear`"),
        ("Dequantize", "`DequantizeLinear`"),
        ("Quantize", "`QuantizeLinear`"),
        ("MatMul", "the operators are"),
    ],
)
def test_an_unknown_operator_suggests_the_nearest(op: str, hint: str) -> None:
    assert hint in error_of(lambda: resolve_signature(op, x="float32")).hint


ERRORS: dict[str, Callable[[], object]] = {
    "QG200": lambda: resolve_signature("QuantiseLinear", x="float32"),
    "QG201": lambda: quantize(domain="com.microsft"),
    "QG202": lambda: quantize(opset=29),
    "QG203": lambda: quantize(y="uint4", zero_point=True, opset=19),
    "QG204": lambda: quantize(y="float32"),
    "QG205": lambda: quantize(scale="float16", opset=21),
    "QG206": lambda: quantize(y="int8", opset=13),
    "QG207": lambda: dequantize(scale="float32", y="float16", opset=21),
    "QG208": lambda: dequantize(x="int8", scale="float8e8m0"),
    "QG209": lambda: quantize(precision="float32", opset=21),
    "QG210": lambda: quantize(precision="int32"),
    "QG211": lambda: quantize(granularity_kind="blocked", opset=19),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens) -> None:
    error = error_of(ERRORS[code])
    assert error.code == code
    golden.check(f"errors/{code}.err", f"{error}\n")


@pytest.mark.parametrize("kind", ["per_tensor", "per_axis", "blocked"])
def test_the_granularity_is_no_part_of_the_signature(kind: GranularityKind) -> None:
    assert quantize(granularity_kind=kind) == quantize()
