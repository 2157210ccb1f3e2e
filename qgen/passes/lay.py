"""How the elements of an invocation lie, and their groups: what a plan chooses from granularity and shape.

An invocation owns pieces of elements that lie side by side. Where a piece has as many groups as elements, the next piece is in the row
below, so that it has the groups of the one above it, and these are decoded once. Where all elements of an invocation have one group, its
pieces lie as far apart as that group allows: at any time, neighbouring invocations then work on neighbouring pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from qgen.dtypes import WORD_BITS
from qgen.ir import nodes as ir
from qgen.ir.program import Domain, Kernel, Program
from qgen.ir.rewrite import walk_expr
from qgen.ir.types import LANES
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, View
from qgen.target import Target

VECTOR_BITS: Final = LANES * WORD_BITS
"""What a wide access moves."""

MOST_OF_A_PIECE: Final = 16
"""Elements: the text of a piece stands there once for each four."""

ROWS: Final = 8
"""Rows that an invocation walks down at most."""

REDUCE_FACTOR: Final = 16
"""How many times as many elements an invocation reduces as one that writes computes: one atomic operation for all of them."""


class GroupLevel(Enum):
    """How the groups of elements lie, by a fact of the shape.

    All elements of an invocation have one; those of a piece do; those of a piece have two at most, one after the other; as many as they
    are, side by side; uniforms decide whether the pieces of an invocation have the same; or nothing is known.
    """

    INVOCATION = "invocation"
    PIECE = "piece"
    PAIR = "pair"
    RUN = "run"
    ALIKE = "alike"
    ELEMENT = "element"


@dataclass(frozen=True, slots=True)
class Lay:
    """Elements an invocation, elements a piece; how groups lie, and the fact that says so.

    `columns` are the pieces from one of an invocation to its next one: None where that is 1.
    """

    lanes: int
    piece: int
    level: GroupLevel
    columns: int | None = None
    fact: str | None = None


def choose_lay(program: Program, kernel: Kernel, granularity: Granularity, view: View | None, target: Target, *, is_wide: bool) -> Lay:
    """Return how the elements of an invocation lie: whole words of every operand with an item each, whose groups are the fewest."""
    per_group = kernel.domain is Domain.GROUPS
    operands = [operand for operand in program.operands if operand.per_group == per_group and (operand.is_output or not per_group)]
    least = math.lcm(*(operand.dtype.layout.elements for operand in operands))
    if not is_wide:
        lanes = least * max(1, target.least_lanes // least) * (REDUCE_FACTOR if is_reduction(kernel) else 1)
        return _plain_lay(granularity, view, lanes)
    wanted = target.lanes
    if _fails_by_itself(kernel):
        # All elements of the invocation are computed again then.
        wanted //= 4
    most = min(MOST_OF_A_PIECE, VECTOR_BITS // min(operand.dtype.bits for operand in operands))
    while most > wanted:
        most //= 2
    most = max(least, LANES, most)
    pieces = max(1, wanted // most)
    if view is None and isinstance(granularity, PerTensor):
        return Lay(most * pieces, most, GroupLevel.INVOCATION)
    if view is None:
        return _uniform_lay(program, kernel, granularity, max(least, LANES), wanted)
    fact = _shared_fact(granularity, view, most * pieces) if view.count else "no elements"
    if fact is not None:
        return Lay(most * pieces, most, GroupLevel.INVOCATION, _strides(granularity, view, most * pieces, pieces), fact)
    sizes = [size for size in (most, most // 2, most // 4, most // 8) if size >= max(least, LANES) and size % max(least, LANES) == 0]
    found = _lay_of_groups(granularity, view, sizes[:1], wanted)
    if found is None and _has_two_groups(granularity, view, most):
        found = Lay(most * pieces, most, GroupLevel.PAIR, fact=f"a group of {most} elements or more lies side by side")
    found = found or _lay_of_groups(granularity, view, sizes[1:], wanted)
    found = found or _lay_of_columns(granularity, view, most)
    small = max(least, LANES)
    return found or Lay(most * pieces, small if most * pieces % small == 0 else most, GroupLevel.ELEMENT)


def _uniform_lay(program: Program, kernel: Kernel, granularity: Granularity, small: int, wanted: int) -> Lay:
    """Return the lay of a kernel with several groups whose shape is in uniforms: pieces as small as words allow.

    Whether an invocation has one group is asked of the uniforms where a loop for either answer makes no text too long for a driver:
    code that tests each element, and conversions of several vectors a piece, stand there twice.
    """
    pieces = max(1, min(ROWS, wanted // small))
    is_short = small == LANES or all(operand.dtype.bits == WORD_BITS for operand in program.operands if operand.dtype.is_float)
    if _fails_by_itself(kernel) or not is_short:
        return Lay(small * pieces, small, GroupLevel.ELEMENT)
    # Blocks that are shorter than the elements of an invocation would make it have several groups whatever the shape.
    least_block = granularity.block_size if isinstance(granularity, Blocked) else 0
    while pieces > 1 and least_block % (small * pieces):
        pieces //= 2
    return Lay(small * pieces, small, GroupLevel.ALIKE)


def _strides(granularity: Granularity, view: View, lanes: int, pieces: int) -> int | None:
    """Return how many pieces lie between those of an invocation, which share a group that lies side by side."""
    match granularity:
        case PerAxis() if view.axis > 1:
            extent = view.inner
        case Blocked():
            extent = view.block_size if view.axis % view.block_size == 0 else 0
        case _:
            extent = view.count
    return extent // lanes if pieces > 1 and extent > lanes and extent % lanes == 0 else None


def _plain_lay(granularity: Granularity, view: View | None, lanes: int) -> Lay:
    """Return the lay of a kernel that computes one element at a time: it asks only whether an invocation has one group."""
    if view is None:
        return Lay(lanes, lanes, GroupLevel.INVOCATION if isinstance(granularity, PerTensor) else GroupLevel.ELEMENT)
    fact = _shared_fact(granularity, view, lanes)
    return Lay(lanes, lanes, GroupLevel.ELEMENT if fact is None else GroupLevel.INVOCATION, fact=fact)


def is_reduction(kernel: Kernel) -> bool:
    """Whether a kernel reduces elements."""
    return any(isinstance(stmt, ir.Accumulate) for stmt in kernel.body)


def four_level(granularity: Granularity, view: View) -> GroupLevel:
    """Return how the groups of four elements lie, from a multiple of four on."""
    if _shared_fact(granularity, view, LANES) is not None:
        return GroupLevel.PIECE
    return GroupLevel.RUN if _run_fact(granularity, view, LANES) is not None else GroupLevel.ELEMENT


def _lay_of_groups(granularity: Granularity, view: View, sizes: Iterable[int], wanted: int) -> Lay | None:
    """Return the lay with the largest pieces that have one group, or as many as elements."""
    for size in sizes:
        pieces = max(1, wanted // size)
        fact = _shared_fact(granularity, view, size)
        if fact is not None:
            return Lay(size * pieces, size, GroupLevel.PIECE, fact=fact)
        fact = _run_fact(granularity, view, size)
        if fact is not None:
            rows = _rows(granularity, view)
            width = view.axis if isinstance(granularity, PerAxis) else view.inner
            if rows > 1:
                return Lay(size * rows, size, GroupLevel.RUN, columns=width // size, fact=fact)
            return Lay(size * pieces, size, GroupLevel.RUN, fact=fact)
    return None


def _lay_of_columns(granularity: Granularity, view: View, size: int) -> Lay | None:
    """Return the lay of pieces that begin anywhere in a row: the next one begins there too, as many rows below as make whole pieces."""
    is_axis = isinstance(granularity, PerAxis)
    width = view.axis if is_axis else view.inner
    if isinstance(granularity, PerTensor) or (is_axis and view.inner != 1):
        return None
    step = math.lcm(size, width)
    extents = [view.count // step if view.count % step == 0 else 1]
    if not is_axis:
        extents += [extent // (step // width) if extent % (step // width) == 0 else 1 for extent in (view.block_size, view.axis)]
    rows = _common_rows(extents)
    return Lay(size * rows, size, GroupLevel.ELEMENT, columns=step // size, fact=f"every {step // width} rows") if rows > 1 else None


def _common_rows(extents: Iterable[int]) -> int:
    extents = tuple(extents)
    return next(count for count in (ROWS, ROWS // 2, ROWS // 4, 1) if all(extent % count == 0 for extent in extents))


def _fails_by_itself(kernel: Kernel) -> bool:
    """Whether quick code may be wrong of one element and right of another one of the same group."""
    quick = [stmt.quick for stmt in kernel.body if isinstance(stmt, ir.Write) and stmt.quick is not None]
    return any(isinstance(node, ir.Read) for each in quick if each.holds is not None for node in walk_expr(each.holds))


def _rows(granularity: Granularity, view: View) -> int:
    """Return how many rows below one another an invocation may take, whose groups are the same column by column."""
    return _common_rows([view.outer] if isinstance(granularity, PerAxis) else [view.block_size, view.axis])


def _run_fact(granularity: Granularity, view: View, count: int) -> str | None:
    """Return why `count` elements side by side, from a multiple of that on, have as many groups, which lie so too."""
    match granularity:
        case PerAxis() if view.inner == 1 and view.axis % count == 0:
            return f"inner == 1 and axis % {count} == 0"
        case Blocked() if view.inner % count == 0:
            return f"inner % {count} == 0"
        case _:
            return None


def _shared_fact(granularity: Granularity, view: View, count: int) -> str | None:
    """Return why `count` elements, from a multiple of that on, have one group, or None where they may not."""
    match granularity:
        case PerTensor():
            return "one group"
        case PerAxis() if view.axis == 1:
            return "one group"
        case PerAxis() if view.inner % count == 0:
            return f"inner % {count} == 0"
        case Blocked() if view.inner == 1 and view.block_size % count == 0 and view.axis % count == 0:
            return f"inner == 1, block_size % {count} == 0 and axis % {count} == 0"
        case _:
            return None


def _has_two_groups(granularity: Granularity, view: View, count: int) -> bool:
    """Whether no `count` elements side by side have more than two groups: all groups are as long, and lie side by side."""
    match granularity:
        case PerAxis():
            return view.inner >= count
        case Blocked():
            last = view.axis % view.block_size or view.block_size
            return view.inner == 1 and min(last, view.block_size) >= count
        case _:
            return False
