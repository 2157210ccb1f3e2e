"""Numbers to and from dtypes: rounding into a format, and a format's codes.

Everything is derived from the row of the dtype (`DType.min`, `DType.max`, `FloatFormat`); there is no branch on a dtype here. The codes are
read and written by arithmetic, not by the casts of numpy or ml_dtypes, some of which round twice (SEMANTICS 1.2, step 7).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes, to_codes
from qgen.dtypes import DType, Family, FloatFormat
from qgen.errors import InternalError
from qgen.oracle.exact import Values


def max_value(format_: FloatFormat) -> float:
    """Return the greatest finite value of a float format."""
    return float(_magnitude(np.asarray(format_.max_code, dtype=np.int64), format_))


def round_to_float(values: Values, dtype: DType, *, saturate: bool = False) -> Values:
    """Return `values` (exact or rounded to odd) rounded once, half to even, into a float dtype; its one NaN is NaN here.

    Underflow is gradual. Overflow, which is a rounded magnitude beyond the greatest finite one, and infinity become what `overflow_code`
    says, or the greatest finite value with the sign kept if `saturate` (SEMANTICS 1.2, steps 5 and 6). A format without NaN turns NaN
    into its greatest value (SEMANTICS 2.1, row 17).
    """
    format_ = _format(dtype)
    if format_.is_unsigned:
        raise InternalError(f"{dtype.name} is the type of a scale; nothing is rounded into it")
    greatest = max_value(format_)
    rounded = _round_unbounded(values, format_)
    overflow = greatest if saturate else _overflow_value(format_)
    result = np.where(np.abs(rounded) > greatest, np.copysign(overflow, rounded), rounded)
    result = np.where(np.isnan(rounded), np.nan if format_.nan_code is not None else greatest, result)
    return result if format_.has_negative_zero else np.where(result == 0, 0.0, result)


def decode(array: NDArray[Any], dtype: DType) -> Values:
    """Return the values of a logical array of `dtype`; every NaN is one NaN. Raises `QgenError` QG240 for an array of another type."""
    codes = to_codes(array, dtype).astype(np.int64)
    sign = 0 if _is_unsigned(dtype) else 1 << (dtype.bits - 1)
    if dtype.is_integer:
        return ((codes ^ sign) - sign).astype(np.float64)
    format_ = _format(dtype)
    magnitudes = codes & ~sign
    values = np.where(codes & sign, -1.0, 1.0) * _magnitude(magnitudes, format_)
    values = np.where(magnitudes > format_.max_code, np.nan, values)
    if format_.has_infinity:
        values = np.where(magnitudes == format_.overflow_code, np.where(codes & sign, -np.inf, np.inf), values)
    return np.where(codes == format_.nan_code, np.nan, values) if format_.nan_code is not None else values


def encode(values: Values, dtype: DType) -> NDArray[Any]:
    """Return the logical array of `dtype` that holds `values`, each of which must be a value of it; NaN gets the one code of the type."""
    if not _holds(values, dtype):
        raise InternalError(f"a value is written that is no {dtype.name}")
    if dtype.is_integer:
        return from_codes(values.astype(np.int64) & dtype.mask, dtype, values.shape)
    format_ = _format(dtype)
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    quantum = _quantum_exponent(finite, format_)
    significand = np.ldexp(finite, -quantum).astype(np.int64)  # with the leading bit, which subnormals lack
    # A normal number's exponent field is its binade's number, counted from 1; the leading bit adds that 1, and nothing for a subnormal.
    binade = quantum - (1 - format_.bias - format_.mantissa_bits)
    codes = significand + (binade << format_.mantissa_bits)
    codes = np.where(np.isinf(values), format_.overflow_code, codes)
    codes = codes | np.where(np.signbit(values), 1 << (dtype.bits - 1), 0)
    if format_.nan_code is not None:
        codes = np.where(np.isnan(values), format_.nan_code, codes)
    return from_codes(codes, dtype, values.shape)


def _holds(values: Values, dtype: DType) -> bool:
    if dtype.is_integer:
        return bool(np.all((values >= dtype.min) & (values <= dtype.max) & (np.rint(values) == values)))
    rounded = round_to_float(values, dtype)
    return np.array_equal(values, rounded, equal_nan=True) and np.array_equal(
        np.signbit(values[values == 0]), np.signbit(rounded[values == 0])
    )


def _is_unsigned(dtype: DType) -> bool:
    return dtype.family is Family.UNSIGNED or (dtype.format is not None and dtype.format.is_unsigned)


def _format(dtype: DType) -> FloatFormat:
    if dtype.format is None:
        raise InternalError(f"{dtype.name} is no float format")
    return dtype.format


def _quantum_exponent(magnitudes: Values, format_: FloatFormat) -> NDArray[np.int64]:
    """Return k where 2^k is the distance between neighbours of the format at each magnitude, its exponents unbounded above."""
    _, exponent = np.frexp(magnitudes)  # magnitude = f * 2^exponent, 0.5 <= f < 1
    least_normal = 1 - format_.bias
    binade = np.where(magnitudes == 0, least_normal, np.maximum(exponent - 1, least_normal))
    return binade.astype(np.int64) - format_.mantissa_bits


def _round_unbounded(values: Values, format_: FloatFormat) -> Values:
    """Return `values` rounded half to even to the format's neighbours as if exponents had no upper bound; the sign of zero is kept."""
    finite = np.where(np.isfinite(values), values, 0.0)
    quantum = _quantum_exponent(np.abs(finite), format_)
    # Scaling by powers of two is exact (|values| < 2^300, so float64 neither overflows nor underflows), and rint rounds half to even.
    rounded = np.ldexp(np.rint(np.ldexp(finite, -quantum)), quantum)
    return np.where(np.isfinite(values), rounded, values)


def _magnitude(codes: NDArray[np.int64], format_: FloatFormat) -> Values:
    """Return the values of codes whose sign bit is clear, read as finite numbers."""
    field = codes >> format_.mantissa_bits
    fraction = codes & ((1 << format_.mantissa_bits) - 1)
    is_normal = (field > 0) | format_.is_unsigned  # e8m0 has neither zero nor subnormals: code 0 is 2^-127
    significand = fraction + np.where(is_normal, 1 << format_.mantissa_bits, 0)
    exponent = np.where(is_normal, field, 1) - format_.bias - format_.mantissa_bits
    values: Values = np.ldexp(significand.astype(np.float64), exponent)
    return values


def _overflow_value(format_: FloatFormat) -> float:
    if format_.has_infinity:
        return np.inf
    return np.nan if format_.overflow_code == format_.nan_code else max_value(format_)
