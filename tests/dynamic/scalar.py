"""SEMANTICS 1.4 once more, for one group of numbers, in the words of its text: numpy's float32 is the arithmetic, nothing is shared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from qgen.shapes import Granularity, scale_shape

Array = NDArray[np.float32]
Results = dict[str, NDArray[np.float32] | NDArray[np.uint8]]

ZERO, ONE, STEPS = np.float32(0), np.float32(1), np.float32(255)


def quantize(numbers: Iterable[np.float32]) -> tuple[list[int], np.float32, int]:
    """Return y, scale and zero point of the numbers."""
    x = list(numbers)
    with np.errstate(all="ignore"):
        if any(np.isnan(x)):
            return [0] * len(x), np.float32(np.nan), 0  # row 22
        greatest, least = max([ZERO, *x]), min([ZERO, *x])
        if greatest == least:
            return [0] * len(x), ONE, 0  # row 21
        scale = (greatest - least) / STEPS
        shift = ZERO - least / scale
        zero_point = 255 if np.isnan(shift) else int(np.rint(min(max(shift, ZERO), STEPS)))
        return [_saturate(number / scale, zero_point) for number in x], scale, zero_point


def _saturate(quotient: np.float32, zero_point: int) -> int:
    if np.isnan(quotient):
        return 0
    return int(min(max(np.rint(np.float64(quotient)) + zero_point, 0), 255))


def quantize_groups(x: Array, granularity: Granularity) -> Results:
    """Return the results for an x of at least one element, group by group."""
    groups = scale_shape(granularity, x.shape)
    y = np.zeros(x.shape, np.uint8)
    scales, zero_points = np.zeros(groups, np.float32), np.zeros(groups, np.uint8)
    for place in np.ndindex(groups):
        members = _members(place, x.shape, granularity)
        codes, scale, zero_point = quantize(x[members])
        y[members], scales[place], zero_points[place] = codes, scale, zero_point
    return {"y": y, "y_scale": scales, "y_zero_point": zero_points}


def _members(place: tuple[int, ...], shape: tuple[int, ...], granularity: Granularity) -> NDArray[np.bool_]:
    """Return which elements the group at `place` of the scale has."""
    inside = np.ones(shape, np.bool_)
    if granularity.kind == "per_tensor":
        return inside
    for axis, index in enumerate(np.indices(shape)):
        if granularity.kind == "blocked":
            is_axis = axis == granularity.axis % len(shape)
            inside &= (index // granularity.block_size if is_axis else index) == place[axis]
        elif axis == granularity.axis % len(shape):
            inside &= index == place[0]
    return inside
