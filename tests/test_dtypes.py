"""The table of dtypes against numpy, ml_dtypes and onnx, which know the formats independently."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from qgen.dtypes import BY_ONNX, DTYPES, DType, Family, FloatFormat, Layout, parse_dtype
from qgen.errors import QgenError

FLOATS = [dtype for dtype in DTYPES.values() if dtype.format]
INTEGERS = [dtype for dtype in DTYPES.values() if not dtype.format]
LAYOUTS = {2: Layout(16, 1), 4: Layout(8, 1), 6: Layout(16, 3), 8: Layout(4, 1), 16: Layout(2, 1), 32: Layout(1, 1)}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, rows in {"dtype": list(DTYPES.values()), "float_dtype": FLOATS, "integer_dtype": INTEGERS}.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, rows, ids=[row.name for row in rows])


def external(dtype: DType) -> np.dtype[Any]:
    """Return the type of numpy or ml_dtypes, found without qgen.arrays."""
    kind: np.dtype[Any] = np.dtype(getattr(np if hasattr(np, dtype.numpy) else ml_dtypes, dtype.numpy))
    return kind


def format_of(dtype: DType) -> FloatFormat:
    assert dtype.format is not None
    return dtype.format


def values_of(dtype: DType, codes: list[int]) -> list[float]:
    """Return what numpy or ml_dtypes reads in `codes`."""
    kind = external(dtype)
    read = np.array(codes, f"u{kind.itemsize}").view(kind)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one, which is what is wanted
        return [float(value) for value in read.astype(np.float64)]


def decode(dtype: DType, code: int) -> float:
    """Return the value of a code by the fields of the table alone."""
    row = format_of(dtype)
    width = row.exponent_bits + row.mantissa_bits
    negative = not row.is_unsigned and code >> width == 1
    magnitude = code if row.is_unsigned else code & ((1 << width) - 1)
    if row.nan_code in {code, magnitude}:
        return math.nan
    if row.has_infinity and magnitude == row.max_code + 1:
        return -math.inf if negative else math.inf
    if magnitude > row.max_code:
        return math.nan
    exponent, fraction = magnitude >> row.mantissa_bits, magnitude & ((1 << row.mantissa_bits) - 1)
    if exponent or row.mantissa_bits == 0:
        value = math.ldexp(fraction + (1 << row.mantissa_bits), exponent - row.bias - row.mantissa_bits)
    else:
        value = math.ldexp(fraction, 1 - row.bias - row.mantissa_bits)
    return -value if negative else value


def same(left: float, right: float) -> bool:
    """Whether two values are the same, NaN with NaN and zero with zero of its sign."""
    return (math.isnan(left) and math.isnan(right)) or (left == right and math.copysign(1, left) == math.copysign(1, right))


def test_names_and_numbers_are_onnxs(dtype: DType) -> None:
    assert onnx.TensorProto.DataType.Name(dtype.onnx) == {"float32": "FLOAT"}.get(dtype.name, dtype.name.upper())
    assert BY_ONNX[dtype.onnx] is dtype
    assert DTYPES[dtype.name] is dtype


def test_onnx_reads_each_dtype_into_the_same_array_type(dtype: DType) -> None:
    assert onnx.helper.tensor_dtype_to_np_dtype(dtype.onnx) == external(dtype)


def test_short_names_are_distinct() -> None:
    assert len({dtype.short for dtype in DTYPES.values()}) == len(DTYPES)


def test_integers_have_the_limits_of_their_type(integer_dtype: DType) -> None:
    limits = ml_dtypes.iinfo(external(integer_dtype))  # type: ignore[no-untyped-call] # ml_dtypes types its scalars only
    assert (integer_dtype.min, integer_dtype.max, integer_dtype.bits) == (limits.min, limits.max, limits.bits)
    assert integer_dtype.is_integer
    assert not integer_dtype.is_float
    assert integer_dtype.mantissa_bits == 0
    assert (integer_dtype.family is Family.SIGNED) == (limits.min < 0)


def test_floats_have_the_limits_of_their_type(float_dtype: DType) -> None:
    row = format_of(float_dtype)
    limits = ml_dtypes.finfo(external(float_dtype))  # type: ignore[no-untyped-call] # ml_dtypes types its scalars only
    assert float_dtype.bits == limits.bits
    assert row.mantissa_bits == float_dtype.mantissa_bits == limits.nmant
    assert row.exponent_bits == limits.nexp
    assert row.exponent_bits + row.mantissa_bits + (not row.is_unsigned) == float_dtype.bits
    assert values_of(float_dtype, [row.max_code]) == [float(limits.max)]
    assert decode(float_dtype, 0 if row.is_unsigned else 1) == float(limits.smallest_subnormal)
    assert float_dtype.is_float
    assert not float_dtype.is_integer


def test_every_code_of_a_float_means_what_the_fields_say(float_dtype: DType) -> None:
    if float_dtype.bits <= 16:
        codes = list(range(1 << float_dtype.bits))
    else:
        edges = [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF]
        codes = edges + [edge | 0x80000000 for edge in edges]
    for code, value in zip(codes, values_of(float_dtype, codes), strict=True):
        assert same(decode(float_dtype, code), value), hex(code)


def test_special_codes(float_dtype: DType) -> None:
    row = format_of(float_dtype)
    kind = external(float_dtype)
    if row.nan_code is None:
        assert not any(math.isnan(value) for value in values_of(float_dtype, list(range(1 << float_dtype.bits))))
    else:
        assert math.isnan(values_of(float_dtype, [row.nan_code])[0])
        sign = 1 << (float_dtype.bits - 1)
        assert row.is_unsigned or not row.has_negative_zero or not row.nan_code & sign, "the one NaN has its sign clear"
    beyond = values_of(float_dtype, [row.overflow_code])[0]
    if row.has_infinity:
        assert beyond == math.inf
    elif row.nan_code is not None:
        assert math.isnan(beyond)
    else:
        assert row.overflow_code == row.max_code
    if not row.is_unsigned:
        minus_zero = np.array([-0.0], np.float32).astype(kind).view(f"u{kind.itemsize}")[0]
        assert bool(minus_zero) == row.has_negative_zero


def test_the_nan_codes_are_those_of_the_semantics() -> None:
    codes = {dtype.short: dtype.format.nan_code for dtype in FLOATS if dtype.format}
    assert codes == {
        "f32": 0x7FC00000, "f16": 0x7E00, "bf16": 0x7FC0, "e4m3fn": 0x7F, "e5m2": 0x7E, "e4m3fnuz": 0x80, "e5m2fnuz": 0x80,
        "e2m1": None, "e2m3": None, "e3m2": None, "e8m0": 0xFF,
    }  # fmt: skip


def test_classes_of_floats() -> None:
    assert [dtype.short for dtype in DTYPES.values() if dtype.is_float8] == ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"]
    assert [dtype.short for dtype in DTYPES.values() if dtype.is_small_float] == ["e2m1", "e2m3", "e3m2"]


@pytest.mark.parametrize("short", ["f32", "e4m3fn", "e2m1"])
def test_a_float_has_no_least_or_greatest_integer(short: str) -> None:
    dtype = parse_dtype(short)
    with pytest.raises(ValueError, match="has no least or greatest integer"):
        _ = dtype.min
    with pytest.raises(ValueError, match="has no least or greatest integer"):
        _ = dtype.max


def test_layouts_are_the_least_whole_words(dtype: DType) -> None:
    assert dtype.layout == LAYOUTS[dtype.bits]
    assert dtype.layout.elements * dtype.bits == dtype.layout.words * 32
    assert dtype.mask == 2**dtype.bits - 1


@pytest.mark.parametrize(
    ("name", "count", "nbytes", "words"),
    [
        ("uint2", 0, 0, 0), ("uint2", 5, 2, 1), ("int4", 3, 2, 1), ("int4", 8, 4, 1), ("int4", 9, 5, 2), ("uint8", 5, 5, 2),
        ("float6e2m3", 1, 1, 1), ("float6e2m3", 4, 3, 1), ("float6e2m3", 16, 12, 3), ("float6e3m2", 17, 13, 4), ("int16", 3, 6, 2),
        ("float32", 3, 12, 3),
    ],
)  # fmt: skip
def test_sizes_of_packed_elements(name: str, count: int, nbytes: int, words: int) -> None:
    assert (DTYPES[name].nbytes(count), DTYPES[name].words(count)) == (nbytes, words)


def test_every_spelling_parses(dtype: DType) -> None:
    kind = external(dtype)
    names = [dtype.name, dtype.short, dtype.numpy, dtype.name.upper(), f" {dtype.name} ", kind.name]
    spellings: list[object] = [dtype, *names, kind, kind.type]
    assert all(parse_dtype(spelling) is dtype for spelling in spellings)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("float", "float32"), ("FLOAT", "float32"), ("float4e2m1fn", "float4e2m1"), ("float8e8m0fnu", "float8e8m0"), (np.half, "float16")],
)
def test_aliases(alias: object, name: str) -> None:
    assert parse_dtype(alias) is DTYPES[name]


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("uint5", "did you mean `uint"), ("float8e4m3", "did you mean `float8e4m3fn"), ("", "qgen list dtypes"), ("🙂", "qgen list dtypes"),
        (np.float64, "did you mean `float"), (np.dtype("int64"), "did you mean `int"), (7, "qgen list dtypes"), (None, "qgen list dtypes"),
    ],
)  # fmt: skip
def test_what_is_no_dtype_says_the_nearest(spec: object, hint: str) -> None:
    with pytest.raises(QgenError) as caught:
        parse_dtype(spec)
    assert caught.value.code == "QG101"
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("max_code", "overflow_code", "message"),
    [(0, 1, "does not fit"), (0x80, 0x81, "does not fit"), (0x7B, 0x7D, "infinity is the code after")],
)
def test_a_row_that_contradicts_itself_is_not_built(max_code: int, overflow_code: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FloatFormat(5, 2, 15, max_code, 0x7E, overflow_code, has_infinity=True)
