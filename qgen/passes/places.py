"""The groups of elements that lie ahead of one whose place is known, four at a time and without a division.

The place of an element in the view [outer, axis, inner] is `rest` along inner and `along` the axis, and the number of the first block of
its `slice`. For the elements `ahead` of it, of a tensor with scales along an axis:

    let passed: vec4<u32> = (vec4<u32>(rest_near) + ahead) * vec4<u32>(inner_inverse) >> 16
    let turns: vec4<u32> = (vec4<u32>(along_near) + passed) * vec4<u32>(axis_inverse) >> 16
    let group: vec4<u32> = vec4<u32>(along) + passed - turns * vec4<u32>(axis)

`ahead` is less than 128, and so the ends of rows that it passes are those of a row of at most 128 elements that ends where the real one
does: `near` is an extent, or a place in it, of that kind. A number below 256 times ceil(65536 / extent), in which there is an error of less
than 256 / 65536, has the quotient above its 16th bit, for an extent of at most 128.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_node
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.plan import Plan, block_extent
from qgen.passes.widen import spread
from qgen.passes.words import binary, minimum, u32
from qgen.shapes import Blocked, is_last

NEAR: Final = 128
"""The elements that an invocation owns at most: as far ahead as a place may lie."""

_BITS: Final = 16
_U32X4: Final = Vector(Scalar.U32)


class Places:
    """The groups of elements ahead of one, as the shape of a plan has them, under names that `fresh` makes."""

    def __init__(self, plan: Plan, fresh: Callable[[str], str]) -> None:
        """Ask `start` first."""
        view = plan.view
        self._fresh = fresh
        self._begin = plan.begin
        self._axis: ir.Expr = ir.Uniform("axis") if view is None else u32(view.axis)
        self._inner: ir.Expr = (u32(1) if is_last(plan.granularity) else ir.Uniform("inner")) if view is None else u32(view.inner)
        self._blocks: ir.Expr = ir.Uniform("blocks") if view is None else u32(view.blocks)
        self._size = block_extent(plan.granularity, view) if isinstance(plan.granularity, Blocked) else None
        self._turns = view is None or view.outer > 1
        self._place: dict[str, ir.Expr] = {}
        self._near: dict[str, tuple[ir.Expr, ir.Expr]] = {}

    def start(self, first: ir.Expr) -> list[ir.Stmt]:
        """Return the names of the place of the element `first`."""
        stmts: list[ir.Stmt] = []
        first = first if self._begin is None else binary("+", first, self._begin)
        row = first
        if self._inner != u32(1):
            row = self._named(stmts, "row", binary("/", first, self._inner))
            self._place["rest"] = self._named(stmts, "rest", binary("%", first, self._inner))
            self._approach(stmts, ("inner", "rest"), self._inner)
        self._place["along"] = row
        if self._turns:
            self._place["along"] = self._named(stmts, "along", binary("%", row, self._axis))
            self._approach(stmts, ("axis", "along"), self._axis)
        if self._size is not None and self._turns:
            self._place["slice"] = self._named(stmts, "slice", binary("*", binary("/", row, self._axis), self._blocks))
        return stmts

    def numbers(self, ahead: ir.Expr, quads: int) -> tuple[list[ir.Stmt], list[ir.Expr], ir.Expr]:
        """Return what to name first, the groups of the elements from `ahead` on by quads, and how many have the group of the first."""
        stmts: list[ir.Stmt] = []
        numbers: list[ir.Expr] = []
        left: ir.Expr = u32(1)
        for quad in range(quads):
            lanes = ir.Compose(tuple(u32(LANES * quad + lane) for lane in range(LANES)), _U32X4)
            each: ir.Expr = lanes if ahead == u32(0) else self._named(stmts, "ahead", _vector("+", ahead, lanes))
            group, ends = self._group(stmts, each)
            numbers.append(group)
            left = left if quad else ends
        return stmts, numbers, left

    def _group(self, stmts: list[ir.Stmt], ahead: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
        rows = ahead
        if "rest" in self._place:
            rows = self._named(stmts, "passed", self._passed("inner", ahead))
        along = _vector("+", self._place["along"], rows)
        turns: ir.Expr | None = None
        if self._turns:
            turns = self._named(stmts, "turns", self._passed("axis", rows))
            along = _vector("-", along, _vector("*", turns, self._axis))
        left = u32(1)
        rest: ir.Expr | None = None
        if "rest" in self._place:
            rest = _vector("-", _vector("+", self._place["rest"], ahead), _vector("*", rows, self._inner))
        if self._size is None:
            if rest is not None:
                left = binary("-", self._inner, _first(rest))
            return self._named(stmts, "group", along), left
        along = self._named(stmts, "along", along)
        block = _vector("/", along, u32(self._size))
        if turns is not None:
            block = _vector("+", _vector("+", self._place["slice"], _vector("*", turns, self._blocks)), block)
        of_block = binary("-", u32(self._size), binary("%", _first(along), u32(self._size)))
        left = minimum(of_block, binary("-", self._axis, _first(along)))
        if rest is not None:
            block = _vector("+", _vector("*", block, self._inner), rest)
            left = ir.Select(ir.Binary("==", self._inner, u32(1), Scalar.BOOL), left, u32(1), Scalar.U32)
        return self._named(stmts, "group", block), left

    def _approach(self, stmts: list[ir.Stmt], texts: tuple[str, str], extent: ir.Expr) -> None:
        """Name the place in an extent of at most `NEAR`, and that extent's inverse; `texts` name the real extent and place."""
        text, place_text = texts
        place = self._place[place_text]
        if isinstance(extent, ir.Literal):
            short = min(int(extent.value), NEAR)
            near: ir.Expr = u32(short)
            inverse: ir.Expr = u32(-(-(1 << _BITS) // max(1, short)))
        else:
            near = self._named(stmts, f"{text}_near", minimum(extent, u32(NEAR)))
            above = binary("+", near, u32((1 << _BITS) - 1))
            inverse = self._named(stmts, f"{text}_inverse", binary("/", above, near))
        if near != extent:
            place = binary("-", near, minimum(binary("-", extent, place), near))
            place = self._named(stmts, f"{place_text}_near", place)
        self._near[text] = place, inverse

    def _passed(self, text: str, ahead: ir.Expr) -> ir.Expr:
        """Return how many ends of an extent lie before what is `ahead` of the place."""
        near, inverse = self._near[text]
        return _vector(">>", _vector("*", _vector("+", near, ahead), inverse), u32(_BITS))

    def _named(self, stmts: list[ir.Stmt], text: str, value: ir.Expr) -> ir.Expr:
        value = fold_node(value)
        if isinstance(value, ir.Name | ir.Literal):
            return value
        named = ir.Name(self._fresh(text), value.type)
        stmts.append(ir.Let(named.name, value))
        return named


def _vector(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    return ir.Binary(op, spread(lhs), spread(rhs), _U32X4)


def _first(vector: ir.Expr) -> ir.Expr:
    """Return the first element of an operation on vectors: the operation on their first ones."""
    match vector:
        case ir.Binary(op, lhs, rhs, _):
            return binary(op, _first(lhs), _first(rhs))
        case ir.Compose(args, _):
            return args[0]
        case ir.Name():
            return ir.Component(vector, 0, Scalar.U32)
        case _:
            raise InternalError("places are named, or computed from what is")
