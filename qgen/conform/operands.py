"""Operands at which a wrong rounding shows: results on and beside ties, cancellation, and exponents at both ends of the normal numbers.

The same in every run and on every machine. All of them go through every operation; a family is made for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Final

from qgen.conform.bounds import BITS, GREATEST, LEAST, to_word

Pair = tuple[int, int]

_SEED: Final = 28
_TOP: Final = 1 << (BITS - 1)
_FULL: Final = 1 << BITS
_CORNERS: Final = (_TOP, _TOP + 1, _TOP + (_TOP >> 1), 0xAAAAAB, 0xB504F3, 0xB504F4, _FULL - 2, _FULL - 1)
"""Significands: 1, 3/2 and the greatest with a neighbour, a third, and the root of two from both sides."""
_EXPONENTS: Final = (LEAST, LEAST + 1, -64, -24, -1, 0, 1, 23, 24, 63, GREATEST - 1, GREATEST)
_EACH: Final = 12
"""Pairs of each kind of sum."""
_MANY: Final = 1500
"""Pairs of each kind of product and quotient."""


def make_operands() -> tuple[Pair, ...]:
    """Return pairs of words, normal numbers and zeros, each once."""
    rng = Random(_SEED)  # noqa: S311 - reproducible operands are not cryptography
    families = (_corners(rng), _sums(rng), _cancellations(rng), _products(rng), _beside_product_ties(rng), _ends(rng), _quotients(rng))
    return tuple(dict.fromkeys(pair for family in families for pair in family))


def _significand(rng: Random) -> int:
    return _TOP | rng.getrandbits(BITS - 1)


def _sign(rng: Random) -> int:
    return 1 - 2 * rng.getrandbits(1)


def _pair(rng: Random, a: tuple[int, int], b: tuple[int, int]) -> Pair:
    """Return two significands with their exponents as words, each with any sign, in either order."""
    words = (to_word(_sign(rng) * a[0], a[1]), to_word(_sign(rng) * b[0], b[1]))
    return words if rng.getrandbits(1) else words[::-1]


def _corners(rng: Random) -> Iterator[Pair]:
    numbers = list(product(_CORNERS, _EXPONENTS))
    for a, b in product(numbers, numbers):
        yield to_word(_sign(rng) * a[0], a[1]), to_word(_sign(rng) * b[0], b[1])
    for (significand, exponent), zero in product(numbers, (0, 1 << 31)):
        yield to_word(significand, exponent), zero
        yield zero, to_word(significand, exponent)


def _sums(rng: Random) -> Iterator[Pair]:
    """Yield sums whose bits below the last one are a half, or one unit beside it, the second operand `gap` binary places lower."""
    for gap, beside, _ in product(range(1, BITS + 2), (-1, 0, 1), range(_EACH)):
        half = (1 << (gap - 1)) + beside
        if gap >= BITS:
            low = half if half >> BITS == 0 and half >= _TOP else _significand(rng)
        else:
            low = (_significand(rng) >> gap << gap | _TOP) + half
        exponent = rng.randint(LEAST + gap, GREATEST - 1)
        if low >> BITS == 0:
            yield _pair(rng, (_significand(rng), exponent), (low, exponent - gap))


def _cancellations(rng: Random) -> Iterator[Pair]:
    """Yield numbers a few units apart, and of neighbouring exponents."""
    for _ in range(_MANY):
        significand, exponent = _significand(rng), rng.randint(LEAST, GREATEST - 1)
        near = min(max(significand + rng.randint(-3, 3), _TOP), _FULL - 1)
        yield _pair(rng, (significand, exponent), (near, exponent + rng.getrandbits(1)))


def _exponents_of_product(rng: Random) -> tuple[int, int]:
    """Return two exponents whose sum is that of a normal number, or next to it."""
    total = rng.choice((rng.randint(LEAST, GREATEST), rng.randint(LEAST - 1, LEAST + 1), rng.randint(GREATEST - 1, GREATEST)))
    first = rng.randint(max(LEAST, total - GREATEST), min(GREATEST, total - LEAST))
    return first, total - first


def _products(rng: Random) -> Iterator[Pair]:
    """Yield products of 25 significant bits, the last one set: exact ties. An odd a of p bits times an odd b of q has p + q or one less."""
    found = 0
    while found < _MANY:
        bits = rng.randint(2, BITS)
        others = BITS + 1 + rng.getrandbits(1) - bits
        if not 1 <= others <= BITS:
            continue
        a, b = (rng.getrandbits(count) | 1 | 1 << (count - 1) for count in (bits, others))
        if (a * b).bit_length() == BITS + 1:
            found += 1
            first, second = _exponents_of_product(rng)
            yield _pair(rng, (a << (BITS - bits), first), (b << (BITS - others), second))


def _beside_product_ties(rng: Random) -> Iterator[Pair]:
    """Yield products of 47 or 48 bits that end one unit beside a half, or as near to a number: b is (half + unit) / a modulo 2^24."""
    found = 0
    while found < 2 * _MANY:
        a = _significand(rng) | 1
        low = BITS - rng.getrandbits(1)  # bits that rounding drops
        remainder = rng.choice((1 << (low - 1), 0)) + rng.choice((-1, 1))
        b = remainder * pow(a, -1, 1 << low) % (1 << low)
        b += (1 << low) * rng.getrandbits(BITS - low) if low < BITS else 0
        if b >= _TOP and (a * b).bit_length() - BITS == low:
            found += 1
            first, second = _exponents_of_product(rng)
            yield _pair(rng, (a, first), (b, second))


def _ends(rng: Random) -> Iterator[Pair]:
    """Yield sums and differences with results at the least and at the greatest normal numbers."""
    for _ in range(_MANY):
        low, high = LEAST + rng.randint(0, 3), GREATEST - rng.randint(0, 3)
        yield _pair(rng, (_significand(rng), low), (_significand(rng), LEAST + rng.randint(0, 3)))
        yield _pair(rng, (_significand(rng), high), (_significand(rng), GREATEST - rng.randint(0, 26)))


def _quotients(rng: Random) -> Iterator[Pair]:
    """Yield dividends and divisors of any size, half of them with a quotient as near to the middle of two numbers as there is one."""
    for number in range(2 * _MANY):
        divisor = _significand(rng)
        dividend = _significand(rng)
        if number % 2:
            middle = 2 * _significand(rng) + 1
            dividend = middle * divisor >> (middle * divisor).bit_length() - BITS
        exponent = rng.choice((LEAST, LEAST + 1, GREATEST - 2, GREATEST - 1, rng.randint(LEAST, GREATEST)))
        total = rng.choice((rng.randint(LEAST, GREATEST), LEAST + rng.getrandbits(1), GREATEST - rng.getrandbits(1)))
        if LEAST <= total + exponent <= GREATEST:
            yield to_word(_sign(rng) * dividend, total + exponent), to_word(_sign(rng) * divisor, exponent)
