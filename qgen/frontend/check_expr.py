"""Expressions of operators: typed when built, by the rules of the formula language.

A value has a dtype or is an exact integer with its interval. Each arithmetic operation is exact and rounded once into its type; conversions
are written. `round_even` is what a machine keeps of the nearest integer: clamped to ±2^18, NaN to -2^18. A formula in which that clamp
could be seen is refused, so for the reader `round_even` is exact; the proof is `Value.clamp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from qgen.dtypes import DTYPES, EXACT, DType, Exact
from qgen.errors import QgenError, Span
from qgen.frontend import ast
from qgen.ir import nodes as ir
from qgen.ir.nodes import Op
from qgen.ir.types import Int, Scalar, print_type
from qgen.ir.types import Value as ValueType

ROUNDED: Final = Int(-(1 << 18), 1 << 18)
INT32: Final = Int.of_bits(32)
_ROUNDING_HINT: Final = "`round_even` is followed by + and - and `as T saturating`"
_ARITY: Final = {"round_even": 1, "min": 2, "max": 2}
_ARITHMETIC: Final = {"+": Op.ADD, "-": Op.SUB, "*": Op.MUL, "/": Op.DIV}


@dataclass(frozen=True, slots=True)
class Value:
    """An expression of a formula, and what a clamp of `round_even` inside it can do."""

    expr: ir.Expr
    clamp: tuple[int, int] | None = None
    """Where there is one: the greatest value that one clamped low has here, and the least that one clamped high has."""

    @property
    def type(self) -> ValueType:
        """The dtype, integer or exact type."""
        type_ = self.expr.type
        if not isinstance(type_, DType | Int | Exact):
            raise TypeError(type_)
        return type_


class Absent:
    """The value of an operand that is not there: sums and differences drop it, conversions keep it."""


ABSENT: Final = Absent()
Result = Value | Absent


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in an expression: values, dtypes (type variables and attributes), and where errors point."""

    values: Mapping[str, Result]
    dtypes: Mapping[str, DType | Exact]
    fail: Callable[[str, str, str, Span], QgenError]
    """(code, message, hint, place) to the error, with the binding added."""


def check_expr(expr: ast.Expr, scope: Scope) -> Result:
    """Return the typed expression; raises `QgenError` (QG010 to QG019) at the place that has no meaning."""
    match expr:
        case ast.Number(value, _):
            return Value(ir.Literal(value, Int(value, value)))
        case ast.Name(name, span):
            if name not in scope.values:
                raise scope.fail("QG010", f"`{name}` is not defined here", f"defined are: {', '.join(scope.values) or 'no names'}", span)
            return scope.values[name]
        case ast.Cast():
            return _check_cast(expr, scope)
        case ast.Binary():
            return _check_binary(expr, scope)
        case ast.Unary("-", operand, span):
            return _subtract(Value(ir.Literal(0, Int(0, 0))), check_expr(operand, scope), span, scope)
        case ast.Call("round_even", (operand,), span):
            quotient = _present(check_expr(operand, scope), span, scope)
            if not _is_fraction(quotient.type):
                raise scope.fail("QG011", "`round_even` rounds a float to an integer", "leave it out: this is an integer already", span)
            return Value(ir.Typed(Op.ROUND_EVEN, (quotient.expr,), ROUNDED, span), (ROUNDED.lo, ROUNDED.hi))
        case ast.Call("min" | "max" as function, (lhs, rhs), span):
            return _extreme(Op(function), check_expr(lhs, scope), check_expr(rhs, scope), span, scope)
        case ast.Reduce(op, operand, span):
            return _reduce(op, _present(check_expr(operand, scope), span, scope), span, scope)
        case ast.Conditional(condition, then, otherwise, span):
            test = check_condition(condition, scope)
            return _choose(test, check_expr(then, scope), check_expr(otherwise, scope), span, scope)
        case ast.Call(function, args, span) if len(args) != _ARITY.get(function, len(args)):
            message = f"`{function}` takes {_ARITY[function]} argument{'s'[: _ARITY[function] - 1]}, not {len(args)}"
            raise scope.fail("QG037", message, "it has `round_even(x)`, `min(x, y)` and `max(x, y)`", span)
        case ast.Call(function, _, span):
            hint = "it has `round_even(x)`, `min(x, y)`, `max(x, y)` and the operators + - * / as"
            raise scope.fail("QG012", f"a formula has no function `{function}`", hint, span)
        case _:
            raise scope.fail("QG013", "this belongs to library functions", "a formula uses + - * /, `as`, `round_even`", expr.span)


def check_condition(expr: ast.Expr, scope: Scope) -> ir.Expr:
    """Return a condition on values, of type bool; raises `QgenError` as `check_expr` does."""
    match expr:
        case ast.Binary("==", lhs, rhs, span):
            left, right = (_present(check_expr(side, scope), span, scope) for side in (lhs, rhs))
            if left.type != right.type or not isinstance(left.type, DType):
                message = f"`==` of {print_type(left.type)} and {print_type(right.type)}"
                raise scope.fail("QG011", message, "both sides need the same dtype", span)
            return ir.Typed(Op.EQUAL, (left.expr, right.expr), Scalar.BOOL, span)
        case ast.Call("is_nan", (operand,), span):
            value = _present(check_expr(operand, scope), span, scope)
            if not (isinstance(value.type, DType) and value.type.is_float):
                raise scope.fail("QG011", "`is_nan` asks a float", "an integer is never NaN", span)
            return ir.Typed(Op.IS_NAN, (value.expr,), Scalar.BOOL, span)
        case ast.Binary("&&" | "||" as op, lhs, rhs, _):
            return ir.Binary(op, check_condition(lhs, scope), check_condition(rhs, scope), Scalar.BOOL)
        case ast.Unary("!", operand, _):
            return ir.Unary("!", check_condition(operand, scope), Scalar.BOOL)
        case _:
            raise scope.fail("QG027", "this is not a condition", "conditions are `a == b`, `is_nan(a)`, and those with && || !", expr.span)


def _extreme(op: Op, lhs: Result, rhs: Result, span: Span, scope: Scope) -> Value:
    left, right = _present(lhs, span, scope), _present(rhs, span, scope)
    if left.type != right.type or not (isinstance(left.type, DType) and left.type.is_float):
        message = f"`{op.value}` of {print_type(left.type)} and {print_type(right.type)}"
        raise scope.fail("QG011", message, "both operands need the same float type", span)
    return Value(ir.Typed(op, (left.expr, right.expr), left.type, span))


def _reduce(name: str, value: Value, span: Span, scope: Scope) -> Value:
    if name not in {"min", "max"}:
        raise scope.fail("QG012", f"there is no reduction `{name}`", "there are `reduce max over group` and `reduce min over group`", span)
    if not isinstance(value.type, DType) or value.type != DTYPES["float32"]:
        raise scope.fail("QG011", f"a reduction of {print_type(value.type)}", "reduce a float32: `… as float32`", span)
    return Value(ir.Reduce(Op(name), value.expr, value.type))


def _choose(condition: ir.Expr, then: Result, otherwise: Result, span: Span, scope: Scope) -> Value:
    left, right = _present(then, span, scope), _present(otherwise, span, scope)
    if isinstance(left.type, Int) and isinstance(right.type, Int):
        type_: ValueType = Int(min(left.type.lo, right.type.lo), max(left.type.hi, right.type.hi))
    elif left.type == right.type:
        type_ = left.type
    else:
        message = f"`then` is {print_type(left.type)}, `else` is {print_type(right.type)}"
        raise scope.fail("QG011", message, "both need one type: convert with `as`", span)
    if left.clamp is not None and right.clamp is not None and left.clamp != right.clamp:
        raise scope.fail("QG017", "two rounded quotients meet", _ROUNDING_HINT, span)
    return Value(ir.Select(condition, left.expr, right.expr, type_), left.clamp or right.clamp)


def _is_fraction(type_: ValueType) -> bool:
    """Whether values of this type have a fraction: floats and exact rationals."""
    return type_ is EXACT or (isinstance(type_, DType) and type_.is_float)


def _present(value: Result, span: Span, scope: Scope) -> Value:
    if isinstance(value, Absent):
        raise scope.fail("QG014", "an operand that is absent is used here", "only + and - drop an absent operand", span)
    return value


def _check_cast(expr: ast.Cast, scope: Scope) -> Result:
    value = check_expr(expr.operand, scope)
    if expr.target in {"int", "exact"} and expr.overflow is not None:
        message = f"`{expr.target}` has no bounds to be {expr.overflow} at"
        raise scope.fail("QG019", message, f"write `as {expr.target}`", expr.span)
    if expr.target == "int":
        return value if isinstance(value, Absent) else _to_int(value, expr, scope)
    target = EXACT if expr.target == "exact" else scope.dtypes.get(expr.target) or DTYPES.get(expr.target)
    if target is None:
        known = [*scope.dtypes, "int", "exact", "float32", "float16", "…"]
        raise scope.fail("QG015", f"`{expr.target}` is not a type", f"types here are {', '.join(known)}", expr.span)
    return value if isinstance(value, Absent) else _convert(value, target, expr, scope)


def _to_int(value: Value, expr: ast.Cast, scope: Scope) -> Value:
    match value.type:
        case Int():
            return value
        case DType() as dtype if dtype.is_integer:
            return Value(ir.Typed(Op.CONVERT, (value.expr,), Int(dtype.min, dtype.max), expr.span))
        case _:
            raise scope.fail("QG016", "a float becomes an `int` by rounding", "write `round_even(…)`", expr.span)


def _convert(value: Value, target: DType | Exact, expr: ast.Cast, scope: Scope) -> Value:
    source = value.type
    if source == target:
        return value
    if isinstance(source, DType) and source.is_integer:
        value = _to_int(value, expr, scope)
        source = value.type
    if isinstance(target, Exact) or target.is_float:
        if value.clamp is not None:
            raise scope.fail("QG017", "a rounded quotient is used as a float", _ROUNDING_HINT, expr.span)
        if expr.overflow == "wrapping":
            raise scope.fail("QG019", f"a float does not wrap to {print_type(target)}", "write `saturating`, or nothing", expr.span)
        op = Op.SATURATE if expr.overflow == "saturating" else Op.CONVERT
        return Value(ir.Typed(op, (value.expr,), target, expr.span))
    if not isinstance(source, Int):
        raise scope.fail(
            "QG016", f"{print_type(source)} becomes {target.name} by rounding", "write `round_even(…) as T saturating`", expr.span
        )
    bounds = Int(target.min, target.max)
    match expr.overflow:
        case "saturating":
            if value.clamp is not None and not (value.clamp[0] <= target.min and value.clamp[1] >= target.max):
                raise scope.fail(
                    "QG018",
                    f"`round_even` keeps ±2^18, which is not enough to saturate to {target.name}",
                    "use a result of at most 16 bits and a zero point of the same type",
                    expr.span,
                )
            return Value(ir.Typed(Op.SATURATE, (value.expr,), target, expr.span))
        case "wrapping" if target.bits == INT32.hi.bit_length() + 1:
            if value.clamp is not None:
                raise scope.fail("QG017", "a rounded quotient wraps", _ROUNDING_HINT, expr.span)
            return value if source.within(INT32) else Value(ir.Typed(Op.WRAP, (value.expr,), INT32, expr.span))
        case _ if source.within(bounds) and value.clamp is None and expr.overflow is None:
            return Value(ir.Typed(Op.CONVERT, (value.expr,), target, expr.span))
        case _:
            raise scope.fail(
                "QG019",
                f"a value in {print_type(source)} may not fit {target.name}",
                "write `saturating` (or, to int32, `wrapping`)",
                expr.span,
            )


def _check_binary(expr: ast.Binary, scope: Scope) -> Result:
    if expr.op not in _ARITHMETIC:
        raise scope.fail("QG013", f"`{expr.op}` belongs to library functions", "a formula uses + - * / and `as`", expr.span)
    lhs, rhs = check_expr(expr.lhs, scope), check_expr(expr.rhs, scope)
    op = _ARITHMETIC[expr.op]
    if isinstance(rhs, Absent) and op in {Op.ADD, Op.SUB}:
        return lhs
    if isinstance(lhs, Absent) and op is Op.ADD:
        return rhs
    left, right = _present(lhs, expr.lhs.span, scope), _present(rhs, expr.rhs.span, scope)
    if isinstance(left.type, Int) and isinstance(right.type, Int) and op is not Op.DIV:
        return _integer(op, left, right, expr.span, scope)
    if left.type != right.type or not _is_fraction(left.type):
        raise scope.fail(
            "QG011",
            f"`{expr.op}` of {print_type(left.type)} and {print_type(right.type)}",
            "both operands need the same float type, or both `int` (and not for /): convert with `as`",
            expr.span,
        )
    return Value(ir.Typed(op, (left.expr, right.expr), left.type, expr.span))


def _subtract(lhs: Value, rhs: Result, span: Span, scope: Scope) -> Value:
    value = _present(rhs, span, scope)
    if not isinstance(value.type, Int):
        raise scope.fail("QG011", "unary minus of a float", "write a product with a negative scale", span)
    return _integer(Op.SUB, lhs, value, span, scope)


def _integer(op: Op, lhs: Value, rhs: Value, span: Span, scope: Scope) -> Value:
    a, b = lhs.type, rhs.type
    if not (isinstance(a, Int) and isinstance(b, Int)):
        raise TypeError(op)
    if rhs.clamp is not None and (op is not Op.ADD or lhs.clamp is not None):
        raise scope.fail("QG017", "a rounded quotient on the right of an operator", "write it first: `round_even(…) + …`", span)
    if lhs.clamp is not None and op is Op.MUL:
        raise scope.fail("QG017", "a rounded quotient is multiplied", _ROUNDING_HINT, span)
    match op:
        case Op.ADD:
            type_ = Int(a.lo + b.lo, a.hi + b.hi)
            clamp = _shift(lhs.clamp, b.hi, b.lo) or _shift(rhs.clamp, a.hi, a.lo)
        case Op.SUB:
            type_ = Int(a.lo - b.hi, a.hi - b.lo)
            clamp = _shift(lhs.clamp, -b.lo, -b.hi)
        case _:
            corners = [p * q for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
            type_, clamp = Int(min(corners), max(corners)), None
    return Value(ir.Typed(op, (lhs.expr, rhs.expr), type_, span), clamp)


def _shift(clamp: tuple[int, int] | None, most: int, least: int) -> tuple[int, int] | None:
    return None if clamp is None else (clamp[0] + most, clamp[1] + least)
