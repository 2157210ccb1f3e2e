"""Per-group operands spread over x: each element beside the scale and zero point of its quantization group (SEMANTICS 1.5).

By repetition along the axis, not by an index computed for each element as in the kernels: what is compared is reached in two ways.
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from qgen.errors import QgenError
from qgen.ir.nodes import Op
from qgen.oracle.exact import Values
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, normalize_axis, scale_shapes_accepted


def expand_groups(name: str, values: Values, shape: tuple[int, ...], granularity: Granularity) -> Values:
    """Return the elements of the per-group operand `name` for each element of an x of `shape`.

    Raises `QgenError` QG801 where its shape does not fit, QG220 to QG222 where the granularity does not fit `shape`.
    """
    accepted = scale_shapes_accepted(granularity, shape)
    if values.shape not in accepted and not (isinstance(granularity, PerTensor) and values.size == 1):
        message = f"`{name}` has the shape {list(values.shape)}, but {_describe(granularity)} it needs the shape {list(accepted[0])}"
        raise QgenError("QG801", message, hint=f"x has the shape {list(shape)}; nothing is broadcast", place=name)
    match granularity:
        case PerTensor():
            return np.broadcast_to(values.reshape(()), shape)
        case PerAxis():
            axis = normalize_axis(granularity.axis, len(shape))
            return np.broadcast_to(values.reshape(tuple(shape[axis] if index == axis else 1 for index in range(len(shape)))), shape)
        case Blocked():
            axis = normalize_axis(granularity.axis, len(shape))
            # The last block may be partial: whole blocks first, and what lies beyond x is cut off.
            repeated = np.repeat(values, min(granularity.block_size, max(shape[axis], 1)), axis=axis)
            return repeated[(slice(None),) * axis + (slice(shape[axis]),)]
        case _:
            assert_never(granularity)


def reduce_groups(values: Values, op: Op, granularity: Granularity) -> Values:
    """Return, for each element, the greatest or least value (`Op.MAX`, `Op.MIN`) of its group: NaN where one is NaN, +0 above -0.

    Of no element at all it is -infinity, or infinity.
    """
    if op is Op.MIN:
        return np.negative(reduce_groups(np.negative(values), Op.MAX, granularity))
    if values.size == 0:
        return np.asarray(-np.inf)
    greatest = _fold(np.maximum, values, granularity)
    has_positive_zero = _fold(np.logical_or, (values == 0) & ~np.signbit(values), granularity)
    return np.where(greatest == 0, np.where(has_positive_zero, 0.0, -0.0), greatest)


def gather_groups(values: Values, shape: tuple[int, ...], granularity: Granularity) -> Values:
    """Return one value for each group, in the shape of the scale, of values that are the same all over a group."""
    accepted = scale_shapes_accepted(granularity, shape)[0]
    if values.ndim == 0:
        return np.broadcast_to(values, accepted)
    whole = np.broadcast_to(values, shape)
    match granularity:
        case PerTensor():
            return whole.reshape(-1)[:1].reshape(())
        case PerAxis():
            axis = normalize_axis(granularity.axis, len(shape))
            return whole[tuple(slice(None) if index == axis else 0 for index in range(len(shape)))]
        case Blocked():
            axis = normalize_axis(granularity.axis, len(shape))
            return whole[(slice(None),) * axis + (slice(None, None, granularity.block_size),)]
        case _:
            assert_never(granularity)


def _fold(combine: np.ufunc, values: NDArray[Any], granularity: Granularity) -> NDArray[Any]:
    """Return, for each element, `combine` of all elements of its group."""
    match granularity:
        case PerTensor():
            return np.asarray(combine.reduce(values, axis=None))
        case PerAxis():
            axis = normalize_axis(granularity.axis, values.ndim)
            others = tuple(index for index in range(values.ndim) if index != axis)
            return np.broadcast_to(combine.reduce(values, axis=others, keepdims=True), values.shape)
        case Blocked():
            axis = normalize_axis(granularity.axis, values.ndim)
            size = min(granularity.block_size, values.shape[axis])
            blocks = combine.reduceat(values, np.arange(0, values.shape[axis], size), axis=axis)
            return np.repeat(blocks, size, axis=axis)[(slice(None),) * axis + (slice(values.shape[axis]),)]
        case _:
            assert_never(granularity)


def _describe(granularity: Granularity) -> str:
    match granularity:
        case PerTensor():
            return "per tensor"
        case PerAxis():
            return f"per axis {granularity.axis}"
        case Blocked():
            return f"in blocks of {granularity.block_size} along axis {granularity.axis}"
        case _:
            assert_never(granularity)
