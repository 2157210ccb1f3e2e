"""CHECKED to REALISED: every operation becomes the library function whose `is` clause it matches; values become machine types.

Before:

    write y = saturate<uint8>(round_even<int[-262144, 262144]>(div<float32>(read x, read y_scale)))

After:

    write y = saturate_int_uint8(rint_f32(div_f32(read x, read y_scale)))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from qgen.dtypes import DTYPES, EXACT, DType
from qgen.errors import QgenError
from qgen.frontend.check_fn import instance_name
from qgen.ir import nodes as ir
from qgen.ir.nodes import Op
from qgen.ir.print import print_expr
from qgen.ir.program import Function, Kernel, Program, Stage
from qgen.ir.rewrite import map_expr, map_stmt
from qgen.ir.types import Int, Scalar, Value, machine_type
from qgen.numerics.library import Candidate, candidates, closure

MODES: Final[dict[str, frozenset[str | None]]] = {"strict": frozenset({None})}
"""Each numerics mode, and the conditions of `is` clauses that it may rely on."""

_FLOAT32: Final = DTYPES["float32"]
_INT32: Final = Int.of_bits(32)
_INTEGER_OPS: Final = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*"}
_INTEGER_BUILTINS: Final = {Op.MIN: "min", Op.MAX: "max", Op.ABS: "abs"}


def realise(program: Program, mode: str) -> Program:
    """Return the program on machine values; raises `QgenError` QG301 where no function of the library computes an operation."""
    realiser = _Realiser(MODES[mode])
    kernels = tuple(Kernel(kernel.name, realiser.body(kernel.body)) for kernel in program.kernels)
    return Program(program.name, Stage.REALISED, program.operands, kernels, realiser.functions())


class _Realiser:
    def __init__(self, allowed: frozenset[str | None]) -> None:
        self._allowed = allowed
        self._used: dict[tuple[str, DType | None], None] = {}

    def functions(self) -> tuple[Function, ...]:
        """Return the functions used and those they need, callers first, each once."""
        last: dict[str, Function] = {}
        for name, format_ in self._used:
            for function in closure(name, format_):
                last.pop(function.name, None)
                last[function.name] = function
        return tuple(last.values())

    def body(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Return the statements on machine values. What is exact has no machine type: it goes into the operation that rounds it."""
        exact: dict[str, ir.Expr] = {}
        stmts: list[ir.Stmt] = []
        for stmt in body:
            match map_stmt(
                stmt, lambda expr: map_expr(expr, lambda node: exact.get(node.name, node) if isinstance(node, ir.Name) else node)
            ):
                case ir.Let(name, value) if value.type is EXACT:
                    exact[name] = value
                case ir.Let(name, value):
                    stmts.append(ir.Let(name, self.expr(value)))
                case ir.Write(operand, value):
                    stmts.append(ir.Write(operand, self.expr(value)))
                case other:
                    raise TypeError(other)
        return tuple(stmts)

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Read(operand, _):
                return ir.Read(operand, Scalar.U32)
            case ir.Name(name, type_):
                return ir.Name(name, machine_type(type_))
            case ir.Literal(value, _):
                return ir.Literal(value, Scalar.I32)
            case ir.Typed():
                return self._typed(expr)
            case _:
                raise TypeError(expr)

    def _typed(self, expr: ir.Typed) -> ir.Expr:
        expr = _through_float32(expr)
        native = self._native(expr)
        if native is not None:
            return native
        for candidate in candidates().get((expr.op, expr.type if isinstance(expr.type, DType) else None), ()):
            bound = self._match(candidate, expr)
            if bound is not None:
                self._used[candidate.name, candidate.format] = None
                args = tuple(self.expr(bound[name]) for name, _ in candidate.pattern.params)
                return ir.Call(instance_name(candidate.name, candidate.format), args, machine_type(expr.type))
        raise QgenError(
            "QG301",
            f"no function of the numerics library computes {print_expr(expr)}",
            hint="add a `fn` with this `is` clause under qgen/numerics, or write the formula with other conversions",
            place=expr.span,
        )

    def _match(self, candidate: Candidate, expr: ir.Typed) -> Mapping[str, ir.Expr] | None:
        if candidate.pattern.condition not in self._allowed:
            return None
        bound: dict[str, ir.Expr] = {}
        return bound if _matches(candidate.pattern.expr, expr, dict(candidate.pattern.params), bound) else None

    def _native(self, expr: ir.Typed) -> ir.Expr | None:
        """Return integer arithmetic as i32 operations, where it cannot leave 32 bits or leaves them modulo 2^32 under a wrap."""
        if expr.op is Op.WRAP:
            (inner,) = expr.args
            if isinstance(inner, ir.Typed) and inner.op in _INTEGER_OPS:
                return self._integer(inner)
        if not (isinstance(expr.type, Int) and expr.type.within(_INT32) and all(isinstance(arg.type, Int) for arg in expr.args)):
            return None
        if expr.op in _INTEGER_OPS:
            return self._integer(expr)
        if expr.op in _INTEGER_BUILTINS:
            return ir.Builtin(_INTEGER_BUILTINS[expr.op], tuple(self.expr(arg) for arg in expr.args), Scalar.I32)
        return ir.Unary("-", self.expr(expr.args[0]), Scalar.I32) if expr.op is Op.NEG else None

    def _integer(self, expr: ir.Typed) -> ir.Expr:
        lhs, rhs = expr.args
        return ir.Binary(_INTEGER_OPS[expr.op], self.expr(lhs), self.expr(rhs), Scalar.I32)


def _through_float32(expr: ir.Typed) -> ir.Typed:
    """Return the operation on the float32 of a narrow float: that conversion is exact, so the library needs no other of it."""
    type_ = expr.args[0].type
    narrow = isinstance(type_, DType) and type_.is_float and type_ != _FLOAT32
    if narrow and (expr.op in {Op.SATURATE, Op.ROUND_EVEN} or (expr.op is Op.CONVERT and expr.type != _FLOAT32)):
        return replace(expr, args=(ir.Typed(Op.CONVERT, expr.args, _FLOAT32, expr.span),))
    if expr.op in {Op.CONVERT, Op.ROUND_EVEN} and isinstance(expr.args[0], ir.Typed) and expr.args[0].type is EXACT:
        return replace(expr, args=(_exact_through_float32(expr.args[0]),))
    return expr


def _exact_through_float32(quotient: ir.Typed) -> ir.Typed:
    """Return an exact quotient with each operand on the float32 of a narrow float."""
    return replace(quotient, args=tuple(_through_float32(arg) if isinstance(arg, ir.Typed) else arg for arg in quotient.args))


def _matches(pattern: ir.Expr, expr: ir.Expr, params: Mapping[str, Value], bound: dict[str, ir.Expr]) -> bool:
    match pattern:
        case ir.Name(name, type_):
            fits = expr.type.within(type_) if isinstance(type_, Int) and isinstance(expr.type, Int) else expr.type == type_
            if not fits or bound.setdefault(name, expr) != expr:
                return False
            return name in params
        case ir.Typed(op, args, type_):
            return (
                isinstance(expr, ir.Typed)
                and expr.op is op
                and (expr.type == type_ or (isinstance(type_, Int) and isinstance(expr.type, Int) and expr.type.within(type_)))
                and all(_matches(below, found, params, bound) for below, found in zip(args, expr.args, strict=True))
            )
        case _:
            return pattern == expr
