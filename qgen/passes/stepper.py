"""The group of one element after the other, without a division: an element's place in the view [outer, axis, inner] steps on.

var rest: u32 = first % inner
var along: u32 = first / inner % axis
…
let rest_2: u32 = if rest + 1u == inner then 0u else rest + 1u
let along_2: u32 = if along + u32(rest_2 == 0u) == axis then 0u else along + u32(rest_2 == 0u)
"""

from __future__ import annotations

from collections.abc import Callable

from qgen.ir import nodes as ir
from qgen.ir.types import Scalar
from qgen.passes.plan import Plan, block_extent
from qgen.passes.words import all_of, binary, let, name, u32
from qgen.shapes import Blocked


class Stepper:
    """The place of an element: `rest` along inner, `along` the axis, and the number of the first block of its `slice`."""

    def __init__(self, plan: Plan, fresh: Callable[[str], str]) -> None:
        """Step as the shape of `plan` says, under names that `fresh` makes."""
        view = plan.view
        self._fresh = fresh
        self._axis: ir.Expr = ir.Uniform("axis") if view is None else u32(view.axis)
        self._inner: ir.Expr = ir.Uniform("inner") if view is None else u32(view.inner)
        self._blocks: ir.Expr = ir.Uniform("blocks") if view is None else u32(view.blocks)
        self._begin = plan.begin
        self._size = block_extent(plan.granularity, view) if isinstance(plan.granularity, Blocked) else None
        self._vars: dict[str, ir.Expr] = {}
        self._now: dict[str, ir.Expr] = {}

    def start(self, first: ir.Expr, *, is_once: bool) -> list[ir.Stmt]:
        """Return the names of the place of the element `first`: variables, but for a place that is asked for once."""
        first = first if self._begin is None else binary("+", first, self._begin)
        row = binary("/", first, self._inner)
        places = {"along": binary("%", row, self._axis)}
        if self._inner != u32(1):
            places = {"rest": binary("%", first, self._inner)} | places
        if self._size is not None:
            places["slice"] = binary("*", binary("/", row, self._axis), self._blocks)
        self._vars = {place: name(self._fresh(place)) for place in places}
        self._now = dict(self._vars)
        return [(ir.Let if is_once else ir.Var)(_text(self._vars[place]), value) for place, value in places.items()]

    def group(self) -> ir.Expr:
        """Return the number of the element's group."""
        along = self._now["along"]
        if self._size is None:
            return along
        block = binary("+", self._now["slice"], binary("/", along, u32(self._size)))
        return binary("+", binary("*", block, self._inner), self._now["rest"]) if "rest" in self._now else block

    def step(self) -> list[ir.Stmt]:
        """Return the names of the next element's place."""
        stmts: list[ir.Stmt] = []
        ends: list[ir.Expr] = []
        moved = u32(1)
        if "rest" in self._now:
            stmts.append(self._wrapped("rest", u32(1), self._inner))
            ends.append(_equal(self._now["rest"], u32(0)))
            moved = ir.Convert(ends[0], Scalar.U32)
        stmts.append(self._wrapped("along", moved, self._axis))
        if self._size is not None:
            begins = all_of([*ends, _equal(self._now["along"], u32(0))])
            more = ir.Select(begins, self._blocks, u32(0), Scalar.U32)
            stmts.append(self._named("slice", binary("+", self._now["slice"], more)))
        return stmts

    def keep(self) -> list[ir.Stmt]:
        """Return the assignments that make the variables the place that names have now."""
        return [ir.Assign(_text(variable), self._now[place]) for place, variable in self._vars.items()]

    def _wrapped(self, place: str, by: ir.Expr, end: ir.Expr) -> ir.Stmt:
        moved = binary("+", self._now[place], by)
        return self._named(place, ir.Select(_equal(moved, end), u32(0), moved, Scalar.U32))

    def _named(self, place: str, value: ir.Expr) -> ir.Stmt:
        self._now[place] = name(self._fresh(place))
        return let(self._now[place], value)


def _equal(lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    return ir.Binary("==", lhs, rhs, Scalar.BOOL)


def _text(expr: ir.Expr) -> str:
    if not isinstance(expr, ir.Name):
        raise TypeError(expr)
    return expr.name
