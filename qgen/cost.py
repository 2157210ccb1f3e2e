"""What a kernel costs, counted from its LEGAL program: accesses by buffer, and operations by kind.

The model. One invocation is followed through the entry point, the first of the dispatch, which has all its elements where the tensor has
as many; shapes in uniforms count as a large one. Loops are counted as often as they run. Conditions that depend on data are taken to hold,
which gives what is *computed*, and then to fail, which gives what is *redone* beyond that: the loop at the end, for all elements of the
invocation.

- An access moves one word, or four of a vector, as often as the text says: what a compiler or a cache merges is counted each time.
- An operation is that of one element: of a vector of four, four. Kinds are arithmetic, logic and comparisons of integers (`integer`) and
  of floats (`float`), shifts, selects, conversions between integers and floats (`convert`), and divisions. A division or remainder by a
  literal integer is none: by a power of two it is one shift or one integer operation, else one of each. A round of a loop costs two
  integer operations beside its bound. Literals, names, bit casts and the parts of vectors cost nothing.
- A span of pieces whose length the place of its first element decides is as long as it can be: all pieces of the invocation.
- Both sides of an `if` inside a function count, and what follows an early return: software adapters run them under a mask, and so does a
  GPU where a wave has both. So operations of integer code are an upper bound.

What it leaves out: the price of each kind, which differs from adapter to adapter, and that of an invocation itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from qgen.ir import nodes as ir
from qgen.ir.program import Domain, Function, Kernel, Operand, Program
from qgen.ir.types import LANES, Scalar, Vector, element_of
from qgen.passes.plan import Plan, group_count

KINDS: Final = ("integer", "float", "shift", "select", "division", "convert")
"""The kinds of operations."""

LARGE: Final = 1 << 24
"""How many items a shape in uniforms is taken to have."""

EXTENT: Final = 1 << 12
"""What an axis in uniforms is taken to have: as many elements as there are side by side, and as many blocks."""

Counts: TypeAlias = Counter[tuple[str, str]]
"""Operations by `("operation", kind)`, accesses by `("load", buffer)` and `("store", buffer)`, their words by `("words", buffer)`."""
Number: TypeAlias = int | bool | None
"""A value of the entry point, None where data or an unknown extent decides."""

_LOOP: Final[Counts] = Counter({("operation", "integer"): 1})
_WORD: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What one invocation of a kernel costs; `redone` is None where no condition is tested."""

    name: str
    domain: Domain
    items: int
    """Elements, or groups, that the invocation computes."""
    computed: Counts
    redone: Counts | None
    least_bytes: Mapping[str, float | None]
    """By buffer, bytes of the tensor for each item of the kernel; None where the shape decides it and is not known."""


def count_costs(program: Program, plans: tuple[Plan, ...]) -> tuple[KernelCost, ...]:
    """Return the cost of each kernel of a LEGAL program, whose plans these are."""
    functions = _Functions({function.name: function for function in program.functions})
    return tuple(_count_kernel(program, kernel, plan, functions) for kernel, plan in zip(program.kernels, plans, strict=True))


def _count_kernel(program: Program, kernel: Kernel, plan: Plan, functions: _Functions) -> KernelCost:
    count = plan.count.value if isinstance(plan.count, ir.Literal) else LARGE
    uniforms = {plan.names.count: int(count), plan.names.units: -(-int(count) // plan.lanes), plan.names.groups_x: LARGE}
    uniforms |= {"axis": EXTENT, "inner": LARGE // EXTENT, "blocks": EXTENT, "axis_start": 0}
    computed, everything = (_Invocation(functions, uniforms, holds=holds).run(kernel) for holds in (True, False))
    redone = everything - computed
    least = {operand.name: _least_bytes(operand, kernel.domain, plan) for operand in program.bound}
    return KernelCost(kernel.name, kernel.domain, max(1, min(plan.lanes, int(count))), computed, redone or None, least)


def _least_bytes(operand: Operand, domain: Domain, plan: Plan) -> float | None:
    nbytes = operand.dtype.bits / 8
    if operand.per_group is (domain is Domain.GROUPS):
        return nbytes
    if plan.view is None:
        return None
    elements, groups = max(1, plan.view.count), max(1, group_count(plan.granularity, plan.view))
    return nbytes * groups / elements if operand.per_group else nbytes * elements / groups


class _Functions:
    """Counts of expressions, and of functions, each of which is counted once."""

    def __init__(self, table: Mapping[str, Function]) -> None:
        self._table = table
        self._known: dict[str, Counts] = {}

    def expr(self, expr: ir.Expr) -> Counts:
        """Return the counts of an expression and all below it."""
        found = Counter({("operation", kind): number for kind, number in _operations(expr) if number})
        match expr:
            case ir.Call(function, _, _):
                found.update(self._function(function))
            case ir.Load(buffer, _):
                found.update({("load", buffer): 1, ("words", buffer): 1})
            case ir.LoadVector(buffer, _):
                found.update({("load", buffer): 1, ("words", buffer): LANES})
            case _:
                pass
        for child in expr.operands:
            found.update(self.expr(child))
        return found

    def body(self, body: tuple[ir.Stmt, ...]) -> Counts:
        """Return the counts of a function's statements, both sides of each branch."""
        found: Counts = Counter()
        for stmt in body:
            match stmt:
                case ir.Let(_, value):
                    found.update(self.expr(value))
                case ir.Return(value):
                    found.update(Counter() if value is None else self.expr(value))
                case ir.If(condition, then, otherwise):
                    found.update(self.expr(condition) + self.body(then) + self.body(otherwise))
                case _:
                    raise TypeError(stmt)
        return found

    def _function(self, name: str) -> Counts:
        if name not in self._known:
            self._known[name] = self.body(self._table[name].body)
        return self._known[name]


class _Invocation:
    """The first invocation, on what is known of its values."""

    def __init__(self, functions: _Functions, uniforms: Mapping[str, int], *, holds: bool) -> None:
        self._functions = functions
        self._uniforms = uniforms
        self._holds = holds
        self._values: dict[str, Number] = {}
        self._counts: Counts = Counter()

    def run(self, kernel: Kernel) -> Counts:
        self._body(kernel.body)
        return self._counts

    def _body(self, body: tuple[ir.Stmt, ...]) -> bool:
        """Count the statements, and return whether they end the invocation."""
        return any(self._stmt(stmt) for stmt in body)

    def _stmt(self, stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Let(name, value) | ir.Var(name, value) | ir.Assign(name, value):
                self._count(value)
                self._values[name] = self._decided(value)
            case ir.Store(buffer, index, value) | ir.AtomicMax(buffer, index, value):
                self._count(index, value)
                self._counts.update({("store", buffer): 1, ("words", buffer): 1})
            case ir.StoreVector(buffer, index, value):
                self._count(index, value)
                self._counts.update({("store", buffer): 1, ("words", buffer): LANES})
            case ir.If(condition, then, otherwise):
                self._count(condition)
                return self._body(then if self._decided(condition) else otherwise)
            case ir.Return():
                return True
            case ir.For():
                self._loop(stmt)
            case ir.Require() | ir.Write() | ir.Accumulate():
                raise TypeError(stmt)
            case _:
                assert_never(stmt)
        return False

    def _loop(self, loop: ir.For) -> None:
        self._count(loop.start)
        index = self._value(loop.start)
        while index is not None:
            self._values[loop.name] = index
            self._count(loop.stop)
            self._counts.update(_LOOP)
            stop = self._at_most(loop.stop)
            if index >= stop:
                return
            self._body(loop.body)
            self._counts.update(_LOOP)
            step = self._value(loop.step)
            index = stop if step is None else index + step
        raise TypeError(loop)  # where a loop begins does not depend on data

    def _at_most(self, expr: ir.Expr) -> int:
        """Return the value, or the greatest it can have: a span whose length an element's place decides is as long as it can be."""
        value = self._value(expr)
        if value is None and isinstance(expr, ir.Builtin) and expr.name == "min":
            return min(int(known) for known in map(self._value, expr.args) if known is not None)
        if value is None:
            raise TypeError(expr)  # how often a loop runs does not depend on data
        return int(value)

    def _count(self, *exprs: ir.Expr) -> None:
        for expr in exprs:
            self._counts.update(self._functions.expr(expr))

    def _decided(self, expr: ir.Expr) -> Number:
        if isinstance(expr, ir.Unary) and expr.type is Scalar.BOOL:
            return not self._decided(expr.operand)
        value = self._value(expr)
        return self._holds if value is None and expr.type is Scalar.BOOL else value

    def _value(self, expr: ir.Expr) -> Number:
        match expr:
            case ir.Literal(int() | bool() as value, _):
                return value
            case ir.Name(name, _):
                return self._values.get(name)
            case ir.Uniform(name):
                return self._uniforms.get(name)
            case ir.Invocation():
                return 0
            case ir.Select(condition, then, otherwise, _):
                chosen = self._decided(condition)
                return self._value(then if chosen else otherwise)
            case ir.Builtin("min" | "max" as name, (lhs, rhs), Scalar.U32):
                values = [self._value(lhs), self._value(rhs)]
                known = [value for value in values if value is not None]
                return None if len(known) < len(values) else min(known) if name == "min" else max(known)
            case ir.Convert(operand, Scalar.U32) if operand.type is Scalar.BOOL:
                return int(bool(self._decided(operand)))
            case ir.Binary(op, lhs, rhs, Scalar.U32 | Scalar.BOOL):
                return _combine(op, self._value(lhs), self._value(rhs))
            case _:
                return None


def _combine(op: str, lhs: Number, rhs: Number) -> Number:
    if op == "&&" and (lhs is False or rhs is False):
        return False
    if lhs is None or rhs is None:
        return None
    match op:
        case "&&":
            return bool(lhs and rhs)
        case "+" | "-" | "*":
            return (lhs + rhs if op == "+" else lhs - rhs if op == "-" else lhs * rhs) % _WORD
        case "/" | "%" if rhs:
            return lhs // rhs if op == "/" else lhs % rhs
        case "&" | "|" | "^":
            return lhs & rhs if op == "&" else lhs | rhs if op == "|" else lhs ^ rhs
        case "<<" | ">>":
            return (lhs << rhs) % _WORD if op == "<<" else lhs >> rhs
        case "==" | "!=":
            return (lhs == rhs) is (op == "==")
        case "<" | "<=":
            return lhs < rhs if op == "<" else lhs <= rhs
        case ">" | ">=":
            return lhs > rhs if op == ">" else lhs >= rhs
        case _:
            return None


def _operations(expr: ir.Expr) -> list[tuple[str, int]]:
    """Return the operations of the node itself, by kind; those of a vector's elements are each one."""
    match expr:
        case ir.Binary(_, lhs, rhs, _) if _is_constant(lhs) and _is_constant(rhs):
            return []
        case ir.Binary("<<" | ">>", lhs, _, _):
            return [("shift", _width(lhs))]
        case ir.Binary("/" | "%" as op, lhs, rhs, _):
            return [(kind, _width(lhs)) for kind in _division(op, rhs)]
        case ir.Binary(_, operand, _, _) | ir.Unary(_, operand, _):
            return [(_arithmetic(operand), _width(operand))]
        case ir.Select():
            return [("select", _width(expr))]
        case ir.Builtin("all" | "any", (operand,), _):
            return [("integer", _width(operand) - 1)]
        case ir.Builtin(name, (operand, *_), _):
            return [(_arithmetic(operand), _width(operand) * (2 if name == "clamp" else 1))]
        case ir.Convert(operand, type_):
            given, made = element_of(operand.type), element_of(type_)
            kind = "convert" if Scalar.F32 in {given, made} else "select" if given is Scalar.BOOL else None
            return [] if kind is None else [(kind, _width(operand))]
        case _:
            return []


def _division(op: str, divisor: ir.Expr) -> tuple[str, ...]:
    value = divisor.args[0] if isinstance(divisor, ir.Compose) and len(divisor.args) == 1 else divisor
    if not isinstance(value, ir.Literal) or element_of(value.type) is Scalar.F32:
        return ("division",)
    is_power = int(value.value).bit_count() == 1
    return (("shift",) if op == "/" else ("integer",)) if is_power else ("integer", "shift")


def _arithmetic(operand: ir.Expr) -> str:
    return "float" if element_of(operand.type) is Scalar.F32 else "integer"


def _width(expr: ir.Expr) -> int:
    return LANES if isinstance(expr.type, Vector) else 1


def _is_constant(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Literal) or (isinstance(expr, ir.Compose | ir.Unary | ir.Binary) and all(map(_is_constant, expr.operands)))
