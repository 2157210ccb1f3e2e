"""Per-group operands spread over x: each element beside the scale and zero point of its quantization group (SEMANTICS 1.5).

By repetition along the axis, not by an index computed for each element as in the kernels: what is compared is reached in two ways.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from qgen.errors import QgenError
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
