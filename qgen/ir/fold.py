"""Constant folding of one node, on u32 and i32; no float is touched, and nothing whose text a compiler would refuse."""

from __future__ import annotations

import operator

from qgen.ir import nodes as ir
from qgen.ir.rewrite import with_children
from qgen.ir.types import Scalar

_WORD = 32
_MODULUS = 1 << _WORD
_INT32 = range(-(1 << 31), 1 << 31)


def fold_expr(expr: ir.Expr) -> ir.Expr:
    """Return an expression in its shortest form; the same object where it has that."""
    below = expr.operands
    if not below:
        return expr
    new = tuple([fold_expr(child) for child in below])
    return fold_node(with_children(expr, new) if any(map(operator.is_not, below, new)) else expr)


def fold_node(expr: ir.Expr) -> ir.Expr:
    """Return a node, whose operands are folded, in its shortest form."""
    if not isinstance(expr, ir.Binary) or not (isinstance(expr.lhs, ir.Literal) or isinstance(expr.rhs, ir.Literal)):
        return expr
    match expr:
        case ir.Binary(op, ir.Literal(int(a), _), ir.Literal(int(b), _), Scalar.U32):
            value = _evaluate(op, a, b)
            return expr if value is None else ir.Literal(value % _MODULUS, Scalar.U32)
        case ir.Binary("+" | "-" | "*" as op, ir.Literal(int(a), _), ir.Literal(int(b), _), Scalar.I32):
            value = _evaluate(op, a, b)
            return expr if value is None or value not in _INT32 else ir.Literal(value, Scalar.I32)
        case ir.Binary("+" | "-" | "|" | "^" | "<<" | ">>", lhs, ir.Literal(0, Scalar.U32 | Scalar.I32), _):
            return lhs
        case ir.Binary("+" | "|" | "^", ir.Literal(0, Scalar.U32 | Scalar.I32), rhs, _):
            return rhs
        case ir.Binary("*" | "/", lhs, ir.Literal(1, Scalar.U32 | Scalar.I32), _):
            return lhs
        case ir.Binary("*", ir.Literal(1, Scalar.U32 | Scalar.I32), rhs, _):
            return rhs
        case ir.Binary("/", ir.Binary("/", lhs, ir.Literal(int(a), _), _), ir.Literal(int(b), _), Scalar.U32) if 0 < a * b < _MODULUS:
            return ir.Binary("/", lhs, ir.Literal(a * b, Scalar.U32), Scalar.U32)
        case ir.Binary("%", _, ir.Literal(1, Scalar.U32), _) | ir.Binary("*" | "&", _, ir.Literal(0, Scalar.U32), _):
            return ir.Literal(0, Scalar.U32)
        case _:
            return expr


def _evaluate(op: str, a: int, b: int) -> int | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" if b:
            return a // b
        case "%" if b:
            return a % b
        case "<<" if b < _WORD:
            return a << b
        case ">>" if b < _WORD:
            return a >> b
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case _:
            return None
