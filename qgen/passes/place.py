"""REALISED to LEGAL: writes the entry point that a plan describes; elements become bits of words.

Before (with a plan of 4 lanes, shape [1000]):

    let scale: u32 = read y_scale
    write y = quantize_linear(read x, scale)

After:

    let first: u32 = 4u * invocation.x
    if first >= 1000u { return }
    let scale: u32 = y_scale[0u]
    var word: u32 = 0u
    for i from first below min(first + 4u, 1000u) step 1 {
        word = word | (quantize_linear(x[i], scale) << (8u * (i % 4u)))
    }
    store y[invocation.x] = word

The tail and every ragged edge are the loop's bound, so the element's function stands once in the text, and unused bits of a last word stay
zero.
"""

from __future__ import annotations

from qgen.dtypes import WORD_BITS, DType
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.program import Kernel, Program, Stage
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import Scalar
from qgen.passes.plan import Plan


def place_words(program: Program, plan: Plan) -> Program:
    """Return the program with the entry point written from `plan`, on loads and stores of words."""
    (kernel,) = program.kernels
    body = _Placer(program, plan).run(kernel.body)
    placed = Kernel(kernel.name, body, plan.workgroup_size)
    return Program(program.name, Stage.LEGAL, program.operands, (placed,), program.functions, plan.uniforms)


class _Placer:
    def __init__(self, program: Program, plan: Plan) -> None:
        self._program = program
        self._plan = plan
        taken = {operand.name for operand in program.operands}
        self._unit = _fresh("unit", taken)
        self._first = _fresh("first", taken)
        self._end = _fresh("end", taken)
        self._index = _fresh("i", taken)
        self._start = _fresh("start", taken)
        self._word = _fresh("word", taken)
        self._group = _fresh("group", taken)
        self._words: dict[str, str] = {}

    def run(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        plan = self._plan
        *groups, write = body
        if not isinstance(write, ir.Write):
            raise InternalError("an element program ends with the write of its result")
        unit, first = _name(self._unit), _name(self._first)
        stmts: list[ir.Stmt] = [
            ir.Let(self._unit, self._unit_index()),
            ir.If(ir.Binary(">=", unit, plan.units, Scalar.BOOL), (ir.Return(None),)),
            ir.Let(self._first, _binary("*", _literal(plan.lanes), unit)),
            ir.Let(self._end, self._end_index()),
        ]
        shared = self._group_lets(groups, first) if plan.group_is_shared else []
        stmts += [*shared, *self._whole_words(write, unit)]
        each = [] if plan.group_is_shared else self._group_lets(groups, _name(self._index))
        dtype = self._program.operand(write.operand).dtype
        value = self._elements(write.value, _name(self._index))
        return (*stmts, *self._store_elements(write.operand, dtype, value, each))

    def _unit_index(self) -> ir.Expr:
        x = ir.Invocation("x")
        return x if self._plan.row is None else _binary("+", _binary("*", ir.Invocation("y"), self._plan.row), x)

    def _end_index(self) -> ir.Expr:
        plan = self._plan
        end = _binary("+", _name(self._first), _literal(plan.lanes))
        if plan.view is not None and plan.view.count % plan.lanes == 0:
            return end
        return ir.Builtin("min", (end, plan.count), Scalar.U32)

    def _group_lets(self, groups: list[ir.Stmt], index: ir.Expr) -> list[ir.Stmt]:
        if not groups:
            return []
        group = map_expr(self._plan.group, lambda node: index if node == ir.Name("i", Scalar.U32) else node)
        lets: list[ir.Stmt] = []
        if not isinstance(group, ir.Literal):
            lets.append(ir.Let(self._group, group))
            group = _name(self._group)
        for stmt in groups:
            if not isinstance(stmt, ir.Let):
                raise InternalError("what a group decides is named before the result is written")
            lets.append(ir.Let(stmt.name, self._elements(stmt.value, group)))
        return lets

    def _whole_words(self, write: ir.Write, unit: ir.Expr) -> list[ir.Stmt]:
        """Load once the word that holds all elements of the invocation, where it is one word and they are several."""
        lets: list[ir.Stmt] = []
        taken = {operand.name for operand in self._program.operands}
        for operand in self._program.operands:
            read = any(isinstance(node, ir.Read) and node.operand == operand.name for node in walk_expr(write.value))
            if read and operand.dtype.layout.elements == self._plan.lanes > 1:
                name = _fresh(f"{operand.name}_word", taken)
                self._words[operand.name] = name
                lets.append(ir.Let(name, ir.Load(operand.name, unit)))
        return lets

    def _elements(self, expr: ir.Expr, index: ir.Expr) -> ir.Expr:
        """Replace reads by the bits of element `index`."""
        return map_expr(expr, lambda node: self._element(node.operand, index) if isinstance(node, ir.Read) else node)

    def _element(self, operand: str, index: ir.Expr) -> ir.Expr:
        dtype = self._program.operand(operand).dtype
        layout = dtype.layout
        if layout.words != 1:
            raise InternalError(f"{dtype.name} elements may straddle words, which no pass can place yet")
        if layout.elements == 1:
            return ir.Load(operand, index)
        whole = self._words.get(operand)
        word = _name(whole) if whole else ir.Load(operand, _binary("/", index, _literal(layout.elements)))
        shifted = _binary(">>", word, _bit_offset(dtype, index))
        return _binary("&", shifted, _literal(dtype.mask))

    def _store_elements(self, operand: str, dtype: DType, value: ir.Expr, each: list[ir.Stmt]) -> tuple[ir.Stmt, ...]:
        period, lanes = dtype.layout.elements, self._plan.lanes
        index, word = _name(self._index), _name(self._word)
        first, end = _name(self._first), _name(self._end)
        if period == 1:
            return (ir.For(self._index, first, end, 1, (*each, ir.Store(operand, index, value))),)
        merged = ir.Assign(self._word, _binary("|", word, _binary("<<", value, _bit_offset(dtype, index))))
        if lanes == period:
            loop = ir.For(self._index, first, end, 1, (*each, merged))
            return ir.Var(self._word, _literal(0)), loop, ir.Store(operand, _name(self._unit), word)
        start = _name(self._start)
        stop = ir.Builtin("min", (_binary("+", start, _literal(period)), end), Scalar.U32)
        inner = (
            ir.Var(self._word, _literal(0)),
            ir.For(self._index, start, stop, 1, (*each, merged)),
            ir.Store(operand, _binary("/", start, _literal(period)), word),
        )
        return (ir.For(self._start, first, end, period, inner),)


def _bit_offset(dtype: DType, index: ir.Expr) -> ir.Expr:
    return _binary("*", _literal(dtype.bits), _binary("%", index, _literal(WORD_BITS // dtype.bits)))


def _fresh(stem: str, taken: set[str]) -> str:
    name = next(choice for choice in (stem, *(f"{stem}_{number}" for number in range(2, len(taken) + 3))) if choice not in taken)
    taken.add(name)
    return name


def _name(name: str) -> ir.Expr:
    return ir.Name(name, Scalar.U32)


def _literal(value: int) -> ir.Expr:
    return ir.Literal(value, Scalar.U32)


def _binary(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    return ir.Binary(op, lhs, rhs, Scalar.U32)
