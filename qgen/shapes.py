"""Which scale an element belongs to: granularities, the shapes they demand, and the [outer, axis, inner] view of a tensor.

The law is SEMANTICS 1.5, and the column "do" of 2.2 for what the runtimes disagree on. Rank 0 and empty shapes are legal.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, SupportsIndex, TypeAlias, assert_never

from qgen.errors import QgenError

MAX_COUNT: Final = 2**53
"""The most elements a tensor may have: what a sidecar's formulas hold exactly in every host's numbers."""

_SCALE_SHAPE: Final = "the shape of the scale"

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PerTensor:
    """One scale for all elements."""

    @property
    def kind(self) -> Literal["per_tensor"]:
        """The granularity's name."""
        return "per_tensor"


@dataclass(frozen=True, slots=True)
class PerAxis:
    """One scale for each index along `axis`, which may be negative."""

    axis: int = 1

    def __post_init__(self) -> None:
        """Refuse an axis that is not a whole number."""
        _check_whole("axis", self.axis)

    @property
    def kind(self) -> Literal["per_axis"]:
        """The granularity's name."""
        return "per_axis"


@dataclass(frozen=True, slots=True)
class Blocked:
    """One scale for each run of `block_size` elements along `axis`, which may be negative; the last run may be shorter."""

    axis: int
    block_size: int

    def __post_init__(self) -> None:
        """Refuse what is not a whole number, and a block that holds nothing."""
        _check_whole("axis", self.axis)
        _check_whole("block_size", self.block_size)
        if not 0 < self.block_size <= MAX_COUNT:
            hint = "give at least 1 and at most 2^53; for one scale per index or per tensor use per_axis or per_tensor"
            raise _error("QG223", "`block_size`", f"a block of {self.block_size} elements is not possible", hint)

    @property
    def kind(self) -> Literal["blocked"]:
        """The granularity's name."""
        return "blocked"


Granularity: TypeAlias = PerTensor | PerAxis | Blocked


def is_last(granularity: Granularity) -> bool:
    """Whether scales lie along the last axis whatever the shape is."""
    return isinstance(granularity, PerAxis | Blocked) and granularity.axis == -1


@dataclass(frozen=True, slots=True)
class View:
    """A tensor seen as [outer, axis, inner], row-major, with `blocks` runs of `block_size` along the axis.

    Element (o, a, i) is number `(o * axis + a) * inner + i`. Its scale is number 0 (per-tensor: outer and axis are 1), number `a`
    (per-axis: blocks of 1), or number `(o * blocks + a // block_size) * inner + i` (blocked). `block_size` is at most the axis (at
    least 1): a longer block is one block, and is the same computation.
    """

    outer: int
    axis: int
    inner: int
    block_size: int
    blocks: int

    @property
    def count(self) -> int:
        """The number of elements."""
        return self.outer * self.axis * self.inner


def per_tensor() -> PerTensor:
    """Return the granularity with one scale for all elements."""
    return PerTensor()


def per_axis(axis: SupportsIndex = 1) -> PerAxis:
    """Return the granularity with one scale for each index along `axis`. Raises `QgenError` QG222."""
    return PerAxis(_to_whole("axis", axis))


def blocked(axis: SupportsIndex, block_size: SupportsIndex) -> Blocked:
    """Return the granularity with one scale for each run of `block_size` along `axis`. Raises `QgenError` QG222 and QG223."""
    return Blocked(_to_whole("axis", axis), _to_whole("block_size", block_size))


def check_shape(shape: Sequence[SupportsIndex], what: str = "x") -> Shape:
    """Return `shape` as a tuple of ints; `what` names the tensor in errors.

    Raises `QgenError` QG220 for a dimension that is negative or not a whole number, QG221 for more than 2^53 elements (dimensions of 0
    counted as 1, so that no part of an empty shape is beyond it either).
    """
    try:
        dims = tuple(operator.index(dim) for dim in shape)
    except TypeError as error:
        hint = "give whole numbers, or leave the shape out to have it in uniforms"
        raise _error("QG220", f"the shape of {what}", f"the shape {shape!r} of {what} is not made of whole numbers", hint) from error
    if any(dim < 0 for dim in dims):
        raise _error(
            "QG220", f"the shape of {what}", f"the shape {list(dims)} of {what} has a negative dimension", "dimensions are 0 or more"
        )
    if math.prod(max(dim, 1) for dim in dims) > MAX_COUNT:
        raise _error("QG221", f"the shape of {what}", f"the shape {list(dims)} of {what} has more than 2^53 elements", "split the tensor")
    return dims


def normalize_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from the front. Raises `QgenError` QG222 when it is outside [-rank, rank - 1]."""
    _check_whole("axis", axis)
    if -rank <= axis < rank:
        return axis % rank
    hint = f"give an axis from {-rank} to {rank - 1}" if rank else "a tensor of rank 0 can only be quantized per tensor"
    raise _error("QG222", "`axis`", f"axis {axis} is out of range for x of rank {rank}", hint)


def make_view(granularity: Granularity, shape: Sequence[int]) -> View:
    """Return the view of a tensor of `shape`. Raises `QgenError` QG220 to QG222."""
    dims = check_shape(shape)
    match granularity:
        case PerTensor():
            return View(1, 1, math.prod(dims), 1, 1)
        case PerAxis():
            axis = normalize_axis(granularity.axis, len(dims))
            return View(math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :]), 1, dims[axis])
        case Blocked():
            axis = normalize_axis(granularity.axis, len(dims))
            size = min(granularity.block_size, max(dims[axis], 1))
            return View(math.prod(dims[:axis]), dims[axis], math.prod(dims[axis + 1 :]), size, _ceil_div(dims[axis], size))
        case _:
            assert_never(granularity)


def scale_shape(granularity: Granularity, shape: Sequence[int]) -> Shape:
    """Return the shape of the scale that goes with x of `shape`; a per-tensor scale is a scalar. Raises `QgenError` QG220 to QG222."""
    return scale_shapes_accepted(granularity, shape)[0]


def scale_shapes_accepted(granularity: Granularity, shape: Sequence[int]) -> tuple[Shape, ...]:
    """Return the shapes of a scale that go with x of `shape`, the canonical one first.

    A per-tensor scale may be `()`, `(1,)` or all ones of x's rank (of any rank, in fact: `check_operand_shapes`); the other granularities
    have one shape each. Raises `QgenError` QG220 to QG222.
    """
    dims = check_shape(shape)
    match granularity:
        case PerTensor():
            return tuple(dict.fromkeys(((), (1,), (1,) * len(dims))))
        case PerAxis():
            return ((dims[normalize_axis(granularity.axis, len(dims))],),)
        case Blocked():
            axis = normalize_axis(granularity.axis, len(dims))
            return ((*dims[:axis], _ceil_div(dims[axis], granularity.block_size), *dims[axis + 1 :]),)
        case _:
            assert_never(granularity)


def classify_granularity(
    x_shape: Sequence[int],
    scale_shape: Sequence[int],
    axis: int = 1,
    block_size: int = 0,
    zero_point_shape: Sequence[int] | None = None,
) -> Granularity:
    """Return the granularity that a node's shapes and attributes mean, in SEMANTICS 1.5's order; its axis counts from the front.

    Blocked needs `block_size` and a scale of x's rank; else one element is per-tensor, whatever the axis (and the block size, for a scale
    of rank 0 or 1); else a 1-D scale is per-axis. Raises `QgenError` QG220 to QG228.
    """
    x, scale = check_shape(x_shape), check_shape(scale_shape, "the scale")
    _check_whole("block_size", block_size)
    if block_size < 0:
        raise _error("QG223", "`block_size`", f"the block size is {block_size}", "give 0 for no blocks, or the number of elements in one")
    granularity = _classify(x, scale, axis, block_size)
    if zero_point_shape is not None:
        _check_zero_point(scale, check_shape(zero_point_shape, "the zero point"))
    return granularity


def check_operand_shapes(
    granularity: Granularity, x_shape: Sequence[int], scale_shape: Sequence[int], zero_point_shape: Sequence[int] | None
) -> None:
    """Hold the shapes that a kernel is run on against its granularity. Raises `QgenError` QG220 to QG228."""
    x, scale = check_shape(x_shape), check_shape(scale_shape, "the scale")
    match granularity:
        case PerTensor():
            if any(dim != 1 for dim in scale):
                hint = "give one scale, of shape [] or [1], or compile the kernel per axis or blocked"
                raise _error("QG227", _SCALE_SHAPE, f"a per-tensor kernel has one scale, not {list(scale)}", hint)
        case PerAxis():
            at = normalize_axis(granularity.axis, len(x))
            if len(scale) != 1:
                hint = f"give a scale of shape [{x[at]}]"
                raise _error("QG227", _SCALE_SHAPE, f"a per-axis kernel has a 1-D scale, not {list(scale)}", hint)
            _check_per_axis(x, scale, at)
        case Blocked():
            at = normalize_axis(granularity.axis, len(x))
            if len(scale) != len(x):
                hint = f"give a scale of shape {list(scale_shapes_accepted(granularity, x)[0])}"
                raise _error("QG227", _SCALE_SHAPE, f"a blocked kernel has a scale of x's rank, {len(x)}, not {list(scale)}", hint)
            _check_blocked(x, scale, at, granularity.block_size)
        case _:
            assert_never(granularity)
    if zero_point_shape is not None:
        _check_zero_point(scale, check_shape(zero_point_shape, "the zero point"))


def _classify(x: Shape, scale: Shape, axis: int, block_size: int) -> Granularity:
    if block_size > 0 and len(scale) == len(x) >= 1:
        at = normalize_axis(axis, len(x))
        _check_blocked(x, scale, at, block_size)
        return Blocked(at, block_size)
    if all(dim == 1 for dim in scale) and (len(scale) <= 1 or block_size == 0):
        return PerTensor()
    if len(scale) == 1 and block_size == 0:
        at = normalize_axis(axis, len(x))
        _check_per_axis(x, scale, at)
        return PerAxis(at)
    if block_size > 0:
        message = f"with blocks of {block_size} the scale must have x's rank, {len(x)}, or one element; its shape is {list(scale)}"
        raise _error("QG227", _SCALE_SHAPE, message, "give a scale of x's rank, or leave `block_size` out for a 1-D scale per axis")
    same = ": blocks need `block_size`" if len(scale) == len(x) else ""
    message = f"a scale of shape {list(scale)} does not fit x of shape {list(x)} without blocks{same}"
    raise _error(
        "QG227", _SCALE_SHAPE, message, "give one scale, a 1-D scale along `axis`, or a scale of x's rank together with `block_size`"
    )


def _check_per_axis(x: Shape, scale: Shape, axis: int) -> None:
    if scale[0] == x[axis]:
        return
    fits = [str(index) for index, dim in enumerate(x) if dim == scale[0]]
    other = f", or name axis {' or '.join(fits)}" if fits else ""
    message = f"the scale has {scale[0]} elements, but x of shape {list(x)} has {x[axis]} along axis {axis}"
    raise _error("QG226", _SCALE_SHAPE, message, f"give {x[axis]} scales{other}")


def _check_blocked(x: Shape, scale: Shape, axis: int, block_size: int) -> None:
    for index, (dim, scale_dim) in enumerate(zip(x, scale, strict=True)):
        if index != axis and dim != scale_dim:
            message = f"the scale of shape {list(scale)} differs from x of shape {list(x)} along axis {index}, which is not blocked"
            raise _error("QG225", _SCALE_SHAPE, message, f"blocks lie along axis {axis}; all other dimensions must be equal")
    length, blocks = x[axis], scale[axis]
    if blocks != _ceil_div(length, block_size):
        message = f"{length} elements along axis {axis} in blocks of {block_size} need {_ceil_div(length, block_size)} scales, not {blocks}"
        raise _error("QG224", _SCALE_SHAPE, message, _block_size_hint(length, blocks))


def _block_size_hint(length: int, blocks: int) -> str:
    """Say which block sizes make `blocks` of `length`: ceil(D / S) to ceil(D / (S - 1)) - 1, with no end for one block."""
    if blocks == 1 and length:
        return f"one block needs a block size of at least {length}"
    if blocks > 1:
        least, most = _ceil_div(length, blocks), _ceil_div(length, blocks - 1) - 1
        if 0 < least <= most:
            sizes = str(least) if least == most else f"{least} to {most}"
            return f"{blocks} scales mean a block size of {sizes}"
    return f"no block size divides {length} elements into {blocks} blocks: change the scale's shape"


def _check_zero_point(scale: Shape, zero_point: Shape) -> None:
    one_each = all(dim == 1 for dim in (*scale, *zero_point))
    if zero_point != scale and not one_each:
        message = f"the zero point has shape {list(zero_point)}, the scale {list(scale)}"
        raise _error("QG228", "the shape of the zero point", message, "the two must have one shape; nothing is broadcast")


def _to_whole(name: str, value: SupportsIndex) -> int:
    """Return a whole number of numpy's, too, as Python's."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise _not_whole(name, value)
    return operator.index(value)


def _check_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _not_whole(name, value)


def _not_whole(name: str, value: object) -> QgenError:
    code = "QG222" if name == "axis" else "QG223"
    return _error(code, f"`{name}`", f"`{name}` is a whole number, not `{value!r}`", f"give `{name}` as a Python int")


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _error(code: str, place: str, message: str, hint: str) -> QgenError:
    return QgenError(code, message, hint=hint, place=place)
