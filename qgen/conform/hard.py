"""Scales and zero points at which something begins or ends, few enough to be tried with everything else."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from qgen.check.edges import edge_codes, encode
from qgen.dtypes import DType

Codes = NDArray[np.uint32]

_VALUES: Final = (
    1.0,
    -1.0,
    0.5,
    3.0,
    1 / 3,
    0.1,
    -0.7,
    1 / 127,
    1 / 255,
    1 / 15,
    2.0**-7,
    2.0**-14,
    1.0 + 2.0**-7,
    2.0 - 2.0**-7,
    100.0,
    65504.0,
)
"""Ordinary scales: powers of two and their neighbours, which make ties, and those that no format holds."""
_EDGES: Final = 16
_ZERO_POINTS: Final = 8


@cache
def hard_scales(dtype: DType) -> Codes:
    """Return codes of scales: ordinary ones, and edges of the dtype spread over all of them, NaN and infinity among them."""
    edges = edge_codes(dtype)
    chosen = edges[np.unique(np.linspace(0, len(edges) - 1, _EDGES).round().astype(np.int64))]
    return np.unique(np.concatenate([encode(np.array(_VALUES), dtype), chosen, _special(dtype)])).astype(np.uint32)


def _special(dtype: DType) -> Codes:
    """Return the codes of what is not finite, of zero, and of the least magnitude."""
    if dtype.format is None:
        return np.array([0, 1, dtype.mask], np.uint32)
    codes = [0, 1, dtype.format.max_code, dtype.format.overflow_code, *([dtype.format.nan_code] if dtype.format.nan_code else [])]
    return np.array(codes, np.uint32)


@cache
def hard_zero_points(dtype: DType) -> Codes:
    """Return codes of zero points: the extremes, zero and one, and others between them."""
    edges = edge_codes(dtype)
    chosen = edges[np.unique(np.linspace(0, len(edges) - 1, _ZERO_POINTS).round().astype(np.int64))]
    ends = [dtype.min & dtype.mask, dtype.max, 0, 1] if dtype.is_integer else [0, 1]
    return np.unique(np.concatenate([chosen, np.array(ends, np.uint32)])).astype(np.uint32)
