"""The quick loop of an entry point: a piece of elements side by side at a time, loaded and stored 16 bytes wide where they lie so.

    for p from 0u below 4u step 1 {
        let piece: u32 = 4u * unit + p
        let x_words: vec4<u32> = vector x[piece]
        let y_codes: vec4<u32> = dequantize_linear_quick_4(unpack4xU8(x_words.x), zero_point, scale)
        let y_codes_2: vec4<u32> = dequantize_linear_quick_4(unpack4xU8(x_words.y), zero_point, scale)
        …
        held = held && all(…)
        store y[4u * piece] = y_codes
        …
    }

An invocation that has fewer elements than its lanes, at the end of the tensor, leaves all of them to the loops that are always right. Where
pieces lie apart, the groups of all of them are the same ones, and decoded before the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from qgen.dtypes import WORD_BITS
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.rewrite import walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.alike import Alike
from qgen.passes.groups import GroupDecoder, Groups
from qgen.passes.lay import GroupLevel
from qgen.passes.plan import Plan
from qgen.passes.vectors import words_of_codes
from qgen.passes.widen import Widener, spread
from qgen.passes.words import TRUE, all_of, at_word, binary, let, name, u32

_U32X4 = Vector(Scalar.U32)
_EITHER = (("walks", Scalar.BOOL), ("alike", Scalar.BOOL), ("columns", Scalar.U32))


@dataclass(frozen=True, slots=True)
class Quick:
    """The statements of the quick loops, and the condition under which nothing is left to do (None: always).

    Where the pieces of an invocation lie apart, `base` is the number of its first one, and `columns` how far apart they lie.
    """

    stmts: tuple[ir.Stmt, ...]
    done: ir.Expr | None
    base: ir.Expr
    columns: ir.Expr | None


@dataclass(frozen=True, slots=True)
class _Loop:
    """Statements before a loop, the loop, and the conditions on which it was right."""

    before: tuple[ir.Stmt, ...]
    loop: ir.Stmt
    conditions: tuple[ir.Expr, ...]


class PiecePlacer:
    """Places the quick loops of one kernel, for the invocation `unit` of elements from `first` below `end`."""

    def __init__(self, program: Program, plan: Plan, fresh: Callable[[str], str], names: tuple[ir.Expr, ir.Expr, ir.Expr]) -> None:
        """Place under names that `fresh` makes."""
        self._program = program
        self._plan = plan
        self._fresh = fresh
        self._unit, self._first, self._end = names
        self._rows = plan.lanes // plan.piece
        self._quads = plan.piece // LANES
        self._base: ir.Expr = binary("*", u32(self._rows), self._unit)
        self._columns: ir.Expr | None = None if plan.columns is None else u32(plan.columns)
        self.widener = Widener({function.name: function for function in program.functions})
        self._decoder = GroupDecoder(program, plan, fresh, self.widener)

    def place(self, groups: list[ir.Stmt], write: ir.Write, quick: ir.Quick, shared: Callable[[ir.Expr], list[ir.Stmt]]) -> Quick:
        """Return the loops that store `quick` of each element; `shared` names what the group of an element decides."""
        plan, operand = self._plan, write.operand
        stmts: list[ir.Stmt] = []
        done: list[ir.Expr] = []
        if not plan.is_whole:
            whole = ir.Name(self._fresh("whole"), Scalar.BOOL)
            test = ir.Binary("==", binary("-", self._end, self._first), u32(plan.lanes), Scalar.BOOL)
            stmts.append(ir.Let(whole.name, test))
            done.append(whole)
        if plan.alike is not None:
            return self._either(plan.alike, groups, operand, quick, (stmts, done[0]))
        if plan.units == self._columns:
            self._base = self._unit
        elif self._columns is not None:
            stmts += self._apart(self._columns)
        if plan.group_level is GroupLevel.INVOCATION:
            stmts += shared(self._first if self._columns is None else binary("*", u32(plan.piece), self._base))
        placed = self._loop(groups, operand, quick, done[0] if done else None)
        done += placed.conditions
        return Quick((*stmts, *placed.before, placed.loop), all_of(done) if done else None, self._base, self._columns)

    def _apart(self, columns: ir.Expr) -> list[ir.Stmt]:
        """Name the number of the first piece of an invocation whose pieces lie `columns` apart."""
        above = binary("*", binary("/", self._unit, columns), binary("*", u32(self._rows), columns))
        self._base = name(self._fresh("base"))
        return [let(self._base, binary("+", above, binary("%", self._unit, columns)))]

    def _either(self, alike: Alike, groups: list[ir.Stmt], operand: str, quick: ir.Quick, whole: tuple[list[ir.Stmt], ir.Expr]) -> Quick:
        """Return two loops, of which one runs: groups are decoded before the first, and for each element in the second."""
        stmts, is_whole = whole
        walks, is_alike, columns = (ir.Name(self._fresh(text), type_) for text, type_ in _EITHER)
        stmts.append(let(walks, alike.walks))
        stmts.append(let(is_alike, ir.Binary("||", walks, alike.shares, Scalar.BOOL)))
        stmts.append(let(columns, ir.Select(walks, binary("/", alike.width, u32(self._plan.piece)), u32(1), Scalar.U32)))
        self._columns = columns
        stmts += self._apart(columns)
        first = self._loop(groups, operand, quick, all_of([is_whole, is_alike]), walks)
        small = self._program.operand(operand).dtype.layout.elements
        reads = [node.operand for node in walk_expr(quick.value) if isinstance(node, ir.Read)]
        small = max(LANES, small, *(self._program.operand(read).dtype.layout.elements for read in reads))
        plan = replace(self._plan, piece=small, group_level=GroupLevel.ELEMENT, alike=None)
        other = PiecePlacer(self._program, plan, self._fresh, (self._unit, self._first, self._end))
        unlike = ir.Unary("!", is_alike, Scalar.BOOL)
        second = other._loop(groups, operand, quick, all_of([is_whole, unlike]))
        self.widener.functions |= other.widener.functions
        held = [ir.Binary("||", unlike, all_of(first.conditions), Scalar.BOOL)] if first.conditions else []
        done = all_of([is_whole, *held, *second.conditions])
        return Quick((*stmts, *first.before, first.loop, *second.before, second.loop), done, self._base, columns)

    def _loop(self, groups: list[ir.Stmt], operand: str, quick: ir.Quick, when: ir.Expr | None, walks: ir.Expr | None = None) -> _Loop:
        """Return the loop over the pieces, of no round where a condition is given that is false."""
        level = self._plan.group_level
        before: list[ir.Stmt] = []
        conditions: list[ir.Expr] = []
        in_loop: list[ir.Expr] = []
        shared, each = self._split(quick.holds)
        found = Groups()
        is_outside = level is GroupLevel.INVOCATION or self._columns is not None
        piece = name(self._fresh("piece"))
        if level is not GroupLevel.INVOCATION:
            found = self._decoder.decode(groups, self._unit, self._base if is_outside else piece, walks)
        before += found.before
        before += found.stmts if is_outside else []
        (conditions if is_outside else in_loop).extend(found.conditions.get(term.name, term) for term in shared)
        stmts = [] if is_outside else list(found.stmts)
        loads, reads = self._reads(quick, piece)
        stmts += loads
        codes = [found.wide(self.widener, quick.value, reads, number) for number in range(self._quads)]
        if each is not None:
            in_loop += self._holds(each, reads, found)
        names = [ir.Name(self._fresh(f"{operand}_codes"), _U32X4) for _ in codes]
        stmts += [ir.Let(each_name.name, spread(value)) for each_name, value in zip(names, codes, strict=True)]
        if in_loop:
            held = ir.Name(self._fresh("held"), Scalar.BOOL)
            before.append(ir.Var(held.name, TRUE))
            stmts.append(ir.Assign(held.name, all_of([held, *in_loop])))
            conditions.append(held)
        stmts += [*self._stores(operand, piece, names), *found.after]
        index = self._fresh("p")
        step = name(index) if self._columns is None else binary("*", self._columns, name(index))
        stop = u32(self._rows) if when is None else ir.Select(when, u32(self._rows), u32(0), Scalar.U32)
        loop = ir.For(index, u32(0), stop, 1, (let(piece, binary("+", self._base, step)), *stmts))
        return _Loop(tuple(before), loop, tuple(conditions))

    def _split(self, holds: ir.Expr | None) -> tuple[list[ir.Name], ir.Expr | None]:
        """Return the conditions that groups decide, by name, and what else has to hold of each element."""
        shared: list[ir.Name] = []
        each: list[ir.Expr] = []
        pending = [] if holds is None or holds == TRUE else [holds]
        while pending:
            term = pending.pop()
            if isinstance(term, ir.Binary) and term.op == "&&":
                pending += [term.rhs, term.lhs]
            elif isinstance(term, ir.Name):
                shared.append(term)
            else:
                each.append(term)
        return shared, all_of(each) if each else None

    def _reads(self, quick: ir.Quick, piece: ir.Expr) -> tuple[list[ir.Stmt], dict[str, list[ir.Expr]]]:
        """Return the words of the piece, named, and the codes of each quad."""
        stmts: list[ir.Stmt] = []
        reads: dict[str, list[ir.Expr]] = {}
        operands = dict.fromkeys(node.operand for node in walk_expr(quick.value) if isinstance(node, ir.Read))
        for operand in operands:
            lets, reads[operand] = self._decoder.codes(operand, piece)
            stmts += lets
        return stmts, reads

    def _stores(self, operand: str, piece: ir.Expr, codes: list[ir.Name]) -> list[ir.Stmt]:
        dtype = self._program.operand(operand).dtype
        count = self._plan.piece * dtype.bits // WORD_BITS
        if dtype.bits == WORD_BITS and operand in self._plan.wide:
            return [ir.StoreVector(operand, at_word(piece, len(codes), number), code) for number, code in enumerate(codes)]
        words = words_of_codes(dtype, codes)
        if operand not in self._plan.wide:
            return [ir.Store(operand, at_word(piece, count, number), word) for number, word in enumerate(words)]
        vectors = [ir.Compose(tuple(words[start : start + LANES]), _U32X4) for start in range(0, count, LANES)]
        return [ir.StoreVector(operand, at_word(piece, len(vectors), number), vector) for number, vector in enumerate(vectors)]

    def _holds(self, holds: ir.Expr, reads: dict[str, list[ir.Expr]], groups: Groups) -> list[ir.Expr]:
        """Return whether a condition holds of every element of the piece."""
        tests = [groups.wide(self.widener, holds, reads, number) for number in range(self._quads)]
        if not isinstance(tests[0].type, Vector):
            return tests[:1]
        result = tests[0]
        for test in tests[1:]:
            result = ir.Binary("&", result, test, Vector(Scalar.BOOL))
        return [ir.Builtin("all", (result,), Scalar.BOOL)]
