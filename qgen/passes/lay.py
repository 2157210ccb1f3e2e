"""How the elements of an invocation lie, and their groups: what a plan chooses from granularity and shape.

An invocation owns pieces of elements: as few whole words of everything it writes as there can be, and four elements at least. Where all of
them have one group, they lie as far apart as that group allows: at any time, neighbouring invocations then work on neighbouring pieces.
Where a piece has as many groups as elements, the next piece is in a row below, so that it has the groups of the one above it. Elsewhere
pieces lie side by side, and those that have the same groups are a span. So groups are decoded once an invocation, or once a span.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from qgen.dtypes import WORD_BITS
from qgen.ir import nodes as ir
from qgen.ir.program import Domain, Function, Kernel, Program, kept
from qgen.ir.rewrite import walk_body, walk_expr
from qgen.ir.types import LANES
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, View, is_last
from qgen.target import Target

VECTOR_BITS: Final = LANES * WORD_BITS
"""What a wide access moves."""

MOST_NODES: Final = 150
"""Nodes of an element's quick code from which on it stands in the text for four elements, and not for eight: drivers take long for more."""

FEW: Final = 4
"""Pieces of a span, or rows that an invocation goes through, from which on it is worth a loop."""

REDUCE_FACTOR: Final = 16
"""How many times as many elements an invocation reduces as one that writes computes: one atomic operation for all of them."""


class GroupLevel(Enum):
    """For what groups are decoded: once an invocation, once a span of pieces that have the same ones, or for each element."""

    INVOCATION = "invocation"
    SPAN = "span"
    ELEMENT = "element"


@dataclass(frozen=True, slots=True)
class Lay:
    """Elements an invocation, elements a piece; for what groups are decoded, and the fact that says so.

    `columns` are the pieces from one of an invocation to its next one: None where that is 1.
    """

    lanes: int
    piece: int
    round: int
    """Elements of a round of the quick loop: those of a piece, or four of them where their code is long."""
    level: GroupLevel
    columns: int | None = None
    span: int | None = None
    """Pieces of every span; None where the place of its first element says how many."""
    is_one: bool = False
    """Whether each piece has one group."""
    walks: bool = False
    """Whether uniforms may say that the pieces of an invocation lie in rows below one another."""
    fact: str | None = None


def choose_lay(program: Program, kernel: Kernel, granularity: Granularity, view: View | None, target: Target, *, is_wide: bool) -> Lay:
    """Return how the elements of an invocation lie: whole words of every operand with an item each, whose groups are the fewest."""
    per_group = kernel.domain is Domain.GROUPS
    operands = [operand for operand in program.operands if operand.per_group == per_group and (operand.is_output or not per_group)]
    least = math.lcm(*(operand.dtype.layout.elements for operand in operands))
    if not is_wide:
        lanes = least * max(1, target.least_lanes // least) * (REDUCE_FACTOR if is_reduction(kernel) else 1)
        return _plain_lay(granularity, view, lanes)
    is_long = least > 2 * LANES or _length(program, kernel) > MOST_NODES
    if is_long:
        least = math.lcm(*(operand.dtype.layout.elements for operand in operands if operand.is_output))
    piece = math.lcm(least, LANES)
    size = LANES if is_long else piece
    lanes = piece * max(1, target.lanes // piece)
    if view is None:
        return _uniform_lay(granularity, piece, size, lanes)
    fact = shared_fact(granularity, view, lanes) if view.count else "no elements"
    if fact is not None:
        return Lay(lanes, piece, size, GroupLevel.INVOCATION, _strides(granularity, view, lanes, lanes // piece), fact=fact)
    fact = shared_fact(granularity, view, size)
    if fact is not None:
        span = _span(granularity, view, size, lanes // size)
        return Lay(lanes, piece, size, GroupLevel.SPAN, span=span, is_one=True, fact=fact)
    found = _lay_of_columns(granularity, view, piece, lanes // piece) if size == piece else None
    return found or Lay(lanes, piece, size, GroupLevel.SPAN, span=None if _extent(granularity, view) >= 2 * size else 1)


def _uniform_lay(granularity: Granularity, piece: int, size: int, lanes: int) -> Lay:
    """Return the lay of a kernel whose shape is in uniforms, and the elements of a round of which are `size`."""
    pieces = lanes // piece
    match granularity:
        case PerTensor():
            return Lay(lanes, piece, size, GroupLevel.INVOCATION)
        case PerAxis():
            return Lay(lanes, piece, size, GroupLevel.SPAN, walks=pieces >= FEW and size == piece)
        case Blocked(_, block_size):
            rows = math.gcd(block_size, pieces)
            walks = rows >= FEW and size == piece and not is_last(granularity)
            span = 1 if is_last(granularity) and block_size < 2 * size else None
            return Lay(piece * rows if walks else lanes, piece, size, GroupLevel.SPAN, span=span, walks=walks)
        case _:
            assert_never(granularity)


def _length(program: Program, kernel: Kernel) -> int:
    """Return how many nodes the quick code of an element has, with those of all functions that it calls."""
    table = {function.name: function for function in program.functions}
    quick = [stmt.quick for stmt in kernel.body if isinstance(stmt, ir.Write) and stmt.quick is not None]
    lengths: dict[str, int] = {}

    def length(nodes: Iterable[ir.Expr]) -> int:
        total = 0
        for node in nodes:
            total += 1
            if isinstance(node, ir.Call):
                if node.function not in lengths:
                    lengths[node.function] = length(_nodes_of(table[node.function]))
                total += lengths[node.function]
        return total

    return sum(length(walk_expr(expr)) for each in quick for expr in (each.value, each.holds) if expr is not None)


@kept
def _nodes_of(function: Function) -> tuple[ir.Expr, ...]:
    return tuple(walk_body(function.body))


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


def _extent(granularity: Granularity, view: View) -> int:
    """Return the most elements side by side that have one group."""
    if isinstance(granularity, PerAxis):
        return view.inner
    return view.block_size if view.inner == 1 else 1


def _span(granularity: Granularity, view: View, piece: int, pieces: int) -> int | None:
    """Return the pieces after which a new group may begin; None where most spans are much longer."""
    extent = _extent(granularity, view)
    common = math.gcd(extent, view.axis) if isinstance(granularity, Blocked) else extent
    span = math.gcd(common // piece, pieces)
    return span if span >= FEW or extent < 2 * FEW * piece else None


def _plain_lay(granularity: Granularity, view: View | None, lanes: int) -> Lay:
    """Return the lay of a kernel that computes one element at a time: it asks only whether an invocation has one group."""
    if view is None:
        return Lay(lanes, lanes, lanes, GroupLevel.INVOCATION if isinstance(granularity, PerTensor) else GroupLevel.ELEMENT)
    fact = shared_fact(granularity, view, lanes)
    return Lay(lanes, lanes, lanes, GroupLevel.ELEMENT if fact is None else GroupLevel.INVOCATION, fact=fact)


def is_reduction(kernel: Kernel) -> bool:
    """Whether a kernel reduces elements."""
    return any(isinstance(stmt, ir.Accumulate) for stmt in kernel.body)


def _lay_of_columns(granularity: Granularity, view: View, piece: int, pieces: int) -> Lay | None:
    """Return the lay of pieces that begin at the same element of rows below one another, whose groups are the same column by column."""
    is_axis = isinstance(granularity, PerAxis)
    if is_axis is not (view.inner == 1):
        return None
    width = view.axis if is_axis else view.inner
    step = math.lcm(piece, width)
    extents = [view.count // step if view.count % step == 0 else 1]
    if not is_axis:
        extents += [extent // (step // width) if extent % (step // width) == 0 else 1 for extent in (view.block_size, view.axis)]
    rows = math.gcd(*extents, 1 << (pieces.bit_length() - 1))
    fact = run_fact(granularity, view, piece) or f"every {step // width} rows"
    return Lay(piece * rows, piece, piece, GroupLevel.SPAN, columns=step // piece, fact=fact) if rows > 1 else None


def run_fact(granularity: Granularity, view: View, count: int) -> str | None:
    """Return why `count` elements side by side, from a multiple of that on, have as many groups, which lie so too."""
    match granularity:
        case PerAxis() if view.inner == 1 and view.axis % count == 0:
            return f"inner == 1 and axis % {count} == 0"
        case Blocked() if view.inner % count == 0:
            return f"inner % {count} == 0"
        case _:
            return None


def shared_fact(granularity: Granularity, view: View, count: int) -> str | None:
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
