"""Whether the pieces of an invocation lie in rows below one another, where only uniforms say so: decided when the kernel runs.

For a per-axis kernel of pieces of 4 elements, 32 an invocation:

    let part: u32 = min(axis & (0u - axis), 4u)
    let rows: u32 = 128u / part
    let walks: bool = inner == 1u && n % axis == 0u && n / axis % rows == 0u
    let columns: u32 = if walks then axis / part else 1u
    let base: u32 = unit / columns * (32u * columns) + unit % columns

Where it walks, piece `base + columns * p` begins at the same element of a row as piece `base`, and so has its groups: `part` is what the
elements of a row and those of a piece have in common, and `rows` are those that an invocation goes through. Else its pieces lie side by
side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgen.ir import nodes as ir
from qgen.ir.types import Scalar
from qgen.passes.plan import Plan
from qgen.passes.words import all_of, binary, let, minimum, name, u32
from qgen.shapes import Blocked, is_last


@dataclass(frozen=True, slots=True)
class Walk:
    """The statements that decide it, whether it walks, the number of the first piece and how far apart pieces lie."""

    stmts: tuple[ir.Stmt, ...]
    walks: ir.Name
    base: ir.Expr
    columns: ir.Expr


def walk_rows(plan: Plan, unit: ir.Expr, fresh: Callable[[str], str]) -> Walk:
    """Return the walk of invocation `unit`, under names that `fresh` makes."""
    part, rows, columns, base = (name(fresh(text)) for text in ("part", "rows", "columns", "base"))
    walks = ir.Name(fresh("walks"), Scalar.BOOL)
    count, begin, axis, inner = ir.Uniform("n"), plan.begin, ir.Uniform("axis"), ir.Uniform("inner")
    if isinstance(plan.granularity, Blocked):
        width: ir.Expr = inner
        tests = [*_whole_rows(count, width, rows), _divides(rows, axis), _divides(rows, u32(plan.granularity.block_size))]
        tests += [] if begin is None else _whole_rows(begin, width, rows)
    else:
        width = axis
        tests = [] if is_last(plan.granularity) else [_equal(inner, 1)]
        tests += _whole_rows(count, width, rows)
    above = binary("*", binary("/", unit, columns), binary("*", u32(plan.pieces), columns))
    stmts = (
        let(part, minimum(binary("&", width, binary("-", u32(0), width)), u32(plan.piece))),
        let(rows, binary("/", u32(plan.lanes), part)),
        let(walks, all_of(tests)),
        let(columns, ir.Select(walks, binary("/", width, part), u32(1), Scalar.U32)),
        let(base, binary("+", above, binary("%", unit, columns))),
    )
    return Walk(stmts, walks, base, columns)


def _whole_rows(elements: ir.Expr, width: ir.Expr, rows: ir.Expr) -> list[ir.Expr]:
    """Return that `elements` are a multiple of so many rows, without their product, which may not fit."""
    return [_equal(binary("%", elements, width), 0), _divides(rows, binary("/", elements, width))]


def _equal(expr: ir.Expr, value: int) -> ir.Expr:
    return ir.Binary("==", expr, u32(value), Scalar.BOOL)


def _divides(count: ir.Expr, expr: ir.Expr) -> ir.Expr:
    return _equal(binary("%", expr, count), 0)
