"""Exact sums, products and quotients of arrays, held in float64.

Numbers. Every value of every dtype of the table is a float64 exactly, subnormals, infinities, NaN and the sign of zero included: the
widest are float32 (24 bits, 2^-149 to 2^128) and int32 (31 bits). What an operation returns is its exact result *rounded to odd* to the 53
bits of float64: the result itself where it fits, otherwise, of its two neighbours in float64, the one whose last bit is 1.

Why that is as good as the exact result (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE ToC 2008). A number that
needs at most 52 bits has a last bit of 0 in float64, so an inexact result is never moved onto such a number, nor across it. The values of
every dtype, the midpoints between two neighbours of them (25 bits), the halves of integers below 2^51 and the ends of every integer type
are such numbers. Rounding to nearest, half to even, into a dtype, rounding to an integer, and clamping to an integer type see only on which
side of these numbers a value lies, or that it equals one; so they give what the exact result would give.

Range. Products of two float32 lie above 2^-298, quotients above 2^-278 and below 2^278: nothing here meets float64's own limits (2^-1022,
2^1024).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_SPLITTER: Final = float((1 << 27) + 1)


def add(a: Values, b: Values) -> Values:
    """Return a + b, rounded to odd; infinities and NaN as IEEE 754."""
    total = np.add(a, b)
    # Knuth's TwoSum: total + error == a + b exactly, in whichever order the magnitudes are.
    b_part = np.subtract(total, a)
    error = np.add(np.subtract(a, np.subtract(total, b_part)), np.subtract(b, b_part))
    return _to_odd(total, error)


def sub(a: Values, b: Values) -> Values:
    """Return a - b, rounded to odd."""
    return add(a, np.negative(b))


def mul(a: Values, b: Values) -> Values:
    """Return a * b, rounded to odd."""
    product = np.multiply(a, b)
    return _to_odd(product, _product_error(a, b, product))


def div(a: Values, b: Values) -> Values:
    """Return a / b, rounded to odd; by zero as IEEE 754: infinity with the sign of both, NaN for 0 / 0."""
    quotient = np.divide(a, b)
    # a - quotient * b == (a - product) - error. The first difference is exact, for product is within two units in the last place of a
    # (Sterbenz). The second keeps its sign under rounding, and that times the sign of b is the sign of the quotient's error.
    product = np.multiply(quotient, b)
    remainder = np.subtract(np.subtract(a, product), _product_error(quotient, b, product))
    return _to_odd(quotient, np.multiply(np.sign(remainder), np.sign(b)))


def _product_error(a: Values, b: Values, product: Values) -> Values:
    """Return a * b - product exactly (Dekker, with Veltkamp's halves of 26 bits)."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = np.subtract(np.multiply(a_high, b_high), product)
    error = np.add(error, np.multiply(a_high, b_low))
    error = np.add(error, np.multiply(a_low, b_high))
    return np.add(error, np.multiply(a_low, b_low))


def _halves(a: Values) -> tuple[Values, Values]:
    """Return high and low with high + low == a, each of at most 26 bits."""
    scaled = np.multiply(a, _SPLITTER)
    high = np.subtract(scaled, np.subtract(scaled, a))
    return high, np.subtract(a, high)


def _to_odd(nearest: Values, error: Values) -> Values:
    """Return the exact `nearest + error` rounded to odd, where `nearest` is that sum rounded to nearest.

    Where `nearest` is infinite or NaN it is the result, and `error`, which is NaN then, says nothing.
    """
    nearest = np.asarray(nearest, dtype=np.float64)
    is_even = (nearest.view(np.uint64) & np.uint64(1)) == 0
    is_inexact = np.isfinite(nearest) & np.isfinite(error) & (np.asarray(error) != 0)
    neighbour = np.nextafter(nearest, np.copysign(np.inf, error))
    return np.where(is_even & is_inexact, neighbour, nearest)
