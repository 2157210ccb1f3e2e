"""REALISED to LEGAL: writes the entry point that a plan describes; elements become bits of words.

Before (with a plan of 4 lanes, shape [1000]):

    let scale: u32 = read y_scale
    write y = quantize_linear(read x, scale)

After:

    let first: u32 = 4u * invocation.x
    if first >= 1000u { return }
    let scale: u32 = y_scale[0u]
    var word: u32 = 0u
    for i from first below min(first + 4u, 1000u) step 1u {
        word = word | (quantize_linear(x[i], scale) << (8u * (i % 4u)))
    }
    store y[invocation.x] = word

The tail and every ragged edge are the loop's bound, so the element's function stands once in the text, and unused bits of a last word stay
zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qgen.dtypes import DType
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.names import free_name
from qgen.ir.program import Domain, Function, Kernel, Program, Stage
from qgen.ir.rewrite import map_expr, reachable_functions, walk_body, walk_expr
from qgen.ir.types import Scalar
from qgen.passes.pieces import ALL_PIECES, PiecePlacer, Quick
from qgen.passes.plan import Plan
from qgen.passes.straddle import store_straddling
from qgen.passes.words import TRUE, binary, bit_offset, code_of_word, let, load_code, minimum, name, u32


def place_words(program: Program, plans: tuple[Plan, ...]) -> Program:
    """Return the program with each entry point written from its plan, on loads and stores of words."""
    widened: dict[str, Function] = {}
    kernels = tuple(
        replace(kernel, body=_Placer(program, plan, kernel, widened).run(kernel), workgroup_size=plan.workgroup_size)
        for kernel, plan in zip(program.kernels, plans, strict=True)
    )
    uniforms = tuple(dict.fromkeys(name for plan in plans[::-1] for name in plan.uniforms))
    table = {function.name: function for function in program.functions} | widened
    functions = reachable_functions((kernel.body for kernel in kernels), table)
    wide = frozenset(name for plan in plans for name in plan.wide)
    return Program(program.name, Stage.LEGAL, program.operands, kernels, functions, uniforms, wide)


class _Placer:
    def __init__(self, program: Program, plan: Plan, kernel: Kernel, widened: dict[str, Function]) -> None:
        self._program = program
        self._plan = plan
        self._widened = widened
        # A name of the entry point may hide neither a buffer nor a function, nor what a group decides.
        self._taken = {operand.name for operand in program.operands} | {function.name for function in program.functions}
        self._taken |= {stmt.name for stmt in kernel.body if isinstance(stmt, ir.Let)}
        self._unit = name(self._fresh("unit"))
        self._first = name(self._fresh("first"))
        self._end = name(self._fresh("end"))
        self._index = self._fresh("i")
        self._words: dict[str, str] = {}
        self._word = "word"
        self._redoes = False
        """Whether the loops placed are those that redo what the quick ones may have got wrong: then even a single word is a loop."""

    def run(self, kernel: Kernel) -> tuple[ir.Stmt, ...]:
        plan = self._plan
        stmts: list[ir.Stmt] = [
            let(self._unit, self._unit_index()),
            ir.If(ir.Binary(">=", self._unit, plan.units, Scalar.BOOL), (ir.Return(None),)),
        ]
        if plan.columns is None:
            stmts += [let(self._first, binary("*", u32(plan.lanes), self._unit)), let(self._end, self._end_index())]
        if kernel.domain is Domain.GROUPS:
            return (*stmts, *self._groupwise(kernel))
        reduced = [stmt for stmt in kernel.body if isinstance(stmt, ir.Accumulate)]
        if reduced:
            return (*stmts, *self._reduce(reduced))
        *groups, write = kernel.body
        if not isinstance(write, ir.Write):
            raise InternalError("an element program ends with the write of its result")
        if write.quick is not None and plan.is_wide:
            return (*stmts, *self._pieces(groups, write, write.quick))
        stmts += self._group_lets(groups, self._first, write) if plan.group_is_shared else []
        stmts += self._whole_words(write)
        if write.quick is not None and write.quick.holds == TRUE:
            return (*stmts, *self._elementwise(groups, write, write.quick.value))
        if write.quick is not None:
            stmts += self._quick(groups, write, write.quick)
        return (*stmts, *self._elementwise(groups, write, write.value))

    def _groupwise(self, kernel: Kernel) -> tuple[ir.Stmt, ...]:
        """Return the loops that store each result of a group; here an item is a group, and so is the index."""
        stmts: list[ir.Stmt] = []
        for stmt in kernel.body:
            if not isinstance(stmt, ir.Write):
                raise InternalError("a kernel over groups writes results")
            lets, code = self._elements(stmt.value, name(self._index))
            stmts += self._store_elements(stmt.operand, self._program.operand(stmt.operand).dtype, tuple(lets), code)
        return tuple(stmts)

    def _reduce(self, reduced: list[ir.Accumulate]) -> tuple[ir.Stmt, ...]:
        """Return the loop over the elements: into a variable where they have one group, so that one atomic operation is left."""
        each: list[ir.Stmt] = []
        index, before, after = name(self._index), [], []
        group = self._plan.group_of(self._first)
        if not self._plan.group_is_shared:
            number = name(self._fresh("group"))
            each.append(let(number, self._plan.group_of(index)))
            group = number
        for stmt in reduced:
            lets, key = self._elements(stmt.value, index, group)
            each += [let for let in lets if let not in each]
            if not self._plan.group_is_shared:
                each.append(ir.AtomicMax(stmt.operand, group, key))
                continue
            greatest = self._fresh(f"{stmt.operand}_greatest")
            before.append(ir.Var(greatest, u32(0)))
            each.append(ir.Assign(greatest, ir.Builtin("max", (name(greatest), key), Scalar.U32)))
            after.append(ir.AtomicMax(stmt.operand, group, name(greatest)))
        return (*before, ir.For(self._index, self._first, self._end, u32(1), tuple(each)), *after)

    def _elementwise(self, groups: list[ir.Stmt], write: ir.Write, value: ir.Expr, more: ir.Stmt | None = None) -> tuple[ir.Stmt, ...]:
        """Return the loops that store `value` of each element from `first` below `end`; `more` is done for each of them."""
        used = ir.Write(write.operand, value) if more is None else ir.Write(write.operand, value, write.quick)
        each = [] if self._plan.group_is_shared else self._group_lets(groups, name(self._index), used)
        lets, code = self._elements(value, name(self._index))
        rest: list[ir.Stmt] = []
        if more is not None:
            extra, done = self._statement(more)
            rest = [*(let for let in extra if let not in lets), done]
        dtype = self._program.operand(write.operand).dtype
        return self._store_elements(write.operand, dtype, (*each, *lets, *rest), code)

    def _quick(self, groups: list[ir.Stmt], write: ir.Write, quick: ir.Quick) -> list[ir.Stmt]:
        """Return the quick loops, and where the sure ones begin: at `first` where a condition failed, else at `end`."""
        holds = quick.holds
        if holds is None:
            raise InternalError("a quick value without its conditions")
        outside = set(self._taken)
        if self._plan.group_is_shared and not any(isinstance(node, ir.Read) for node in walk_expr(holds)):
            stmts = [*self._elementwise(groups, write, quick.value)]
            held = holds
        else:
            flag = self._fresh("held")
            held = ir.Name(flag, Scalar.BOOL)
            test = ir.Assign(flag, ir.Binary("&&", held, holds, Scalar.BOOL))
            stmts = [ir.Var(flag, ir.Literal(value=True, type=Scalar.BOOL)), *self._elementwise(groups, write, quick.value, test)]
        # What the quick loops name is out of scope in the sure ones, but for the word of an invocation that has one.
        self._taken = outside | {self._word} | ({held.name} if isinstance(held, ir.Name) else set())
        self._word = "redone"
        again = name(self._fresh("again"))
        stmts.append(let(again, ir.Select(held, self._end, self._first, Scalar.U32)))
        self._first = again
        self._redoes = True
        return stmts

    def _pieces(self, groups: list[ir.Stmt], write: ir.Write, quick: ir.Quick) -> list[ir.Stmt]:
        """Return the quick loop on a piece at a time, and the sure ones, for where it was not right."""
        plan, outside = self._plan, set(self._taken)
        placer = PiecePlacer(self._program, plan, self._fresh, (self._unit, self._first, self._end))
        placed = placer.place(groups, write, quick, lambda index: self._group_lets(groups, index, write))
        self._widened |= placer.widener.functions
        stmts = list(placed.stmts)
        self._taken = outside | {stmt.name for stmt in stmts if isinstance(stmt, ir.Let | ir.Var)}
        self._redoes = True
        if placed.failed is not None:
            redo = placed.failed
            if placed.done is not None:
                redo = name(self._fresh("redo"))
                stmts.append(let(redo, ir.Select(placed.done, placed.failed, u32(ALL_PIECES), Scalar.U32)))
            return [*stmts, self._rows(groups, write, placed, redo=redo)]
        if placed.done is None:
            return stmts
        again = name(self._fresh("again"))
        if placed.columns is not None:
            stmts.append(let(again, ir.Select(placed.done, u32(plan.pieces), u32(0), Scalar.U32)))
            return [*stmts, self._rows(groups, write, placed, start=again)]
        stmts.append(let(again, ir.Select(placed.done, self._end, self._first, Scalar.U32)))
        self._first = again
        return [*stmts, *self._elementwise(groups, write, write.value)]

    def _rows(
        self, groups: list[ir.Stmt], write: ir.Write, placed: Quick, *, start: ir.Expr | None = None, redo: ir.Expr | None = None
    ) -> ir.Stmt:
        """Return the sure loops of pieces: from piece `start` on, or of those whose bits of `redo` are set.

        A loop of no round is what an adapter of any kind skips.
        """
        plan, rows = self._plan, u32(self._plan.pieces)
        index, first, end = self._fresh("p"), name(self._fresh("from_element")), name(self._fresh("to_element"))
        piece = binary("+", placed.base, name(index) if placed.columns is None else binary("*", placed.columns, name(index)))
        self._first, self._end = first, end
        past = binary("+", first, u32(plan.piece))
        past = past if plan.is_whole else minimum(past, plan.count)
        stop: ir.Expr = rows
        if redo is not None:
            bit = binary("&", binary(">>", redo, name(index)), u32(1))
            past = ir.Select(ir.Binary("==", bit, u32(1), Scalar.BOOL), past, first, Scalar.U32)
            stop = ir.Select(ir.Binary("==", redo, u32(0), Scalar.BOOL), u32(0), rows, Scalar.U32)
        body = (let(first, binary("*", u32(plan.piece), piece)), let(end, past), *self._elementwise(groups, write, write.value))
        return ir.For(index, u32(0) if start is None else start, stop, u32(1), body)

    def _statement(self, stmt: ir.Stmt) -> tuple[list[ir.Stmt], ir.Stmt]:
        if not isinstance(stmt, ir.Assign):
            raise TypeError(stmt)
        lets, value = self._elements(stmt.value, name(self._index))
        return lets, ir.Assign(stmt.name, value)

    def _fresh(self, stem: str) -> str:
        found = free_name(stem, self._taken)
        self._taken.add(found)
        return found

    def _unit_index(self) -> ir.Expr:
        x = ir.Invocation("x")
        return x if self._plan.row is None else binary("+", binary("*", ir.Invocation("y"), self._plan.row), x)

    def _end_index(self) -> ir.Expr:
        plan = self._plan
        end = binary("+", self._first, u32(plan.lanes))
        return end if plan.is_whole else minimum(end, plan.count)

    def _group_lets(self, groups: list[ir.Stmt], index: ir.Expr, write: ir.Write) -> list[ir.Stmt]:
        """Return the names of what the group of element `index` decides, as far as `write` uses them."""
        named = {node.name for node in walk_body((write,)) if isinstance(node, ir.Name)}
        groups = [stmt for stmt in groups if isinstance(stmt, ir.Let) and stmt.name in named]
        if not groups:
            return []
        group = self._plan.group_of(index)
        stmts: list[ir.Stmt] = []
        if not isinstance(group, ir.Literal):
            number = name(self._fresh("group"))
            stmts.append(let(number, group))
            group = number
        for stmt in groups:
            if not isinstance(stmt, ir.Let):
                raise InternalError("what a group decides is named before the result is written")
            lets, value = self._elements(stmt.value, group)
            stmts += [*lets, ir.Let(stmt.name, value)]
        return stmts

    def _whole_words(self, write: ir.Write) -> list[ir.Stmt]:
        """Load once the word that holds all elements of the invocation, where it is one word and they are several."""
        stmts: list[ir.Stmt] = []
        read = {node.operand for node in walk_body((write,)) if isinstance(node, ir.Read)}
        for operand in self._program.operands:
            layout = operand.dtype.layout
            if operand.name in read and layout.words == 1 and layout.elements == self._plan.lanes:
                self._words[operand.name] = self._fresh(f"{operand.name}_word")
                stmts.append(ir.Let(self._words[operand.name], ir.Load(operand.name, self._unit)))
        return stmts

    def _elements(self, expr: ir.Expr, index: ir.Expr, group: ir.Expr | None = None) -> tuple[list[ir.Stmt], ir.Expr]:
        """Return what to name first, and the expression with each read replaced by the code of element `index`.

        Where `group` is given, reads of operands that a group shares have the code of that group.
        """
        stmts: list[ir.Stmt] = []

        def load(node: ir.Expr) -> ir.Expr:
            if not isinstance(node, ir.Read):
                return node
            operand = self._program.operand(node.operand)
            dtype = operand.dtype
            if node.operand in self._words:
                return code_of_word(dtype, name(self._words[node.operand]), index)
            at = group if group is not None and operand.per_group else index
            lets, code = load_code(node.operand, dtype, at, self._fresh)
            stmts.extend(lets)
            return code

        return stmts, map_expr(expr, load)

    def _store_elements(self, operand: str, dtype: DType, each: tuple[ir.Stmt, ...], value: ir.Expr) -> tuple[ir.Stmt, ...]:
        layout, index = dtype.layout, name(self._index)
        if layout.elements == 1:
            return (ir.For(self._index, self._first, self._end, u32(1), (*each, ir.Store(operand, index, value))),)
        if layout.words > 1:
            return self._periods(dtype, lambda start, end: self._straddling(operand, each, value, (start, end)))

        def whole_word(start: ir.Expr, end: ir.Expr) -> tuple[ir.Stmt, ...]:
            word = self._fresh(self._word)
            code = ir.Assign(word, binary("|", name(word), binary("<<", value, bit_offset(dtype, index))))
            at = self._unit if self._plan.lanes == layout.elements and not self._redoes else binary("/", start, u32(layout.elements))
            loop = ir.For(self._index, start, end, u32(1), (*each, code))
            return ir.Var(word, u32(0)), loop, ir.Store(operand, at, name(word))

        return self._periods(dtype, whole_word)

    def _straddling(
        self, operand: str, each: tuple[ir.Stmt, ...], value: ir.Expr, elements: tuple[ir.Expr, ir.Expr]
    ) -> tuple[ir.Stmt, ...]:
        names = [self._fresh(stem) for stem in ("number", self._word, "bit", "offset", "code")]
        return (store_straddling(self._program.operand(operand), each, value, elements, (*names, self._index)),)

    def _periods(self, dtype: DType, body: _PeriodBody) -> tuple[ir.Stmt, ...]:
        """Return `body` for each period of the invocation's elements, given the first element of it and one past its last."""
        period = dtype.layout.elements
        if self._plan.lanes == period and not self._redoes:
            return body(self._first, self._end)
        start = self._fresh("start")
        past = minimum(binary("+", name(start), u32(period)), self._end)
        return (ir.For(start, self._first, self._end, u32(period), body(name(start), past)),)


_PeriodBody = Callable[[ir.Expr, ir.Expr], tuple[ir.Stmt, ...]]
