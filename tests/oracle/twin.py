"""The oracle once more, one element at a time, in Python's fractions: slow, and sharing no method with the vectorised one.

A number is a `Fraction` where it is finite and not zero, else one of the floats 0.0, -0.0, infinities, NaN. Formats are the sorted list of
their values, taken from numpy and ml_dtypes: rounding is the nearest of two neighbours in the list, of two equally near the one with the
even code.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import ml_dtypes
import numpy as np

from qgen.dtypes import DType, Exact
from qgen.ir.nodes import Expr, Let, Literal, Name, Op, Read, Stmt, Typed, Write
from qgen.ir.types import Int, Type

Number = Fraction | float


class Table(NamedTuple):
    """The finite values of a format from 0 up, by code, with one more: the value after the greatest if there were one."""

    values: tuple[Fraction, ...]
    infinity: float | None
    nan: float | None


@cache
def table(dtype: DType) -> Table:
    bits = dtype.bits - (0 if dtype.name == "float8e8m0" else 1)
    storage = np.dtype(getattr(np, dtype.numpy, None) or getattr(ml_dtypes, dtype.numpy))
    with np.errstate(invalid="ignore"):  # signalling NaN
        floats = np.arange(1 << dtype.bits).astype(f"u{storage.itemsize}").view(storage).astype(np.float64).tolist()
    finite = [Fraction(value) for value in floats[: 1 << bits] if math.isfinite(value)]
    infinity = math.inf if math.inf in floats else None
    return Table((*finite, 2 * finite[-1] - finite[-2]), infinity, math.nan if any(map(math.isnan, floats)) else None)


def from_float(value: float) -> Number:
    return Fraction(value) if math.isfinite(value) and value != 0 else value


def round_into(number: Number, dtype: DType, *, saturate: bool = False) -> Number:
    """Round into a float dtype; the value after the greatest overflows."""
    negative = _is_negative(number)
    if isinstance(number, float) and math.isnan(number):
        return _no_nan(dtype) if _nan(dtype) is None else math.nan
    magnitude = _magnitude(number)
    greatest, infinity = _greatest(dtype), _infinity(dtype)
    rounded: Number = _round_magnitude(magnitude, dtype) if isinstance(magnitude, Fraction) else magnitude
    if rounded > greatest:
        if saturate or (infinity is None and _nan(dtype) is None):
            rounded = greatest
        elif infinity is None:
            return math.nan
        else:
            rounded = math.inf
    if rounded == 0:
        return -0.0 if negative and "fnuz" not in dtype.name else 0.0
    return -rounded if negative else rounded


def evaluate(body: tuple[Stmt, ...], operands: Mapping[str, Number]) -> dict[str, Number]:
    names: dict[str, Number] = {}
    written: dict[str, Number] = {}
    for statement in body:
        match statement:
            case Let(name, value):
                names[name] = _value(value, names, operands)
            case Write(operand, value):
                written[operand] = _value(value, names, operands)
            case _:
                raise TypeError(statement)
    return written


def _value(expr: Expr, names: Mapping[str, Number], operands: Mapping[str, Number]) -> Number:
    match expr:
        case Literal(value):
            return from_float(float(value))
        case Name(name):
            return names[name]
        case Read(operand):
            return operands[operand]
        case Typed(op, args, type_):
            return operate(op, [_value(arg, names, operands) for arg in args], type_)
        case _:
            raise TypeError(expr)


def operate(op: Op, args: list[Number], type_: Type) -> Number:
    """Return one operation, rounded once into its type."""
    if op is Op.ROUND_EVEN:
        return -math.inf if isinstance(args[0], float) and math.isnan(args[0]) else _integer(args[0])
    if op is Op.SATURATE:
        if isinstance(type_, DType) and type_.is_float:
            return round_into(args[0], type_, saturate=True)
        low, high = _ends(type_)
        if isinstance(args[0], float) and math.isnan(args[0]):
            return from_float(low)
        return from_float(float(max(low, min(high, _integer(args[0])))))
    if op is Op.WRAP:
        low, high = _ends(type_)
        return from_float(float((int(args[0]) - low) % (high - low + 1) + low))
    result = _exact(op, args)
    if isinstance(type_, Exact):
        return result
    return round_into(result, type_) if isinstance(type_, DType) and type_.is_float else _integer(result)


def _exact(op: Op, args: list[Number]) -> Number:
    if op is Op.CONVERT:
        return args[0]
    if op is Op.ABS:
        return _magnitude(args[0])
    if op is Op.NEG:
        return -args[0]
    a, b = args
    if op in (Op.MIN, Op.MAX):
        return _extreme(a, b, least=op is Op.MIN)
    if op is Op.SUB:
        op, b = Op.ADD, -b
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        result = a + b if op is Op.ADD else a * b if op is Op.MUL else a / b
        return result if result != 0 else 0.0
    if op is Op.DIV:
        return _special_quotient(a, b)
    # One of them is zero, infinite or NaN. Zero, and any other number's sign, is all that matters, but for the sum with a zero.
    if op is Op.ADD:
        return a if b == 0 and a != 0 else b if a == 0 and b != 0 else _as_float(a) + _as_float(b)
    return _as_float(a) * _as_float(b)


def _special_quotient(a: Number, b: Number) -> Number:
    top, bottom = _as_float(a), _as_float(b)
    if bottom != 0:
        return top / bottom
    if top == 0 or math.isnan(top):
        return math.nan
    return -math.inf if _is_negative(a) != _is_negative(b) else math.inf


def _extreme(a: Number, b: Number, *, least: bool) -> Number:
    if any(isinstance(value, float) and math.isnan(value) for value in (a, b)):
        return math.nan
    a_first = (a, not _is_negative(a)) <= (b, not _is_negative(b))
    return a if a_first == least else b


def _as_float(number: Number) -> float:
    """Return a float of the same sign and kind: 1.0 stands for every finite number that is not zero."""
    return number if isinstance(number, float) else 1.0 if number > 0 else -1.0


def _magnitude(number: Number) -> Number:
    return -number if _is_negative(number) else number


def _is_negative(number: Number) -> bool:
    return number < 0 if isinstance(number, Fraction) else math.copysign(1.0, number) < 0


def _integer(number: Number) -> Number:
    """Return the nearest integer, half to even; there is one zero."""
    if isinstance(number, float):
        return number or 0.0
    rounded = round(number)
    return Fraction(rounded) if rounded else 0.0


def _ends(type_: Type) -> tuple[int, int]:
    match type_:
        case Int(low, high):
            return low, high
        case DType():
            return type_.min, type_.max
        case _:
            raise TypeError(type_)


_FLOAT32_GREATEST = Fraction((1 << 24) - 1) * Fraction(2) ** 104


def _greatest(dtype: DType) -> Fraction:
    return _FLOAT32_GREATEST if dtype.name == "float32" else table(dtype).values[-2]


def _infinity(dtype: DType) -> float | None:
    return math.inf if dtype.name == "float32" else table(dtype).infinity


def _nan(dtype: DType) -> float | None:
    return math.nan if dtype.name == "float32" else table(dtype).nan


def _no_nan(dtype: DType) -> Number:
    return table(dtype).values[-2]


def _round_magnitude(magnitude: Fraction, dtype: DType) -> Fraction:
    if dtype.name == "float32":
        return _round_float32(magnitude)
    values = table(dtype).values
    if magnitude >= values[-1]:
        return values[-1]
    above = bisect.bisect_left(values, magnitude)
    if values[above] == magnitude:
        return magnitude
    middle = (values[above - 1] + values[above]) / 2
    if magnitude == middle:
        return values[above if above % 2 == 0 else above - 1]
    return values[above] if magnitude > middle else values[above - 1]


def _round_float32(magnitude: Fraction) -> Fraction:
    """Round to 24 bits, or to a multiple of 2^-149 below 2^-126; Python's `round` of a fraction is exact and goes half to even."""
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    quantum = Fraction(2) ** max(exponent - 23, -149)
    return round(magnitude / quantum) * quantum
