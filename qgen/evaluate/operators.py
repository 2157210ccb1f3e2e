"""WGSL's operators and built-in functions on NumPy arrays, integers modulo 2^32 and f32 as IEEE 754 has it.

Shifts and integer division are not here: they can trap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from qgen.evaluate.model import Array
from qgen.ir.types import Scalar

BOOL, U32, I32, F32 = Scalar.BOOL, Scalar.U32, Scalar.I32, Scalar.F32
Operation = Callable[..., Array]

COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_ORDER: Final[Mapping[str, Operation]] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_EQUALITY: Final[Mapping[str, Operation]] = {"==": np.equal, "!=": np.not_equal}
_RING: Final[Mapping[str, Operation]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_BITS: Final[Mapping[str, Operation]] = {"&": np.bitwise_and, "|": np.bitwise_or}
_INTEGER: Final[Mapping[str, Operation]] = {**_RING, **_BITS, "^": np.bitwise_xor, **_ORDER, **_EQUALITY}

BINARY: Final[Mapping[Scalar, Mapping[str, Operation]]] = {
    BOOL: {"&&": np.logical_and, "||": np.logical_or, **_BITS, **_EQUALITY},
    U32: _INTEGER,
    I32: _INTEGER,
    F32: {**_RING, "/": np.divide, **_ORDER, **_EQUALITY},
}
"""By the type of the operands; f32 has no `%`, which WGSL defines by a formula."""

UNARY: Final[Mapping[Scalar, Mapping[str, Operation]]] = {
    BOOL: {"!": np.logical_not},
    U32: {"~": np.invert},
    I32: {"~": np.invert, "-": np.negative},
    F32: {"-": np.negative},
}


def divide_integers(op: str, lhs: Array, rhs: Array) -> Array:
    """Return the quotient (`/`) rounded toward zero, or the remainder (`%`) with the sign of `lhs`; the divisors are not zero."""
    if lhs.dtype == np.uint32:
        return np.floor_divide(lhs, rhs) if op == "/" else np.remainder(lhs, rhs)
    a, b = lhs.astype(np.int64), rhs.astype(np.int64)
    magnitude = np.abs(a) // np.abs(b)
    quotient = np.where((a < 0) == (b < 0), magnitude, -magnitude)
    return (quotient if op == "/" else a - b * quotient).astype(np.int32)


def _clamp(value: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(value, low), high)


def _unsigned(value: Array) -> Array:
    return value.view(np.uint32)


def _smear(bits: Array) -> Array:
    """Return the bits with every bit below the first one set."""
    for shift in (1, 2, 4, 8, 16):
        bits = bits | (bits >> np.uint32(shift))
    return bits


def _count(bits: Array) -> Array:
    return np.bitwise_count(bits).astype(np.uint32)


def _count_ones(value: Array) -> Array:
    return _count(_unsigned(value)).view(value.dtype)


def _count_leading_zeros(value: Array) -> Array:
    return (np.uint32(32) - _count(_smear(_unsigned(value)))).view(value.dtype)


def _count_trailing_zeros(value: Array) -> Array:
    bits = _unsigned(value)
    return _count(~bits & (bits - np.uint32(1))).view(value.dtype)


def _first_leading_bit(value: Array) -> Array:
    """Return the position of the first bit unlike the sign (i32), or of the first one; all ones where there is none."""
    bits = _unsigned(np.where(value < 0, ~value, value))
    return (_count(_smear(bits)) - np.uint32(1)).view(value.dtype)


def _fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c rounded once: the sum in float64 to odd, from which rounding to 24 bits is right."""
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = np.atleast_1d(product + addend)
    rest = total - product
    error = (product - (total - rest)) + (addend - rest)
    bits = total.view(np.int64)
    inexact_even = np.isfinite(total) & np.isfinite(error) & (error != 0) & ((bits & 1) == 0)
    return (bits + np.where(inexact_even, np.where((error > 0) == (total > 0), 1, -1), 0)).view(np.float64).astype(np.float32)


_EITHER: Final[Mapping[str, tuple[int, Operation]]] = {"min": (2, np.minimum), "max": (2, np.maximum), "clamp": (3, _clamp)}
_INTEGER_BUILTINS: Final[Mapping[str, tuple[int, Operation]]] = {
    **_EITHER,
    "abs": (1, np.abs),
    "countOneBits": (1, _count_ones),
    "countLeadingZeros": (1, _count_leading_zeros),
    "countTrailingZeros": (1, _count_trailing_zeros),
    "firstLeadingBit": (1, _first_leading_bit),
}
_FLOAT_BUILTINS: Final[Mapping[str, tuple[int, Operation]]] = {
    **_EITHER,
    "abs": (1, np.abs),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "trunc": (1, np.trunc),
    "round": (1, np.rint),
    "fma": (3, _fused_multiply_add),
}
BUILTINS: Final[Mapping[Scalar, Mapping[str, tuple[int, Operation]]]] = {
    BOOL: {},
    U32: _INTEGER_BUILTINS,
    I32: _INTEGER_BUILTINS,
    F32: _FLOAT_BUILTINS,
}
"""The count of arguments and the operation, by the type of arguments and result."""


def _to_integer(kind: type[np.generic], low: float, high: float) -> Operation:
    def convert(value: Array) -> Array:
        number: Array = np.where(np.isnan(value), np.float32(0), value)
        return np.minimum(np.maximum(number, np.float32(low)), np.float32(high)).astype(kind)

    return convert


def _to_bool(value: Array) -> Array:
    return np.not_equal(value, 0)


def _cast(kind: type[np.generic]) -> Operation:
    def convert(value: Array) -> Array:
        return value.astype(kind, copy=False)

    return convert


def converter(source: Scalar, target: Scalar) -> Operation:
    """Return the value conversion: modulo 2^32 between integers, f32 to an integer toward zero within what both types hold."""
    match target:
        case Scalar.BOOL:
            return _to_bool
        case Scalar.U32:
            return _to_integer(np.uint32, 0, 4294967040) if source is F32 else _cast(np.uint32)
        case Scalar.I32:
            return _to_integer(np.int32, -2147483648, 2147483520) if source is F32 else _cast(np.int32)
        case Scalar.F32:
            return _cast(np.float32)
