"""The quick loops of an entry point: four elements side by side at a time, in vectors.

    for q from 0u below 4u step 1 {
        let quad: u32 = 4u * unit + q
        let x_codes: vec4<u32> = vector x[quad]
        held = held && all(vec4<bool>(is_plain) & rint_quotient_holds_4(x_codes, scale))
        let y_codes: vec4<u32> = quantize_linear_quick_4(x_codes, scale, zero_point)
        store y[quad] = y_codes.x | (y_codes.y << 8u) | (y_codes.z << 16u) | (y_codes.w << 24u)
    }

An invocation that has fewer elements than its lanes, at the end of the tensor, leaves all of them to the loops that are always right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qgen.dtypes import WORD_BITS, DType
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_node
from qgen.ir.program import Program
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.plan import GroupLevel, Plan
from qgen.passes.widen import Widener, spread
from qgen.passes.words import binary, load_code, name, u32

TRUE: Final = ir.Literal(value=True, type=Scalar.BOOL)
_U32X4: Final = Vector(Scalar.U32)


@dataclass(frozen=True, slots=True)
class Quick:
    """The statements of the quick loops, and the condition under which nothing is left to do (None: always)."""

    stmts: tuple[ir.Stmt, ...]
    done: ir.Expr | None


class QuadPlacer:
    """Places the quick loops of one kernel; `unit`, `first` and `end` are names of the entry point."""

    def __init__(self, program: Program, plan: Plan, fresh: Callable[[str], str], names: tuple[ir.Expr, ir.Expr, ir.Expr]) -> None:
        """Place under names that `fresh` makes."""
        self._program = program
        self._plan = plan
        self._fresh = fresh
        self._unit, self._first, self._end = names
        self._vectors: dict[str, ir.Expr] = {}
        self.widener = Widener({function.name: function for function in program.functions})

    def place(self, groups: list[ir.Stmt], operand: str, quick: ir.Quick) -> Quick:
        """Return the loops that store `quick` of each element; groups that an invocation shares are named already."""
        whole: ir.Expr | None = None
        before: list[ir.Stmt] = []
        done: ir.Expr | None = None
        if not self._plan.is_whole:
            done = whole = ir.Name(self._fresh("whole"), Scalar.BOOL)
            test = ir.Binary("==", binary("-", self._end, self._first), u32(self._plan.lanes), Scalar.BOOL)
            before.append(ir.Let(whole.name, test))
        held: ir.Name | None = None
        if quick.holds == TRUE:
            pass
        elif quick.holds is not None and self._is_shared(quick.holds):
            done = quick.holds if done is None else ir.Binary("&&", done, quick.holds, Scalar.BOOL)
        elif quick.holds is not None:
            held = ir.Name(self._fresh("held"), Scalar.BOOL)
            before.append(ir.Var(held.name, ir.Literal(value=True, type=Scalar.BOOL)))
        quad = name(self._fresh("quad"))
        body = self._quad(groups, operand, quick, quad, held)
        loops = self._loops(operand, quad, body, whole)
        if held is not None:
            done = held if done is None else ir.Binary("&&", done, held, Scalar.BOOL)
        return Quick((*before, *loops), done)

    def _is_shared(self, holds: ir.Expr) -> bool:
        return self._plan.group_level is GroupLevel.INVOCATION and not any(isinstance(node, ir.Read) for node in walk_expr(holds))

    def _loops(self, operand: str, quad: ir.Expr, body: tuple[list[ir.Stmt], ir.Expr], whole: ir.Expr | None) -> tuple[ir.Stmt, ...]:
        """Return the loops over the quads, of no round where the invocation is not whole."""
        dtype = self._program.operand(operand).dtype
        stmts, codes = body
        lanes = self._plan.lanes // LANES

        def times(number: int) -> ir.Expr:
            return u32(number) if whole is None else ir.Select(whole, u32(number), u32(0), Scalar.U32)

        first = binary("*", u32(lanes), self._unit)
        if dtype.bits >= 8:
            index = self._fresh("q")
            inner = (_let(quad, binary("+", first, name(index))), *stmts, *self._store(operand, dtype, quad, codes))
            return (ir.For(index, u32(0), times(lanes), 1, inner),)
        # Several quads make a word.
        each = WORD_BITS // (LANES * dtype.bits)
        word, number, part = self._fresh("word"), self._fresh("w"), self._fresh("q")
        at = binary("+", binary("*", u32(lanes // each), self._unit), name(number))
        merged = binary("|", name(word), binary("<<", _pack(codes, dtype.bits), binary("*", u32(LANES * dtype.bits), name(part))))
        inner = (_let(quad, binary("+", binary("*", u32(each), at), name(part))), *stmts, ir.Assign(word, merged))
        outer = (ir.Var(word, u32(0)), ir.For(part, u32(0), u32(each), 1, inner), ir.Store(operand, at, name(word)))
        return (ir.For(number, u32(0), times(lanes // each), 1, outer),)

    def _store(self, operand: str, dtype: DType, quad: ir.Expr, codes: ir.Expr) -> list[ir.Stmt]:
        if dtype.bits == WORD_BITS and operand in self._plan.wide:
            return [ir.StoreVector(operand, quad, codes)]
        if dtype.bits == WORD_BITS:
            return [ir.Store(operand, _word(quad, LANES, number), _part(codes, number)) for number in range(LANES)]
        if dtype.bits == 16:
            return [
                ir.Store(operand, _word(quad, 2, half), binary("|", _part(codes, 2 * half), _shifted(_part(codes, 2 * half + 1), 16)))
                for half in range(2)
            ]
        return [ir.Store(operand, quad, _pack(codes, dtype.bits))]

    def decode(self, groups: list[ir.Stmt], quick: ir.Quick, quad: ir.Expr) -> tuple[list[ir.Stmt], ir.Expr | None, ir.Expr]:
        """Return what is named of the four elements of `quad`, whether `quick` is right of all of them (None: always), and their codes."""
        stmts = self._named(groups, quick, quad)
        holds = None if quick.holds is None or quick.holds == TRUE else self._all_hold(quick.holds)
        return stmts, holds, spread(self.widener.expr(quick.value, self._leaf))

    def _quad(
        self, groups: list[ir.Stmt], operand: str, quick: ir.Quick, quad: ir.Expr, held: ir.Name | None
    ) -> tuple[list[ir.Stmt], ir.Expr]:
        """Return what is named of four elements, and their codes."""
        stmts = self._named(groups, quick, quad)
        if held is not None and quick.holds is not None:
            stmts.append(ir.Assign(held.name, ir.Binary("&&", held, self._all_hold(quick.holds), Scalar.BOOL)))
        value = spread(self.widener.expr(quick.value, self._leaf))
        result = name_of(self._fresh(f"{operand}_codes"), _U32X4)
        stmts.append(ir.Let(result.name, value))
        return stmts, result

    def _named(self, groups: list[ir.Stmt], quick: ir.Quick, quad: ir.Expr) -> list[ir.Stmt]:
        """Return the codes of four elements and what their groups decide, named."""
        self._vectors = {}
        stmts: list[ir.Stmt] = []
        for read in self._reads(quick):
            lets, codes = self._codes(read, quad)
            bound = name_of(self._fresh(f"{read}_codes"), _U32X4)
            stmts += [*lets, ir.Let(bound.name, codes)]
            self._vectors[read] = bound
        if self._plan.group_level is GroupLevel.QUAD:
            stmts += self._scalar_groups(groups, quad)
        elif self._plan.group_level in {GroupLevel.RUN, GroupLevel.ELEMENT}:
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
        if dtype.bits == WORD_BITS and operand in self._plan.wide:
            return [], ir.LoadVector(operand, quad)
        if dtype.bits == WORD_BITS:
            return [], ir.Compose(tuple(ir.Load(operand, _word(quad, LANES, number)) for number in range(LANES)), _U32X4)
        if dtype.bits == 16:
            words = [name(self._fresh(f"{operand}_word")) for _ in range(2)]
            lets = [_let(word, ir.Load(operand, _word(quad, 2, half))) for half, word in enumerate(words)]
            halves = [part for word in words for part in (binary("&", word, u32(0xFFFF)), binary(">>", word, u32(16)))]
            return lets, ir.Compose(tuple(halves), _U32X4)
        each = WORD_BITS // (LANES * dtype.bits)
        word = name(self._fresh(f"{operand}_word"))
        loaded: ir.Expr = ir.Load(operand, quad) if each == 1 else ir.Load(operand, binary("/", quad, u32(each)))
        if each > 1:
            loaded = binary(">>", loaded, binary("*", u32(LANES * dtype.bits), binary("%", quad, u32(each))))
        counts = ir.Compose(tuple(u32(dtype.bits * number) for number in range(LANES)), _U32X4)
        shifted = ir.Binary(">>", spread(word), counts, _U32X4)
        return [_let(word, loaded)], ir.Binary("&", shifted, spread(u32(dtype.mask)), _U32X4)

    def _scalar_groups(self, groups: list[ir.Stmt], quad: ir.Expr) -> list[ir.Stmt]:
        first = binary("*", u32(LANES), quad)
        number = map_expr(self._plan.group, lambda node: first if node == ir.Name("i", Scalar.U32) else node)
        stmts: list[ir.Stmt] = []
        if not isinstance(number, ir.Literal):
            group, number = number, name(self._fresh("group"))
            stmts.append(_let(number, group))
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
        if self._plan.group_level is GroupLevel.RUN:
            group = map_expr(self._plan.group, lambda node: first if node == ir.Name("i", Scalar.U32) else node)
            run = name(self._fresh("group_quad"))
            stmts.append(_let(run, binary("/", group, u32(LANES))))
        else:
            offsets = ir.Compose(tuple(u32(number) for number in range(LANES)), _U32X4)
            elements = ir.Binary("+", spread(first), offsets, _U32X4)
            index = map_expr(self._plan.group, fold_node)
            group = spread(self.widener.expr(index, lambda node: elements if node == ir.Name("i", Scalar.U32) else None))
            numbers = name_of(self._fresh("group"), _U32X4)
            stmts.append(ir.Let(numbers.name, group))
        for stmt in groups:
            if not isinstance(stmt, ir.Let):
                raise InternalError("what a group decides is named")
            for node in walk_expr(stmt.value):
                if isinstance(node, ir.Read) and node.operand not in self._vectors:
                    lets: list[ir.Stmt] = []
                    if self._plan.group_level is GroupLevel.RUN:
                        lets, codes = self._codes(node.operand, run)
                    else:
                        codes = ir.Compose(tuple(self._load(node, _part(numbers, number), lets) for number in range(LANES)), _U32X4)
                    bound = name_of(self._fresh(f"{node.operand}_codes"), _U32X4)
                    stmts += [*lets, ir.Let(bound.name, codes)]
                    self._vectors[node.operand] = bound
            value = self.widener.expr(stmt.value, self._leaf)
            stmts.append(ir.Let(stmt.name, value))
            if isinstance(value.type, Vector):
                self._vectors[stmt.name] = ir.Name(stmt.name, value.type)
        return stmts


def name_of(text: str, type_: Vector) -> ir.Name:
    """Return a name of a vector."""
    return ir.Name(text, type_)


def _let(target: ir.Expr, value: ir.Expr) -> ir.Stmt:
    if not isinstance(target, ir.Name):
        raise TypeError(target)
    return ir.Let(target.name, value)


def _part(vector: ir.Expr, number: int) -> ir.Expr:
    return ir.Component(vector, number, Scalar.U32)


def _word(quad: ir.Expr, each: int, number: int) -> ir.Expr:
    return binary("+", binary("*", u32(each), quad), u32(number))


def _shifted(value: ir.Expr, count: int) -> ir.Expr:
    return binary("<<", value, u32(count))


def _pack(codes: ir.Expr, bits: int) -> ir.Expr:
    packed = _part(codes, 0)
    for number in range(1, LANES):
        packed = binary("|", packed, _shifted(_part(codes, number), bits * number))
    return packed
