"""The quick code of four elements side by side, for functions that give them: what is named first, their condition and their codes.

let x_codes: vec4<u32> = vector x[quad]
all(vec4<bool>(is_plain) & rint_quotient_holds_4(x_codes, scale))
quantize_linear_quick_4(x_codes, scale, zero_point)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from qgen.dtypes import WORD_BITS
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_node
from qgen.ir.program import Program
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.lay import run_fact, shared_fact
from qgen.passes.plan import Plan
from qgen.passes.widen import Widener, spread
from qgen.passes.words import TRUE, binary, let, load_code, name, u32
from qgen.shapes import Granularity, View

_U32X4: Final = Vector(Scalar.U32)


class FourGroups(Enum):
    """The groups of four elements, from a multiple of four on: one, four side by side, or nothing is known."""

    ONE = "one"
    RUN = "run"
    EACH = "each"


def groups_of_four(granularity: Granularity, view: View) -> FourGroups:
    """Return how the groups of four elements lie."""
    if shared_fact(granularity, view, LANES) is not None:
        return FourGroups.ONE
    return FourGroups.RUN if run_fact(granularity, view, LANES) is not None else FourGroups.EACH


class QuadDecoder:
    """Writes the quick code of four elements of one kernel."""

    def __init__(self, program: Program, plan: Plan, level: FourGroups, fresh: Callable[[str], str]) -> None:
        """Place under names that `fresh` makes."""
        self._level = level
        self._program = program
        self._plan = plan
        self._fresh = fresh
        self._vectors: dict[str, ir.Expr] = {}
        self.widener = Widener({function.name: function for function in program.functions})

    def decode(self, groups: list[ir.Stmt], quick: ir.Quick, quad: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr | None, ir.Expr]:
        """Return what is named of the four elements of `quad`, whether `quick` is right of all of them (None: always), and their codes."""
        stmts = self._named(groups, quick, quad)
        holds = None if quick.holds is None or quick.holds == TRUE else self._all_hold(quick.holds)
        return stmts, holds, spread(self.widener.expr(quick.value, self._leaf))

    def _named(self, groups: list[ir.Stmt], quick: ir.Quick, quad: ir.Expr) -> list[ir.Stmt]:
        """Return the codes of four elements and what their groups decide, named."""
        self._vectors = {}
        stmts: list[ir.Stmt] = []
        for read in self._reads(quick):
            lets, codes = self._codes(read, quad)
            bound = _name_of(self._fresh(f"{read}_codes"), _U32X4)
            stmts += [*lets, ir.Let(bound.name, codes)]
            self._vectors[read] = bound
        if self._level is FourGroups.ONE:
            stmts += self._scalar_groups(groups, quad)
        else:
            stmts += self._vector_groups(groups, quad)
        return stmts

    def _all_hold(self, holds: ir.Expr) -> ir.Expr:
        wide = self.widener.expr(holds, self._leaf)
        return ir.Builtin("all", (wide,), Scalar.BOOL) if isinstance(wide.type, Vector) else wide

    def _reads(self, quick: ir.Quick) -> list[str]:
        found = [node.operand for node in walk_expr(quick.value) if isinstance(node, ir.Read)]
        return list(dict.fromkeys(found))

    def _leaf(self, expr: ir.Expr) -> ir.Expr | None:
        match expr:
            case ir.Read(operand, _):
                return self._vectors[operand]
            case ir.Name(text, _):
                return self._vectors.get(text, expr)
            case _:
                return None

    def _codes(self, operand: str, quad: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr]:
        """Return the codes of elements `4 * quad` to `4 * quad + 3`."""
        dtype = self._program.operand(operand).dtype
        if dtype.bits == WORD_BITS:
            return [], ir.Compose(tuple(ir.Load(operand, _word(quad, LANES, number)) for number in range(LANES)), _U32X4)
        if dtype.bits == 16:
            words = [name(self._fresh(f"{operand}_word")) for _ in range(2)]
            lets = [let(word, ir.Load(operand, _word(quad, 2, half))) for half, word in enumerate(words)]
            halves = [part for word in words for part in (binary("&", word, u32(0xFFFF)), binary(">>", word, u32(16)))]
            return lets, ir.Compose(tuple(halves), _U32X4)
        each = WORD_BITS // (LANES * dtype.bits)
        word = name(self._fresh(f"{operand}_word"))
        loaded: ir.Expr = ir.Load(operand, quad) if each == 1 else ir.Load(operand, binary("/", quad, u32(each)))
        if each > 1:
            loaded = binary(">>", loaded, binary("*", u32(LANES * dtype.bits), binary("%", quad, u32(each))))
        counts = ir.Compose(tuple(u32(dtype.bits * number) for number in range(LANES)), _U32X4)
        shifted = ir.Binary(">>", spread(word), counts, _U32X4)
        return [let(word, loaded)], ir.Binary("&", shifted, spread(u32(dtype.mask)), _U32X4)

    def _scalar_groups(self, groups: list[ir.Stmt], quad: ir.Expr) -> list[ir.Stmt]:
        first = binary("*", u32(LANES), quad)
        number = self._plan.group_of(first)
        stmts: list[ir.Stmt] = []
        if not isinstance(number, ir.Literal):
            group, number = number, name(self._fresh("group"))
            stmts.append(let(number, group))
        for stmt in groups:
            if not isinstance(stmt, ir.Let):
                raise InternalError("what a group decides is named")
            lets, value = self._with_loads(stmt.value, number)
            stmts += [*lets, ir.Let(stmt.name, value)]
        return stmts

    def _with_loads(self, value: ir.Expr, index: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr]:
        lets: list[ir.Stmt] = []
        return lets, map_expr(value, lambda node: self._load(node, index, lets))

    def _load(self, node: ir.Expr, index: ir.Expr, lets: list[ir.Stmt]) -> ir.Expr:
        if not isinstance(node, ir.Read):
            return node
        more, code = load_code(node.operand, self._program.operand(node.operand).dtype, index, self._fresh)
        lets.extend(more)
        return code

    def _vector_groups(self, groups: list[ir.Stmt], quad: ir.Expr) -> list[ir.Stmt]:
        """Return what the groups of four elements decide, as vectors."""
        stmts: list[ir.Stmt] = []
        first = binary("*", u32(LANES), quad)
        if self._level is FourGroups.RUN:
            group = self._plan.group_of(first)
            run = name(self._fresh("group_quad"))
            stmts.append(let(run, binary("/", group, u32(LANES))))
        else:
            offsets = ir.Compose(tuple(u32(number) for number in range(LANES)), _U32X4)
            elements = ir.Binary("+", spread(first), offsets, _U32X4)
            index = map_expr(self._plan.group, fold_node)
            group = spread(self.widener.expr(index, lambda node: elements if node == ir.Name("i", Scalar.U32) else None))
            numbers = _name_of(self._fresh("group"), _U32X4)
            stmts.append(ir.Let(numbers.name, group))
        for stmt in groups:
            if not isinstance(stmt, ir.Let):
                raise InternalError("what a group decides is named")
            for node in walk_expr(stmt.value):
                if isinstance(node, ir.Read) and node.operand not in self._vectors:
                    lets: list[ir.Stmt] = []
                    if self._level is FourGroups.RUN:
                        lets, codes = self._codes(node.operand, run)
                    else:
                        codes = ir.Compose(tuple(self._load(node, _part(numbers, number), lets) for number in range(LANES)), _U32X4)
                    bound = _name_of(self._fresh(f"{node.operand}_codes"), _U32X4)
                    stmts += [*lets, ir.Let(bound.name, codes)]
                    self._vectors[node.operand] = bound
            value = self.widener.expr(stmt.value, self._leaf)
            stmts.append(ir.Let(stmt.name, value))
            if isinstance(value.type, Vector):
                self._vectors[stmt.name] = ir.Name(stmt.name, value.type)
        return stmts


def _name_of(text: str, type_: Vector) -> ir.Name:
    return ir.Name(text, type_)


def _part(vector: ir.Expr, number: int) -> ir.Expr:
    return ir.Component(vector, number, Scalar.U32)


def _word(quad: ir.Expr, each: int, number: int) -> ir.Expr:
    return binary("+", binary("*", u32(each), quad), u32(number))
