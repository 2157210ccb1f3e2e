"""LEGAL to LEGAL: every vector as four values, so that whoever evaluates a program needs to know scalars alone.

Before: `let v: vec4<u32> = vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)`; after: `let v.x: u32 = w >> 0u`, `let v.y: u32 = w >> 8u`, … A
function on vectors takes four parameters for each and returns a struct of four.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final, assert_never

from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.program import ById, Function, Kernel, Param
from qgen.ir.rewrite import with_children
from qgen.ir.types import LANES, Machine, Scalar, Struct, Vector

_NAMES: Final = "xyzw"


@lru_cache(maxsize=256)
def scalarise_kernel(key: ById[Kernel]) -> Kernel:
    """Return the entry point without vectors; itself where it has none, and the same object for the same one."""
    kernel = key.value
    body = _Scalariser().body(kernel.body)
    return kernel if body == kernel.body else replace(kernel, body=body)


@lru_cache(maxsize=1024)
def scalarise_function(key: ById[Function]) -> Function:
    """Return the function without vectors; itself where it has none."""
    function = key.value
    params: list[Param] = []
    for param in function.params:
        if isinstance(param.type, Vector):
            params += [Param(f"{param.name}.{name}", param.type.element, param.of) for name in _NAMES]
        else:
            params.append(param)
    body = _Scalariser().body(function.body)
    if len(params) == len(function.params) and body == function.body:
        return function
    return replace(function, params=tuple(params), result=_scalar_type(function.result), body=body)


def _record(element: Scalar) -> Struct:
    return Struct(f"vec4<{element.value}>", tuple((name, element) for name in _NAMES))


def _scalar_type(type_: Machine) -> Machine:
    return _record(type_.element) if isinstance(type_, Vector) else type_


class _Scalariser:
    """One body; calls that return vectors are named before the statement that has them."""

    def __init__(self) -> None:
        self._before: list[ir.Stmt] = []
        self._calls: dict[ById[ir.Call], ir.Expr] = {}
        self._count = 0

    def body(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for stmt in body:
            outer, self._before = self._before, []
            outer_calls, self._calls = self._calls, {}
            stmts = self._stmt(stmt)
            found += [*self._before, *stmts]
            self._before, self._calls = outer, outer_calls
        return tuple(found)

    def _stmt(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        match stmt:
            case ir.Let(name, value) if isinstance(value.type, Vector):
                return [ir.Let(f"{name}.{part}", self.part(value, number)) for number, part in enumerate(_NAMES)]
            case ir.Let(name, value):
                return [ir.Let(name, self.scalar(value))]
            case ir.Return(value) if value is not None and isinstance(value.type, Vector):
                parts = tuple(self.part(value, number) for number in range(LANES))
                return [ir.Return(ir.Construct(parts, _record(value.type.element)))]
            case ir.Return(value):
                return [ir.Return(None if value is None else self.scalar(value))]
            case ir.If(condition, then, otherwise):
                return [ir.If(self.scalar(condition), self.body(then), self.body(otherwise))]
            case ir.Var(name, value):
                return [ir.Var(name, self.scalar(value))]
            case ir.Assign(name, value):
                return [ir.Assign(name, self.scalar(value))]
            case ir.Store(buffer, index, value):
                return [ir.Store(buffer, self.scalar(index), self.scalar(value))]
            case ir.StoreVector(buffer, index, value):
                at = self.scalar(index)
                return [ir.Store(buffer, _word(at, number), self.part(value, number)) for number in range(LANES)]
            case ir.AtomicMax(buffer, index, value):
                return [ir.AtomicMax(buffer, self.scalar(index), self.scalar(value))]
            case ir.For(name, start, stop, step, inner):
                return [ir.For(name, self.scalar(start), self.scalar(stop), self.scalar(step), self.body(inner))]
            case ir.Require(condition):
                return [ir.Require(self.scalar(condition))]
            case ir.Write() | ir.Accumulate():
                return [stmt]  # No statement of LEGAL: who evaluates the text says so.
            case _:
                assert_never(stmt)

    def scalar(self, expr: ir.Expr) -> ir.Expr:
        """Return an expression that is no vector, without vectors inside it."""
        match expr:
            case ir.Component(operand, number, _):
                return self.part(operand, number)
            case ir.Builtin("all" | "any" as name, (operand,), _):
                op = "&&" if name == "all" else "||"
                result = self.part(operand, 0)
                for number in range(1, LANES):
                    result = ir.Binary(op, result, self.part(operand, number), Scalar.BOOL)
                return result
            case ir.Call(function, args, type_):
                return ir.Call(function, self._args(args), type_)
            case _:
                return with_children(expr, tuple(self.scalar(child) for child in expr.operands))

    def part(self, expr: ir.Expr, number: int) -> ir.Expr:
        """Return one element of a vector."""
        if not isinstance(expr.type, Vector):
            raise InternalError(f"a {type(expr).__name__} is no vector")
        element = expr.type.element
        match expr:
            case ir.Name(name, _):
                return ir.Name(f"{name}.{_NAMES[number]}", element)
            case ir.Compose(args, _):
                return self.scalar(args[number if len(args) == LANES else 0])
            case ir.LoadVector(buffer, index):
                return ir.Load(buffer, _word(self.scalar(index), number))
            case ir.Call():
                return ir.Field(self._named(expr, element), _NAMES[number], element)
            case ir.Builtin("unpack4xU8", (word,), _):
                shifted = ir.Binary(">>", self.scalar(word), ir.Literal(8 * number, Scalar.U32), Scalar.U32)
                return ir.Binary("&", shifted, ir.Literal(255, Scalar.U32), Scalar.U32)
            case ir.Unary() | ir.Binary() | ir.Builtin() | ir.Convert() | ir.Bitcast():
                return self._of_parts(expr, number, element)
            case ir.Select(condition, then, otherwise, _):
                test = self.part(condition, number) if isinstance(condition.type, Vector) else self.scalar(condition)
                return ir.Select(test, self.part(then, number), self.part(otherwise, number), element)
            case _:
                raise InternalError(f"a {type(expr).__name__} makes no vector")

    def _of_parts(self, expr: ir.Unary | ir.Binary | ir.Builtin | ir.Convert | ir.Bitcast, number: int, element: Scalar) -> ir.Expr:
        """Return an operation on elements in place of one on vectors."""
        parts = tuple(self.part(child, number) for child in expr.operands)
        match expr:
            case ir.Binary(op, _, _, _):
                return ir.Binary(op, parts[0], parts[1], element)
            case ir.Builtin(name, _, _):
                return ir.Builtin(name, parts, element)
            case _:
                return replace(expr, operand=parts[0], type=element)

    def _named(self, call: ir.Call, element: Scalar) -> ir.Expr:
        """Return the name of a call's result, called once for its four elements."""
        key = ById(call)
        if key not in self._calls:
            name = f"call.{self._count}"
            self._count += 1
            record = _record(element)
            value = ir.Call(call.function, self._args(call.args), record)
            self._before.append(ir.Let(name, value))
            self._calls[key] = ir.Name(name, record)
        return self._calls[key]

    def _args(self, args: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        found: list[ir.Expr] = []
        for arg in args:
            found += [self.part(arg, number) for number in range(LANES)] if isinstance(arg.type, Vector) else [self.scalar(arg)]
        return tuple(found)


def _word(index: ir.Expr, number: int) -> ir.Expr:
    four = ir.Binary("*", ir.Literal(LANES, Scalar.U32), index, Scalar.U32)
    return ir.Binary("+", four, ir.Literal(number, Scalar.U32), Scalar.U32)
