"""The rules by which types agree, for the verifier."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from qgen.ir import nodes as ir
from qgen.ir.types import Int, Scalar, Struct, Type, Vector, element_of

_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
NUMBERS: Final = frozenset({Scalar.U32, Scalar.I32, Scalar.F32})
INTEGERS: Final = frozenset({Scalar.U32, Scalar.I32})
_GREATEST_F32: Final = float.fromhex("0x1.fffffep127")


def is_uniform(type_: Type, types: list[Type]) -> bool:
    """Whether all are vectors, or none is."""
    return all(isinstance(found, Vector) == isinstance(type_, Vector) for found in types)


def is_within(found: Type, type_: Type) -> bool:
    """Whether a value of the one type is a value of the other."""
    return found == type_ or (isinstance(found, Int) and isinstance(type_, Int) and found.within(type_))


def literal_fits(literal: ir.Literal) -> bool:
    """Whether a constant is a value of its type."""
    value = literal.value
    match literal.type:
        case Scalar.U32:
            return type(value) is int and 0 <= value < 1 << 32
        case Int(lo, hi):
            return lo <= value <= hi
        case Scalar.BOOL:
            return isinstance(value, bool)
        case Scalar.I32:
            return type(value) is int and -(1 << 31) <= value < 1 << 31
        case Scalar.F32:
            return isinstance(value, float) and abs(value) <= _GREATEST_F32


@lru_cache(maxsize=4096)
def binary_agrees(op: str, lhs: Type, rhs: Type, type_: Type) -> bool:
    """Whether WGSL has this operator for operands of these types; for vectors, element by element."""
    if isinstance(type_, Vector):
        is_vector = isinstance(lhs, Vector) and isinstance(rhs, Vector)
        return is_vector and op not in {"&&", "||"} and _scalars_agree(op, element_of(lhs), element_of(rhs), type_.element)
    return _scalars_agree(op, lhs, rhs, type_)


def _scalars_agree(op: str, lhs: Type, rhs: Type, type_: Type) -> bool:
    if op in _COMPARISONS:
        return type_ is Scalar.BOOL and lhs is rhs and lhs in NUMBERS
    if op in {"&&", "||"}:
        return type_ is Scalar.BOOL and lhs is Scalar.BOOL and rhs is Scalar.BOOL
    if op in {"<<", ">>"}:
        return lhs is type_ and rhs is Scalar.U32 and type_ in INTEGERS
    if op in {"&", "|", "^"}:
        return lhs is type_ and rhs is type_ and type_ in (INTEGERS if op == "^" else {*INTEGERS, Scalar.BOOL})
    return op in {"+", "-", "*", "/", "%"} and lhs is type_ and rhs is type_ and type_ in (INTEGERS if op == "%" else NUMBERS)


def typed_agrees(expr: ir.Typed, types: list[Type]) -> bool:
    """Whether an operation of the formula language takes arguments of these types."""
    if any(isinstance(type_, Scalar | Struct) for type_ in types):
        return False
    match expr.op:
        case ir.Op.DIV:
            return not isinstance(expr.type, Int) and types == [expr.type, expr.type]
        case ir.Op.ADD | ir.Op.SUB | ir.Op.MUL | ir.Op.MIN | ir.Op.MAX:
            is_integer = isinstance(expr.type, Int)
            return len(types) == 2 and all(isinstance(type_, Int) if is_integer else type_ == expr.type for type_ in types)
        case ir.Op.ROUND_EVEN:
            return len(types) == 1 and isinstance(expr.type, Int) and not isinstance(types[0], Int)
        case ir.Op.WRAP:
            return len(types) == 1 and isinstance(expr.type, Int) and isinstance(types[0], Int)
        case ir.Op.CONVERT | ir.Op.SATURATE | ir.Op.ABS | ir.Op.NEG:
            return len(types) == 1
        case ir.Op.EQUAL:
            return len(types) == 2 and types[0] == types[1] and expr.type is Scalar.BOOL
        case ir.Op.IS_NAN:
            return len(types) == 1 and expr.type is Scalar.BOOL
