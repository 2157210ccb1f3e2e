"""Inputs for the oracle's tests: the edges of every format, random codes of all magnitudes, quotients near ties; the same in every run."""

from __future__ import annotations

import numpy as np

from qgen.arrays import from_codes, numpy_dtype
from qgen.dtypes import DTYPES, DType
from tests.oracle.nodes import Array

FLOAT_TYPES = [dtype for dtype in DTYPES.values() if dtype.is_float and dtype.name != "float8e8m0"]


def edge_codes(dtype: DType) -> Array:
    """Return the codes at which something begins or ends: every power of two with its neighbours, both signs, all ones, all zeros."""
    powers = 1 << np.arange(dtype.bits, dtype=np.int64)
    magnitudes = np.concatenate([[0], powers, powers - 1, powers + 1])
    if dtype.format is not None:
        one = dtype.format.bias << dtype.format.mantissa_bits
        special = [dtype.format.max_code, dtype.format.overflow_code, dtype.format.nan_code or 0, one]
        magnitudes = np.concatenate([magnitudes, np.array(special), np.array(special) - 1, np.array(special) + 1])
    return np.unique(np.concatenate([magnitudes, magnitudes ^ (1 << (dtype.bits - 1))]) & dtype.mask)


def edge_array(dtype: DType) -> Array:
    codes = edge_codes(dtype)
    return from_codes(codes, dtype, codes.shape)


def random_array(dtype: DType, count: int, seed: int) -> Array:
    """Return random codes, so all magnitudes, infinities and NaN."""
    codes = np.random.default_rng(seed).integers(0, 1 << dtype.bits, count)
    return from_codes(codes, dtype, (count,))


def float32_codes(count: int) -> Array:
    """Return float32 codes: edges, random ones, and random ones near the values of the narrow formats and their midpoints."""
    random = np.random.default_rng(1)
    near = (random.integers(0, 1 << 12, count) << 20) + random.integers(-2, 3, count)
    return np.concatenate([edge_codes(DTYPES["float32"]), random.integers(0, 1 << 32, count), near & 0xFFFFFFFF])


def near_ties(scale: Array, seed: int, *, greatest: float = 300.0) -> Array:
    """Return, in float64, (n + 1/2) times each scale with n random up to `greatest`: rounded into x's type they lie on or beside a tie."""
    random = np.random.default_rng(seed)
    halves = np.rint(random.uniform(-greatest, greatest, scale.shape)) + 0.5
    with np.errstate(all="ignore"):
        return np.asarray(halves * scale.astype(np.float64))


def dividends(values: Array, dtype: DType) -> Array:
    """Return numbers as an array of x's type: floats rounded into it, integers rounded and clamped, where NaN becomes 0."""
    with np.errstate(all="ignore"):
        if dtype.is_float:
            return values.astype(numpy_dtype(dtype))
        return np.asarray(np.clip(np.nan_to_num(np.rint(values)), dtype.min, dtype.max).astype(numpy_dtype(dtype)))
