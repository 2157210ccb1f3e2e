"""Elements for kernels that find scale and zero point in them: what matters is the range of a group, and where elements lie within it.

A kernel has one group or many; the kind of a group goes by its number and the seed, so that seeds in order give all kinds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from qgen.check.edges import Codes, Values, decode, edge_codes, encode, pick_edges, step_codes
from qgen.dtypes import DType
from qgen.errors import InternalError

Indices = NDArray[np.int64]

STEPS: Final = 255
"""Quantization steps from the least to the greatest element."""
RANGES: Final = ("spread", "fitted", "one sign", "special", "codes", "tiny", "zeros", "edges")
"""Kinds of groups. Calm ones are of the first three."""
_CALM: Final = 3
_EXPONENTS: Final = (-90.0, 90.0)
"""Of the ordinary scales: quotients and products of them are normal numbers."""


def make_reduced(dtype: DType, of: Indices, position: Indices, seed: int, *, calm: bool) -> Codes:
    """Return codes for elements of the groups `of` at the places `position` within them.

    Ranges are spread about zero; fitted to a power of two as scale, with all else beside a tie; on one side of zero; spread with one
    infinity or NaN; random codes of numbers; subnormal; zeros of both signs; and edges.
    """
    rng = np.random.default_rng([seed, of.size])
    count = int(of.max(initial=-1)) + 1
    kind = (np.arange(count, dtype=np.int64) + seed) % (_CALM if calm else len(RANGES))
    low, high = _EXPONENTS if not calm else (-8.0, 8.0)
    step = 2.0 ** np.floor(rng.uniform(low, high, count))
    spread = (rng.normal(0, 1, of.size) + rng.normal(0, 1, count)[of]) * step[of]
    signs = np.where(rng.integers(0, 2, count) == 0, -1.0, 1.0)
    fitted = _fitted(dtype, of, position, step, rng)
    special = np.where(position == _places(of, position, rng)[of], _specials(dtype, rng.integers(0, 6, of.size)), encode(spread, dtype))
    signed = (1 << (dtype.bits - 1)) * rng.integers(0, 2, of.size)
    chosen = np.select(
        [kind[of] == number for number in range(len(RANGES) - 1)],
        [
            encode(spread, dtype),
            fitted,
            encode(signs[of] * rng.uniform(1, 1.5, of.size) * step[of], dtype),
            special,
            _numbers(dtype, of.size, rng),
            rng.integers(0, 2 << rng.integers(1, dtype.mantissa_bits + 1, count)[of], of.size) | signed,
            signed,
        ],
        pick_edges(dtype, position + of * len(edge_codes(dtype)) // 3 + seed),
    )
    return chosen.astype(np.uint32)


def _fitted(dtype: DType, of: Indices, position: Indices, step: Values, rng: np.random.Generator) -> Codes:
    """Return a group's ends, `STEPS` scales of `step` apart, then elements within one unit of a tie between two of its values."""
    below = rng.integers(0, STEPS + 1, step.size)[of]
    ends = np.where(position % 2 == 0, -below, STEPS - below).astype(np.float64)
    ties = rng.integers(0, STEPS, of.size) - below + 0.5
    beside = step_codes(encode(ties * step[of], dtype), rng.integers(-1, 2, of.size), dtype)
    return np.where(position < 2, encode(ends * step[of], dtype), beside).astype(np.uint32)


def _places(of: Indices, position: Indices, rng: np.random.Generator) -> Indices:
    """Return one place in each group."""
    sizes = np.zeros(int(of.max(initial=-1)) + 1, np.int64)
    np.maximum.at(sizes, of, position + 1)
    return rng.integers(0, np.maximum(sizes, 1))


def _specials(dtype: DType, number: Indices) -> Codes:
    """Return infinities, NaN of both signs and several codes, and the greatest numbers."""
    if dtype.format is None:
        raise InternalError(f"{dtype.name} has no infinity")
    sign, greatest = 1 << (dtype.bits - 1), dtype.format.max_code
    codes = np.array([greatest + 1, sign | (greatest + 1), sign - 1, sign | (greatest + 2), greatest, sign | greatest], np.uint32)
    return np.asarray(codes[number], np.uint32)


def _numbers(dtype: DType, count: int, rng: np.random.Generator) -> Codes:
    """Return random codes of finite numbers."""
    codes = rng.integers(0, 1 << dtype.bits, count).astype(np.uint32)
    return np.where(np.isfinite(decode(codes, dtype)), codes, 0).astype(np.uint32)
