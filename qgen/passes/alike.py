"""Whether the pieces of an invocation have the same groups, where only uniforms say so: conditions that are decided when the kernel runs.

For a per-axis kernel of pieces of 16 elements, 4 an invocation:

    let walks: bool = inner == 1u && axis % 16u == 0u && n % axis == 0u && n / axis % 4u == 0u && axis_start % 16u == 0u
    let alike: bool = walks || inner % 64u == 0u && axis_start % 64u == 0u
    let columns: u32 = if walks then axis / 16u else 1u

Where it walks, the pieces of an invocation are in rows below one another, `columns` pieces a row, and the groups of a piece lie side by
side. Else its pieces lie side by side, and all their elements have one group where they are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgen.ir import nodes as ir
from qgen.ir.types import Scalar
from qgen.passes.words import all_of, binary, u32
from qgen.shapes import Blocked, Granularity, PerAxis


@dataclass(frozen=True, slots=True)
class Alike:
    """When an invocation walks down rows, when all its elements have one group, and the elements of a row that it walks down."""

    walks: ir.Expr
    shares: ir.Expr
    width: ir.Expr


def alike_of(granularity: Granularity, lanes: int, piece: int, begin: ir.Expr | None) -> Alike | None:
    """Return the conditions on the uniforms, for invocations of `lanes` elements; None where there is nothing to ask.

    `begin` is as in a plan: a run over a part of a tensor need neither begin nor end with a row.
    """
    axis, inner, count, rows = ir.Uniform("axis"), ir.Uniform("inner"), ir.Uniform("n"), lanes // piece
    match granularity:
        case PerAxis():
            walks = [_equal(inner, 1), _divides(piece, axis), *_whole_rows(rows, axis, count), *_begins(piece, begin)]
            return Alike(all_of(walks), all_of([_divides(lanes, inner), *_begins(lanes, begin)]), axis)
        case Blocked(_, size):
            never = ir.Literal(value=False, type=Scalar.BOOL)
            walks = [_divides(piece, inner), _divides(rows, axis), *_whole_rows(rows, inner, count)]
            walks += [] if begin is None else _whole_rows(rows, inner, begin)
            shares = [_equal(inner, 1), _divides(lanes, axis), *_begins(lanes, begin)]
            return Alike(all_of(walks) if size % rows == 0 else never, all_of(shares) if size % lanes == 0 else never, inner)
        case _:
            return None


def _begins(count: int, begin: ir.Expr | None) -> list[ir.Expr]:
    return [] if begin is None else [_divides(count, begin)]


def _whole_rows(rows: int, width: ir.Expr, elements: ir.Expr) -> list[ir.Expr]:
    """Return that `elements` are a multiple of `rows` rows, without their product, which may not fit."""
    return [_equal(binary("%", elements, width), 0), _divides(rows, binary("/", elements, width))]


def _equal(expr: ir.Expr, value: int) -> ir.Expr:
    return ir.Binary("==", expr, u32(value), Scalar.BOOL)


def _divides(count: int, expr: ir.Expr) -> ir.Expr:
    return _equal(binary("%", expr, u32(count)), 0)
