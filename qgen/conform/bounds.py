"""What an f32 operation may give where the mode `exact` relies on it, from exact integers.

`+ - *` of normal numbers, or zeros, with a normal result: the exact result rounded half to even. `/`: within 2.5 ULP, as the WGSL
specification states it for divisors from 2^-126 to 2^126. Everything else is left open.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

BITS: Final = 24
"""Of a significand, the leading one included."""
LEAST: Final = -126
GREATEST: Final = 127
"""Exponents of the normal numbers."""
MAX: Final = Fraction((1 << BITS) - 1) * Fraction(2) ** (GREATEST - BITS + 1)
MIN: Final = Fraction(2) ** LEAST

ULPS: Final = Fraction(5, 2)
DIVISORS: Final = (Fraction(2) ** -126, Fraction(2) ** 126)

OPERATIONS: Final = {"sum": "+", "difference": "-", "product": "*", "quotient": "/"}
"""The WGSL operator of each result."""

_SIGN: Final = 1 << 31
_BIAS: Final = 127

_Rounding = Callable[[int, int], int]
Bounds = tuple[int, int]
"""The least and the greatest f32 that is right, as words."""


def to_word(significand: int, exponent: int) -> int:
    """Return the word of the normal f32 with the (signed) significand of 24 bits and the exponent of its leading bit."""
    magnitude = abs(significand)
    if magnitude >> (BITS - 1) != 1 or not LEAST <= exponent <= GREATEST:
        raise ValueError(f"{significand} * 2^{exponent} is no normal f32")
    return (_SIGN if significand < 0 else 0) | (exponent + _BIAS) << (BITS - 1) | magnitude & ((1 << (BITS - 1)) - 1)


def to_value(word: int) -> Fraction | None:
    """Return the value of a normal f32 or a zero; None for any other word."""
    exponent, mantissa = word >> (BITS - 1) & 0xFF, word & ((1 << (BITS - 1)) - 1)
    if exponent in {0, 0xFF}:
        return Fraction(0) if word & ~_SIGN == 0 else None
    value = Fraction(mantissa | 1 << (BITS - 1)) * Fraction(2) ** (exponent - _BIAS - BITS + 1)
    return -value if word & _SIGN else value


def find_bounds(name: str, a: int, b: int) -> Bounds | None:
    """Return what the operation `name` of `OPERATIONS` may give for two words, None where `exact` relies on nothing."""
    x, y = to_value(a), to_value(b)
    if x is None or y is None:
        return None
    match name:
        case "sum":
            return _nearest(x + y)
        case "difference":
            return _nearest(x - y)
        case "product":
            return _nearest(x * y)
        case _:
            return _within_quotient(x, y)


def _nearest(exact: Fraction) -> Bounds | None:
    if exact == 0:
        return 0, 0
    magnitude = abs(exact)
    if not MIN <= magnitude <= MAX:
        return None
    word = _on_grid(magnitude, _round_half_even)
    word |= _SIGN if exact < 0 else 0
    return word, word


def _within_quotient(x: Fraction, y: Fraction) -> Bounds | None:
    if x == 0 or not DIVISORS[0] <= abs(y) <= DIVISORS[1]:
        return None
    exact = x / y
    magnitude = abs(exact)
    exponent = _exponent(magnitude)
    # The distance to the number below, as the specification defines the ULP of what is itself a number.
    ulp = Fraction(2) ** (exponent - BITS + (0 if magnitude == Fraction(2) ** exponent else 1))
    least, greatest = magnitude - ULPS * ulp, magnitude + ULPS * ulp
    if least < MIN or greatest > MAX:
        return None
    low, high = _on_grid(least, _round_up), _on_grid(greatest, _round_down)
    return (high | _SIGN, low | _SIGN) if exact < 0 else (low, high)


def _exponent(magnitude: Fraction) -> int:
    """Return the exponent of the leading bit."""
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    return guess if Fraction(2) ** guess <= magnitude else guess - 1


def _on_grid(magnitude: Fraction, rounding: _Rounding) -> int:
    """Return the word of what `rounding` makes of a magnitude between `MIN` and `MAX`."""
    exponent = _exponent(magnitude)
    scaled = magnitude / Fraction(2) ** (exponent - BITS + 1)
    significand = rounding(scaled.numerator, scaled.denominator)
    return to_word(significand >> 1, exponent + 1) if significand >> BITS else to_word(significand, exponent)


def _round_half_even(numerator: int, denominator: int) -> int:
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole & 1))


def _round_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _round_down(numerator: int, denominator: int) -> int:
    return numerator // denominator
