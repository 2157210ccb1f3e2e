"""A CHECKED program as the formula of a header, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from qgen.dtypes import DType
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.nodes import Op
from qgen.ir.precedence import ATOM, UNARY, operand_precedences, parenthesise, precedence
from qgen.ir.program import Program

_SIGNS: Final = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.DIV: "/"}
_BRANCH: Final = 0


def print_formula(program: Program) -> tuple[str, ...]:
    """Return the lines of what the program computes: `y = saturate_uint8(round_even(x / y_scale) + y_zero_point)`.

    One result is one line, names replaced by their values; several results are a line each, and so are the names they share.
    """
    body = program.kernels[0].body
    is_single = sum(isinstance(stmt, ir.Write) for stmt in body) == 1
    lets: dict[str, ir.Expr] = {}
    lines: list[str] = []
    for stmt in body:
        match stmt:
            case ir.Let(name, value) if is_single:
                lets[name] = value
            case ir.Let(name, value):
                lines.append(f"{name} = {_print(value, lets)[0]}")
            case ir.Write(operand, ir.Name(name, _), None) if name == operand:
                pass
            case ir.Write(operand, value, None):
                lines.append(f"{operand} = {_print(value, lets)[0]}")
            case _:
                raise InternalError(f"a checked program has no {type(stmt).__name__}")
    return tuple(lines)


def _print(expr: ir.Expr, lets: Mapping[str, ir.Expr]) -> tuple[str, int]:
    def text(part: ir.Expr) -> str:
        return _print(part, lets)[0]

    match expr:
        case ir.Name(name, _):
            return _print(lets[name], lets) if name in lets else (name, ATOM)
        case ir.Read(operand, _):
            return operand, ATOM
        case ir.Literal(value, _):
            return str(value), ATOM
        case ir.Typed(Op.EQUAL, (lhs, rhs), _):
            return f"{parenthesise(*_print(lhs, lets), UNARY)} == {parenthesise(*_print(rhs, lets), UNARY)}", _BRANCH
        case ir.Binary(op, lhs, rhs, _):
            return f"{parenthesise(*_print(lhs, lets), UNARY)} {op} {parenthesise(*_print(rhs, lets), UNARY)}", _BRANCH
        case ir.Unary(op, operand, _):
            return f"{op}{parenthesise(*_print(operand, lets), ATOM)}", UNARY
        case ir.Typed(op, args, _) if op in _SIGNS:
            left, right = operand_precedences(_SIGNS[op])
            first, second = (_print(arg, lets) for arg in args)
            return f"{parenthesise(*first, left)} {_SIGNS[op]} {parenthesise(*second, right)}", precedence(_SIGNS[op])
        case ir.Typed(Op.CONVERT, (arg,), type_) if not isinstance(type_, DType) or isinstance(arg, ir.Literal):
            return _print(arg, lets)
        case ir.Typed(op, args, type_):
            return f"{_function(op, type_.name if isinstance(type_, DType) else 'int32')}({', '.join(text(arg) for arg in args)})", ATOM
        case ir.Select(condition, then, otherwise, _):
            return f"if {text(condition)} then {text(then)} else {text(otherwise)}", _BRANCH
        case ir.Reduce(op, value, _):
            return f"{op.value}_over_group({text(value)})", ATOM
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
        case Op.ROUND_EVEN | Op.MIN | Op.MAX | Op.ABS | Op.NEG | Op.ADD | Op.SUB | Op.MUL | Op.DIV | Op.EQUAL | Op.IS_NAN:
            return str(op.value)
        case _:
            assert_never(op)
