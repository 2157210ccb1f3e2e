"""Codes to values and back, and rounding into formats, held against numpy and ml_dtypes where their casts are exact."""

from __future__ import annotations

import numpy as np
import pytest

from qgen.arrays import from_codes, to_codes
from qgen.dtypes import DTYPES, DType
from qgen.errors import InternalError
from qgen.oracle.formats import decode, encode, round_to_float
from tests.oracle.samples import FLOAT_TYPES, float32_codes

NARROW = [dtype for dtype in DTYPES.values() if dtype.bits <= 16]


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
def test_every_code_is_read_as_ml_dtypes_reads_it(dtype: DType) -> None:
    array = from_codes(np.arange(1 << dtype.bits), dtype, (1 << dtype.bits,))
    with np.errstate(invalid="ignore"):  # signalling NaN
        want = array.astype(np.float64)
    got = decode(array, dtype)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("dtype", [dtype for dtype in NARROW if dtype.name != "float8e8m0"], ids=lambda dtype: dtype.name)
def test_every_code_is_written_as_it_was_read(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits)
    values = decode(from_codes(codes, dtype, codes.shape), dtype)
    want = codes if dtype.format is None or dtype.format.nan_code is None else np.where(np.isnan(values), dtype.format.nan_code, codes)
    assert np.array_equal(to_codes(encode(values, dtype), dtype), want)


def test_float32_is_read_and_written_as_numpy_does() -> None:
    codes = float32_codes(100_000)
    array = codes.astype(np.uint32).view(np.float32)
    values = decode(array, DTYPES["float32"])
    with np.errstate(invalid="ignore"):  # signalling NaN
        want = array.astype(np.float64)
    assert np.array_equal(values, want, equal_nan=True)
    assert np.array_equal(to_codes(encode(values, DTYPES["float32"]), "float32"), np.where(np.isnan(array), 0x7FC00000, codes))


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOAT_TYPES if dtype.name != "float32"], ids=lambda dtype: dtype.name)
def test_float32_is_rounded_into_a_narrow_format_as_ml_dtypes_does(dtype: DType) -> None:
    # From float32 ml_dtypes rounds once, without saturation, but for NaN to a format without it (SEMANTICS 2.1, row 17).
    array = float32_codes(100_000).astype(np.uint32).view(np.float32)
    array = array[~np.isnan(array)]
    with np.errstate(over="ignore"):
        want = decode(array.astype(encode(np.zeros(1), dtype).dtype), dtype)
    got = round_to_float(array.astype(np.float64), dtype)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))


def test_float64_is_rounded_once_where_ml_dtypes_rounds_twice() -> None:
    above_a_tie = np.array([1.0625 + 2.0**-40])
    assert round_to_float(above_a_tie, DTYPES["float8e4m3fn"]).tolist() == [1.125]


@pytest.mark.parametrize(
    ("name", "magnitude", "plain", "saturated"),
    [
        ("float8e4m3fn", 464.0, 448.0, 448.0),
        ("float8e4m3fn", 464.0001, np.nan, 448.0),
        ("float8e4m3fn", np.inf, np.nan, 448.0),
        ("float8e4m3fnuz", 247.9999, 240.0, 240.0),
        ("float8e4m3fnuz", 248.0, np.nan, 240.0),
        ("float8e5m2", 61439.9, 57344.0, 57344.0),
        ("float8e5m2", 61440.0, np.inf, 57344.0),
        ("float8e5m2fnuz", 61440.0, np.nan, 57344.0),
        ("float8e5m2fnuz", np.inf, np.nan, 57344.0),
        ("float4e2m1", np.inf, 6.0, 6.0),
        ("float6e2m3", 7.75, 7.5, 7.5),
        ("float6e3m2", 1e9, 28.0, 28.0),
        ("float16", 65519.99, 65504.0, 65504.0),
        ("float16", 65520.0, np.inf, 65504.0),
    ],
)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
def test_overflow_is_that_of_the_table_in_semantics(name: str, magnitude: float, plain: float, saturated: float, sign: float) -> None:
    value = np.array([sign * magnitude])
    assert np.array_equal(round_to_float(value, DTYPES[name]), [sign * plain], equal_nan=True)
    assert np.array_equal(round_to_float(value, DTYPES[name], saturate=True), [sign * saturated])


@pytest.mark.parametrize(("name", "code"), [("float4e2m1", 7), ("float6e2m3", 0x1F), ("float6e3m2", 0x1F), ("float8e5m2", 0x7E)])
def test_nan_has_the_code_of_semantics(name: str, code: int) -> None:
    dtype = DTYPES[name]
    assert to_codes(encode(round_to_float(np.array([np.nan, -np.nan]), dtype), dtype), dtype).tolist() == [code, code]


@pytest.mark.parametrize(
    ("name", "value"), [("uint4", 16.0), ("int8", 0.5), ("float16", 1e6), ("float8e4m3fnuz", -0.0), ("float4e2m1", np.nan)]
)
def test_a_value_that_the_type_lacks_is_not_written(name: str, value: float) -> None:
    with pytest.raises(InternalError):
        encode(np.array([value]), DTYPES[name])
