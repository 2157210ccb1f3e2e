"""The codes of a dtype at which something begins or ends, and the small moves between codes that inputs are made with."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes, numpy_dtype, to_codes
from qgen.dtypes import DType, FloatFormat

Codes = NDArray[np.uint32]
Values = NDArray[np.float64]

_FEW_BITS: Final = 4
_GOLDEN: Final = 0.382
_POWERS: Final = 12
"""How many powers of two of a float format are edges, spread over its exponents."""


@cache
def edge_codes(dtype: DType) -> Codes:
    """Return the edges of `dtype`, sorted: all codes up to 4 bits.

    Of an integer: the powers of two with their neighbours, the extremes, and for 32 bits the ties of the conversion to float32. Of a float:
    both zeros, the least and the greatest subnormal and normal, one with its neighbours, powers of two, infinity and NaN of several codes.
    """
    if dtype.bits <= _FEW_BITS:
        return np.arange(1 << dtype.bits, dtype=np.uint32)
    magnitudes = _integer_edges(dtype.bits) if dtype.format is None else _float_edges(dtype.format)
    codes = {magnitude & dtype.mask for magnitude in magnitudes}
    if dtype.format is None:
        codes |= {-magnitude & dtype.mask for magnitude in magnitudes}
    elif not dtype.format.is_unsigned:
        codes |= {magnitude | 1 << (dtype.bits - 1) for magnitude in codes}
    return np.array(sorted(codes), np.uint32)


def pick_edges(dtype: DType, number: NDArray[np.int64]) -> Codes:
    """Return the edge of each number from 0 on: as many numbers in a row as there are edges give all, and few give some of every kind."""
    edges = edge_codes(dtype)
    step = next(step for step in range(round(len(edges) * _GOLDEN), len(edges) + 2) if math.gcd(step, len(edges)) == 1)
    return np.asarray(edges[number * step % len(edges)], np.uint32)


def _integer_edges(bits: int) -> list[int]:
    found = [0]
    for exponent in range(bits):
        power = 1 << exponent
        found += [power - 1, power, power + 1]
        if exponent >= 24:  # float32 has 24 bits: 2^e + 2^(e - 24) lies halfway, and so do its odd multiples
            found += [power + (power >> 24), power + 3 * (power >> 24)]
    return found


def _float_edges(fmt: FloatFormat) -> list[int]:
    step = 1 << fmt.mantissa_bits
    exponents = (1 << fmt.exponent_bits) - 1
    every = max(1, exponents // _POWERS)
    one = fmt.bias * step
    found = [0, 1, 2, step - 1, step, step + 1, one - 1, one, one + 1, one + step // 2, fmt.max_code - 1, fmt.max_code, fmt.overflow_code]
    found += [exponent * step for exponent in range(1, exponents, every)]
    if fmt.nan_code is not None:
        quiet = fmt.nan_code & (exponents * step | (step - 1))
        found += [quiet, *([fmt.overflow_code + 1, exponents * step | (step - 1)] if fmt.has_infinity else [])]
    return found


def decode(codes: Codes, dtype: DType) -> Values:
    """Return the values of codes."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return np.asarray(from_codes(codes, dtype, codes.shape).astype(np.float64))


def value_range(dtype: DType) -> tuple[float, float]:
    """Return the least and the greatest finite value."""
    if dtype.format is None:
        return float(dtype.min), float(dtype.max)
    greatest = float(decode(np.array([dtype.format.max_code], np.uint32), dtype)[0])
    return -greatest, greatest


def encode(values: Values, dtype: DType) -> Codes:
    """Return the codes next to `values`: rounded, saturated where the dtype is an integer."""
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            # NaN becomes 0: any code will do, and a conversion of it to an integer is undefined.
            whole = np.clip(np.nan_to_num(np.rint(values), nan=0.0), dtype.min, dtype.max).astype(np.int64)
            return np.asarray(whole & dtype.mask, np.uint32)
        rounded: NDArray[Any] = values.astype(numpy_dtype(dtype))
        return to_codes(rounded, dtype)


def step_codes(codes: Codes, steps: NDArray[np.int64], dtype: DType) -> Codes:
    """Return each code moved by `steps` units in the last place, towards zero where negative; it stays where it would leave the dtype."""
    wide = codes.astype(np.int64)
    if dtype.is_integer:
        sign = (1 << (dtype.bits - 1)) if dtype.min < 0 else 0
        moved = np.clip((wide ^ sign) - sign + steps, dtype.min, dtype.max)
        return np.asarray(moved & dtype.mask, np.uint32)
    signs = wide & (1 << (dtype.bits - 1))
    magnitudes = np.clip((wide - signs) + steps, 0, dtype.mask >> 1)
    return (signs | magnitudes).astype(np.uint32)
