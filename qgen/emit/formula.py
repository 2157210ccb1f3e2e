"""A CHECKED program as the one-line formula of a header, for people."""

from __future__ import annotations

from typing import Final, assert_never

from qgen.dtypes import DType
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.nodes import Op
from qgen.ir.precedence import ATOM, operand_precedences, parenthesise, precedence
from qgen.ir.program import Program

_SIGNS: Final = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}


def print_formula(program: Program) -> str:
    """Return what the program computes: `y = saturate_uint8(round_even(x / y_scale) + y_zero_point)`, names replaced by their values."""
    lets: dict[str, ir.Expr] = {}
    writes: list[str] = []
    for stmt in program.kernels[0].body:
        match stmt:
            case ir.Let(name, value):
                lets[name] = value
            case ir.Write(operand, value):
                writes.append(f"{operand} = {_print(value, lets)[0]}")
            case _:
                raise InternalError(f"a checked program has no {type(stmt).__name__}")
    return "; ".join(writes)


def _print(expr: ir.Expr, lets: dict[str, ir.Expr]) -> tuple[str, int]:
    match expr:
        case ir.Name(name, _):
            return _print(lets[name], lets)
        case ir.Read(operand, _):
            return operand, ATOM
        case ir.Literal(value, _):
            return str(value), ATOM
        case ir.Typed(op, args, _) if op in _SIGNS:
            left, right = operand_precedences(_SIGNS[op])
            lhs, rhs = (_print(arg, lets) for arg in args)
            return f"{parenthesise(*lhs, left)} {_SIGNS[op]} {parenthesise(*rhs, right)}", precedence(_SIGNS[op])
        case ir.Typed(Op.CONVERT, (arg,), type_) if not isinstance(type_, DType):
            return _print(arg, lets)
        case ir.Typed(op, args, type_):
            inner = ", ".join(_print(arg, lets)[0] for arg in args)
            return f"{_function(op, type_.name if isinstance(type_, DType) else 'int32')}({inner})", ATOM
        case _:
            raise InternalError(f"a checked program has no {type(expr).__name__}")


def _function(op: Op, type_name: str) -> str:
    match op:
        case Op.CONVERT:
            return type_name
        case Op.SATURATE:
            return f"saturate_{type_name}"
        case Op.WRAP:
            return f"wrap_{type_name}"
        case Op.ROUND_EVEN | Op.MIN | Op.MAX | Op.ABS | Op.NEG | Op.ADD | Op.SUB | Op.MUL | Op.DIV:
            return str(op.value)
        case _:
            assert_never(op)
