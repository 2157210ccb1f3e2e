"""The granularity of a node whose shapes may be known in part only (SEMANTICS 1.5)."""

from __future__ import annotations

from qgen.errors import QgenError
from qgen.importer.bundle import Dims
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, check_operand_shapes, classify_granularity, normalize_axis

_HINT = "make the scale an initialiser, or declare its shape"


def find_granularity(x: Dims, scale: Dims, axis: int, block_size: int, zero_point: Dims) -> tuple[Granularity, tuple[str, ...]]:
    """Return the granularity that shapes and attributes mean, its axis from the front where x's rank is known, and what was assumed.

    Raises `QgenError` QG423 where the scale's rank is not known, QG220 to QG228 where what is known does not go together.
    """
    if scale is None:
        raise QgenError("QG423", "the shape of the scale is not known, so neither is the granularity", hint=_HINT)
    known_x, known_scale, known_zero = _known(x), _known(scale), _known(zero_point)
    if known_x is not None and known_scale is not None:
        return classify_granularity(known_x, known_scale, axis, block_size, known_zero), ()
    granularity, warnings = _guess(x, scale, axis, block_size)
    if known_scale is not None and known_zero is not None:
        _check_zero_point(granularity, known_scale, known_zero)
    return granularity, warnings


def _guess(x: Dims, scale: tuple[int | str | None, ...], axis: int, block_size: int) -> tuple[Granularity, tuple[str, ...]]:
    """Classify by what is known; a kernel of unknown shape checks the rest when it is dispatched."""
    has_one = all(dim == 1 for dim in scale)
    if block_size < 0:
        return classify_granularity((), (), axis, block_size), ()
    if block_size > 0 and not (len(scale) <= 1 and has_one):
        if x is not None and len(x) != len(scale):
            message = f"with blocks of {block_size} the scale must have x's rank, {len(x)}, or one element; its rank is {len(scale)}"
            raise QgenError("QG227", message, hint="give a scale of x's rank", place="the shape of the scale")
        at = normalize_axis(axis, len(scale))
        _check_equal_dims(x, scale, at)
        return Blocked(at, block_size), ()
    if has_one:
        return PerTensor(), ()
    if len(scale) == 1:
        at = axis if x is None else normalize_axis(axis, len(x))
        length = None if x is None else x[at]
        if isinstance(length, int) and isinstance(scale[0], int) and length != scale[0]:
            message = f"the scale has {scale[0]} elements, but x has {length} along axis {at}"
            raise QgenError("QG226", message, hint=f"give {length} scales", place="the shape of the scale")
        is_sure = isinstance(scale[0], int) or (scale[0] is not None and scale[0] == length)
        assumed = () if is_sure else ("the length of the scale is not known; it is taken to be x's along the axis, one scale per index",)
        return PerAxis(at), assumed
    message = f"a scale of shape {list(scale)} needs `block_size`, or x's shape is wrong"
    raise QgenError("QG227", message, hint="give one scale, a 1-D scale, or `block_size`", place="the shape of the scale")


def _check_equal_dims(x: Dims, scale: tuple[int | str | None, ...], axis: int) -> None:
    for index, (dim, scale_dim) in enumerate(zip(x or (), scale, strict=False)):
        if index != axis and isinstance(dim, int) and isinstance(scale_dim, int) and dim != scale_dim:
            message = f"the scale of shape {list(scale)} differs from x of shape {list(x or ())} along axis {index}, which is not blocked"
            raise QgenError("QG225", message, hint="all dimensions but the blocked one must be equal", place="the shape of the scale")


def _check_zero_point(granularity: Granularity, scale: tuple[int, ...], zero_point: tuple[int, ...]) -> None:
    """Hold the zero point against the scale, on an x made to fit the scale."""
    match granularity:
        case PerTensor():
            check_operand_shapes(granularity, (), scale, zero_point)
        case PerAxis():
            check_operand_shapes(PerAxis(0), scale, scale, zero_point)
        case Blocked(axis):
            check_operand_shapes(Blocked(axis, 1), scale, scale, zero_point)


def _known(dims: Dims) -> tuple[int, ...] | None:
    if dims is None:
        return None
    known = tuple(dim for dim in dims if isinstance(dim, int))
    return known if len(known) == len(dims) else None
