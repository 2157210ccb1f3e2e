"""Decides, before anything is placed, who owns which words, how many elements an invocation computes, and how the group of one is found.

A plan is a frozen record. An invocation owns `lanes` elements, in pieces of elements side by side that are whole periods of everything it
writes, so no two invocations write one word. The group is decided once an invocation where a fact allows it (`facts` says which), else once
for a span of pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from qgen.errors import QgenError
from qgen.ir import nodes as ir
from qgen.ir.program import Domain, Kernel, Program
from qgen.ir.rewrite import map_expr
from qgen.ir.types import Scalar
from qgen.passes.lay import VECTOR_BITS, GroupLevel, Lay, choose_lay, is_reduction
from qgen.passes.widen import is_widenable
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, View, is_last, make_view
from qgen.target import Target

UNIFORM_HINT: Final = "leave the shape out (of a model, `--shapes uniform`): a kernel with uniforms runs on parts of a tensor"
"""What to do about a tensor that is too large for one run."""

MAX_ELEMENTS: Final = (1 << 32) - 128
"""Index arithmetic is u32 on elements; an invocation may compute the index one past its last element."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `place` writes down for one kernel; an item is an element, or a group where it computes groups.

    `group` is the number of the group of element `i`.
    """

    granularity: Granularity
    view: View | None
    """The [outer, axis, inner] view where the shape is baked; None where uniforms have it."""
    count: ir.Expr
    """Items."""
    units: ir.Expr
    """Invocations that have items: ceil(count / lanes)."""
    row: ir.Expr | None
    """Invocations a row of the dispatch, where there can be more than one row."""
    lanes: int
    """Items an invocation owns."""
    piece: int
    """Items side by side; an invocation owns several such pieces."""
    round: int
    """Items of a round of the quick loop: those of a piece, or four of them."""
    columns: int | None
    """Pieces from one of an invocation to its next one, where they do not lie side by side."""
    is_whole: bool
    """Whether every invocation that has items has `lanes` of them."""
    workgroup_size: int
    begin: ir.Expr | None
    """The elements from that of the first group to the first element, where a run over a part of a tensor may begin anywhere."""
    group: ir.Expr
    group_level: GroupLevel
    span: int | None
    """Pieces of every span; None where the place of its first element says how many."""
    is_one: bool
    """Whether each piece has one group."""
    walks: bool
    """Whether uniforms may say that the pieces of an invocation lie in rows below one another."""
    is_wide: bool
    """Whether quick code works on four elements at a time."""
    wide: frozenset[str]
    """The operands bound as vectors of four words."""
    names: CountNames
    uniforms: tuple[str, ...]
    workgroups: tuple[int, int] | None
    """Workgroups a row and rows, where the shape is baked."""
    facts: tuple[str, ...]

    @property
    def group_is_shared(self) -> bool:
        """Whether all elements of an invocation have one group, that of its first."""
        return self.group_level is GroupLevel.INVOCATION

    @property
    def pieces(self) -> int:
        """Pieces that an invocation owns."""
        return self.lanes // self.piece

    def group_of(self, index: ir.Expr) -> ir.Expr:
        """Return the number of the group of element `index`."""
        return map_expr(self.group, lambda node: index if node == ir.Name("i", Scalar.U32) else node)


@dataclass(frozen=True, slots=True)
class CountNames:
    """The uniform fields of a kernel's dispatch: items, invocations that have some, and workgroups a row."""

    count: str
    units: str
    groups_x: str


def plan_kernel(program: Program, kernel: Kernel, granularity: Granularity, shape: tuple[int, ...] | None, target: Target) -> Plan:
    """Return the plan of a kernel. Raises `QgenError` QG302 for a tensor beyond 2^32 elements, and as `make_view` does."""
    is_wide = _is_wide(program, kernel)
    names = _names(kernel)
    size = target.workgroup_size
    index = ir.Name("i", Scalar.U32)
    if shape is None:
        lay = choose_lay(program, kernel, granularity, None, target, is_wide=is_wide)
        places = _extent_names(kernel, granularity)
        # A program of several kernels computes the whole tensor, and no part of it begins elsewhere.
        start = ("axis_start",) if places and len(program.kernels) == 1 else ()
        uniforms = (names.count, names.units, names.groups_x, *places, *start)
        fields: dict[str, ir.Expr] = {name: ir.Uniform(name) for name in uniforms}
        begin = fields.get("axis_start")
        group = _literal(0)
        if kernel.domain is Domain.ELEMENTS:
            element = index if begin is None else _binary("+", index, begin)
            inner = _literal(1) if is_last(granularity) else fields.get("inner")
            group = _group_index(element, granularity, _Extents(fields.get("axis"), inner, fields.get("blocks")), None)
        return Plan(
            granularity=granularity,
            view=None,
            count=fields[names.count],
            units=fields[names.units],
            row=_times(fields[names.groups_x], size),
            lanes=lay.lanes,
            piece=lay.piece,
            round=lay.round,
            columns=None,
            is_whole=False,
            workgroup_size=size,
            begin=begin,
            group=group,
            group_level=lay.level,
            span=lay.span,
            is_one=lay.is_one,
            walks=lay.walks,
            is_wide=is_wide,
            wide=frozenset(),
            names=names,
            uniforms=uniforms,
            workgroups=None,
            facts=(),
        )
    view = make_view(granularity, shape)
    # An empty tensor too has its parts in the text, where they must fit a u32.
    if max(view.count, max(view.axis, 1) * max(view.inner, 1)) > MAX_ELEMENTS:
        raise QgenError("QG302", f"{list(shape)} has more than 2^32 - 128 elements", hint=UNIFORM_HINT)
    lay = choose_lay(program, kernel, granularity, view, target, is_wide=is_wide)
    groups = group_count(granularity, view)
    count = view.count if kernel.domain is Domain.ELEMENTS else groups
    units = -(-count // lay.lanes)
    workgroups = -(-units // size)
    workgroups_x = min(workgroups, target.max_workgroups_per_dimension)
    extents = _Extents(_literal(view.axis), _literal(view.inner), _literal(view.blocks))
    return Plan(
        granularity=granularity,
        view=view,
        count=_literal(count),
        units=_literal(units),
        row=_literal(workgroups_x * size) if workgroups > workgroups_x else None,
        lanes=lay.lanes,
        piece=lay.piece,
        round=lay.round,
        columns=lay.columns,
        is_whole=count % lay.lanes == 0,
        workgroup_size=size,
        begin=None,
        group=_group_index(index, granularity, extents, view),
        group_level=lay.level,
        span=lay.span,
        is_one=lay.is_one,
        walks=False,
        is_wide=is_wide,
        wide=_wide_operands(program, count, lay) if is_wide else frozenset(),
        names=names,
        uniforms=(),
        workgroups=(workgroups_x, -(-workgroups // max(1, workgroups_x))),
        facts=(lay.fact,) if lay.fact else (),
    )


def block_extent(granularity: Blocked, view: View | None) -> int:
    """Return the elements of a block along its axis, as far as text can have them."""
    return min(granularity.block_size, MAX_ELEMENTS) if view is None else view.block_size


def group_count(granularity: Granularity, view: View) -> int:
    """Return how many quantization groups a tensor has."""
    match granularity:
        case PerTensor():
            return 1
        case PerAxis():
            return view.axis
        case Blocked():
            return view.outer * view.blocks * view.inner
        case _:
            assert_never(granularity)


def _is_wide(program: Program, kernel: Kernel) -> bool:
    """Whether a kernel has native code, and elements that lie within words."""
    native = [stmt.quick for stmt in kernel.body if isinstance(stmt, ir.Write) and stmt.quick is not None]
    elements = [operand for operand in program.operands if not operand.per_group]
    if kernel.domain is not Domain.ELEMENTS or not native or any(operand.dtype.layout.words > 1 for operand in elements):
        return False
    exprs = [expr for quick in native for expr in (quick.value, quick.holds) if expr is not None]
    return is_widenable(exprs, {function.name: function for function in program.functions})


def _wide_operands(program: Program, count: int, lay: Lay) -> frozenset[str]:
    """Return the operands that quick code reads or writes four words at a time, all of whose words that way are whole."""
    found: set[str] = set()
    for operand in program.bound:
        bits = operand.dtype.bits
        is_whole = count * bits % VECTOR_BITS == 0 and lay.round * bits % VECTOR_BITS == 0
        if not operand.per_group and count and is_whole and not operand.is_scratch:
            found.add(operand.name)
    return frozenset(found)


def _names(kernel: Kernel) -> CountNames:
    if kernel.domain is Domain.GROUPS:
        return CountNames("groups", "group_units", "group_groups_x")
    prefix = "reduce_" if is_reduction(kernel) else ""
    return CountNames("n", f"{prefix}units", f"{prefix}groups_x")


def _extent_names(kernel: Kernel, granularity: Granularity) -> tuple[str, ...]:
    if kernel.domain is Domain.GROUPS:
        return ()
    match granularity:
        case PerTensor():
            return ()
        case PerAxis():
            return "axis", "inner"
        case Blocked():
            return "axis", "inner", "blocks"
        case _:
            assert_never(granularity)


@dataclass(frozen=True, slots=True)
class _Extents:
    """The view's extents as expressions: literals or uniforms; None where the granularity does not need one."""

    axis: ir.Expr | None
    inner: ir.Expr | None
    blocks: ir.Expr | None


def _group_index(index: ir.Expr, granularity: Granularity, extents: _Extents, view: View | None) -> ir.Expr:
    """Return the number of the scale of element `index`, by the view's formula; shorter where the shape allows it.

    An empty tensor has no element to ask for, and no division by an extent of 0 may stand in its text.
    """
    if isinstance(granularity, PerTensor) or (view is not None and view.count == 0):
        return _literal(0)
    axis, inner, blocks = extents.axis, extents.inner, extents.blocks
    if axis is None or inner is None:
        raise TypeError(granularity)
    row = _binary("/", index, inner)
    if isinstance(granularity, PerAxis):
        return row if view is not None and view.outer == 1 else _binary("%", row, axis)
    if blocks is None:
        raise TypeError(granularity)
    size = _literal(block_extent(granularity, view))
    if view is not None and (view.axis % view.block_size == 0 or view.outer == 1):
        block = _binary("/", row, size)
    else:
        block = _binary("+", _binary("*", _binary("/", row, axis), blocks), _binary("/", _binary("%", row, axis), size))
    if view is not None and view.inner == 1:
        return block
    return _binary("+", _binary("*", block, inner), _binary("%", index, inner))


def _literal(value: int) -> ir.Expr:
    return ir.Literal(value, Scalar.U32)


def _binary(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    return ir.Binary(op, lhs, rhs, Scalar.U32)


def _times(expr: ir.Expr, factor: int) -> ir.Expr:
    return _binary("*", expr, _literal(factor))
