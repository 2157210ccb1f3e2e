"""The quick loops of an entry point: a piece of elements side by side in each round, loaded and stored 16 bytes wide where they lie so.

    for from_piece from 0u below 16u step 8u {
        let group: u32 = …
        let scale: u32 = x_scale[group]
        failed = if scale_product_takes_s(scale) then failed else 0xffffffffu
        for p from from_piece below from_piece + 8u step 1u {
            let piece: u32 = 16u * unit + p
            let x_word: u32 = x[piece]
            let y_codes: vec4<u32> = dequantize_linear_quick_4(unpack4xU8(x_word), zero_point, scale)
            store vector y[piece] = y_codes
        }
    }

The outer loop goes over spans of pieces that have the same groups; there is none where all of an invocation have one, or where pieces lie
in rows below one another. `failed` has a bit for each piece that is to be computed again by the loops that are always right. An invocation
that has fewer elements than its lanes, at the end of the tensor, leaves all of them to those.

Where the code of an element is long, a round is four elements of a piece, and a word is stored as often as there is more of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qgen.dtypes import WORD_BITS
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.rewrite import drop_unused_lets, walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.groups import GroupDecoder, Groups
from qgen.passes.lay import GroupLevel
from qgen.passes.places import Places
from qgen.passes.plan import Plan
from qgen.passes.vectors import words_of_codes
from qgen.passes.walk import walk_rows
from qgen.passes.widen import Widener, all_lanes, spread
from qgen.passes.words import TRUE, all_of, at_word, binary, let, minimum, name, u32

ALL_PIECES: Final = (1 << WORD_BITS) - 1
"""The bits of all pieces of an invocation, of which there are 32 at most."""

_U32X4 = Vector(Scalar.U32)


@dataclass(frozen=True, slots=True)
class Quick:
    """The statements of the quick loops, and the condition under which nothing is left to do (None: always).

    Where the pieces of an invocation lie apart, `base` is the number of its first one, and `columns` how far apart they lie.
    """

    stmts: tuple[ir.Stmt, ...]
    done: ir.Expr | None
    failed: ir.Expr | None
    """The variable whose bit `p` is set where piece `p` is to be computed again; None where pieces do not fail by themselves."""
    base: ir.Expr
    columns: ir.Expr | None


class PiecePlacer:
    """Places the quick loops of one kernel, for the invocation `unit` of elements from `first` below `end`."""

    def __init__(self, program: Program, plan: Plan, fresh: Callable[[str], str], names: tuple[ir.Expr, ir.Expr, ir.Expr]) -> None:
        """Place under names that `fresh` makes."""
        self._program = program
        self._plan = plan
        self._fresh = fresh
        self._unit, self._first, self._end = names
        self._rounds = plan.lanes // plan.round
        self._each = plan.piece // plan.round
        """Rounds for each piece."""
        self._quads = plan.round // LANES
        self._base: ir.Expr = binary("*", u32(plan.pieces), self._unit)
        self._columns: ir.Expr | None = None if plan.columns is None else u32(plan.columns)
        self._walks: ir.Expr | None = None
        self._conditions: list[ir.Expr] = []
        """What has to hold of the invocation."""
        self._failed: ir.Name | None = None
        self._word: ir.Name | None = None
        """The word that several rounds write."""
        self.widener = Widener({function.name: function for function in program.functions})
        self._decoder = GroupDecoder(program, plan, fresh, self.widener)

    def place(self, groups: list[ir.Stmt], write: ir.Write, quick: ir.Quick, shared: Callable[[ir.Expr], list[ir.Stmt]]) -> Quick:
        """Return the loops that store `quick` of each element; `shared` names what the group of an element decides."""
        plan, operand = self._plan, write.operand
        stmts: list[ir.Stmt] = []
        stop: ir.Expr = u32(self._rounds)
        if not plan.is_whole:
            whole = ir.Name(self._fresh("whole"), Scalar.BOOL)
            test = ir.Binary("==", binary("-", self._end, self._first), u32(plan.lanes), Scalar.BOOL)
            stmts.append(ir.Let(whole.name, test))
            stop = ir.Select(whole, stop, u32(0), Scalar.U32)
            self._conditions.append(whole)
        if plan.walks:
            walk = walk_rows(plan, self._unit, self._fresh)
            stmts += walk.stmts
            self._walks, self._base, self._columns = walk.walks, walk.base, walk.columns
        elif plan.units == self._columns:
            self._base = self._unit
        elif self._columns is not None:
            stmts += self._apart(self._columns)
        if plan.group_level is GroupLevel.INVOCATION:
            stmts += shared(self._first if self._columns is None else binary("*", u32(plan.piece), self._base))
            loops = self._one_group(operand, quick, stop)
        else:
            loops = self._spans(groups, operand, quick, stop)
        if self._word is not None:
            stmts.append(ir.Var(self._word.name, u32(0)))
        if self._failed is not None:
            stmts.append(ir.Var(self._failed.name, u32(0)))
        done = all_of(self._conditions) if self._conditions else None
        return Quick((*stmts, *loops), done, self._failed, self._base, self._columns)

    def _apart(self, columns: ir.Expr) -> list[ir.Stmt]:
        """Name the number of the first piece of an invocation whose pieces lie `columns` apart."""
        above = binary("*", binary("/", self._unit, columns), binary("*", u32(self._plan.pieces), columns))
        self._base = name(self._fresh("base"))
        return [let(self._base, binary("+", above, binary("%", self._unit, columns)))]

    def _one_group(self, operand: str, quick: ir.Quick, stop: ir.Expr) -> list[ir.Stmt]:
        """Return the loop over pieces that have the group of the invocation, which is decoded."""
        shared, each = self._split(quick.holds)
        self._conditions += shared
        index = self._fresh("p")
        return [ir.For(index, u32(0), stop, u32(1), self._piece(name(index), Groups(), operand, quick, each))]

    def _spans(self, groups: list[ir.Stmt], operand: str, quick: ir.Quick, stop: ir.Expr) -> list[ir.Stmt]:
        """Return the loops over spans of pieces that have the same groups, and over the pieces of each."""
        plan = self._plan
        shared, each = self._split(quick.holds)
        groups = list(drop_unused_lets((*groups, ir.Write(operand, quick.value, quick)))[:-1])
        places = None if plan.is_one and plan.span is not None else Places(plan, self._fresh)
        first = self._first if self._columns is None else binary("*", u32(plan.piece), self._base)
        before = [] if places is None else places.start(first)
        if plan.columns is not None and places is not None:
            found = self._decoder.decode_each(groups, *places.numbers(u32(0), self._quads)[:2])
            self._conditions += shared
            index = self._fresh("p")
            return [*before, *found.stmts, ir.For(index, u32(0), stop, u32(1), self._piece(name(index), found, operand, quick, each))]
        start = self._fresh("p" if plan.span == 1 else "from_piece")
        left: ir.Expr = u32(1)
        if places is None:
            found = self._decoder.decode(groups, self._at(name(start)))
        else:
            named, numbers, left = places.numbers(binary("*", u32(plan.round), name(start)), self._quads)
            found = self._decoder.decode_each(groups, named, numbers)
        body = found.stmts
        if shared:
            body.append(self._fail(lambda failed: ir.Select(all_of([*shared]), failed, u32(ALL_PIECES), Scalar.U32)))
        if plan.span == 1:
            return [*before, ir.For(start, u32(0), stop, u32(1), (*body, *self._piece(name(start), found, operand, quick, each)))]
        index = self._fresh("p")
        pieces = self._piece(name(index), found, operand, quick, each)
        if plan.span is not None:
            loop = ir.For(index, name(start), binary("+", name(start), u32(plan.span)), u32(1), pieces)
            return [*before, ir.For(start, u32(0), stop, u32(plan.span), (*body, loop))]
        span = ir.Name(self._fresh("span"), Scalar.U32)
        length: ir.Expr = ir.Builtin("max", (binary("/", left, u32(plan.round)), u32(1)), Scalar.U32)
        if self._walks is not None:
            length = ir.Select(self._walks, u32(self._rounds), length, Scalar.U32)
        loop = ir.For(index, name(start), minimum(binary("+", name(start), span), u32(self._rounds)), u32(1), pieces)
        outer = ir.For(start, u32(0), stop, span, (*body, ir.Assign(span.name, length), loop))
        return [*before, ir.Var(span.name, u32(1)), outer]

    def _at(self, index: ir.Expr) -> ir.Expr:
        """Return the number of the invocation's round `index`, of all rounds of the tensor."""
        each = u32(self._each)
        if self._columns is None:
            return binary("+", self._base if self._each == 1 else binary("*", u32(self._rounds), self._unit), index)
        if self._each == 1:
            return binary("+", self._base, binary("*", self._columns, index))
        piece = binary("+", self._base, binary("*", self._columns, binary("/", index, each)))
        return binary("+", binary("*", each, piece), binary("%", index, each))

    def _piece(self, index: ir.Expr, groups: Groups, operand: str, quick: ir.Quick, each: ir.Expr | None) -> tuple[ir.Stmt, ...]:
        """Return the statements that load, compute and store the elements of the invocation's round `index`."""
        piece = name(self._fresh("piece"))
        loads, reads = self._reads(quick, piece)
        stmts = [let(piece, self._at(index)), *loads]
        codes = [groups.wide(self.widener, quick.value, reads, number) for number in range(self._quads)]
        names = [ir.Name(self._fresh(f"{operand}_codes"), _U32X4) for _ in codes]
        stmts += [ir.Let(each_name.name, spread(value)) for each_name, value in zip(names, codes, strict=True)]
        if each is not None:
            bit = ir.Convert(ir.Unary("!", self._holds(each, reads, groups), Scalar.BOOL), Scalar.U32)
            number = index if self._each == 1 else binary("/", index, u32(self._each))
            stmts.append(self._fail(lambda failed: binary("|", failed, binary("<<", bit, number))))
        if self._each > 1:
            return (*stmts, *self._store_part(operand, piece, index, names))
        return (*stmts, *self._stores(operand, piece, names))

    def _store_part(self, operand: str, piece: ir.Expr, index: ir.Expr, codes: list[ir.Name]) -> list[ir.Stmt]:
        """Return the statements that add the codes of a round to a word, and store what there is of it."""
        dtype, each = self._program.operand(operand).dtype, u32(self._each)
        self._word = self._word or ir.Name(self._fresh("word"), Scalar.U32)
        part = binary("%", index, each)
        begun = ir.Select(ir.Binary("==", part, u32(0), Scalar.BOOL), u32(0), self._word, Scalar.U32)
        (bits,) = words_of_codes(dtype, codes)
        word = binary("|", begun, binary("<<", bits, binary("*", u32(LANES * dtype.bits), part)))
        return [ir.Assign(self._word.name, word), ir.Store(operand, binary("/", piece, each), self._word)]

    def _fail(self, change: Callable[[ir.Expr], ir.Expr]) -> ir.Stmt:
        """Return the statement that changes which pieces are to be computed again."""
        self._failed = self._failed or ir.Name(self._fresh("failed"), Scalar.U32)
        return ir.Assign(self._failed.name, change(self._failed))

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
        count = self._plan.round * dtype.bits // WORD_BITS
        if dtype.bits == WORD_BITS and operand in self._plan.wide:
            return [ir.StoreVector(operand, at_word(piece, len(codes), number), code) for number, code in enumerate(codes)]
        words = words_of_codes(dtype, codes)
        if operand not in self._plan.wide:
            return [ir.Store(operand, at_word(piece, count, number), word) for number, word in enumerate(words)]
        vectors = [ir.Compose(tuple(words[start : start + LANES]), _U32X4) for start in range(0, count, LANES)]
        return [ir.StoreVector(operand, at_word(piece, len(vectors), number), vector) for number, vector in enumerate(vectors)]

    def _holds(self, holds: ir.Expr, reads: dict[str, list[ir.Expr]], groups: Groups) -> ir.Expr:
        """Return whether a condition holds of every element of the piece."""
        tests = [groups.wide(self.widener, holds, reads, number) for number in range(self._quads)]
        return all_lanes(tests) if isinstance(tests[0].type, Vector) else tests[0]
