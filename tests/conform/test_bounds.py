"""The bounds of f32 operations, from exact integers, against NumPy and against the definition of the ULP."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from qgen.conform.bounds import MAX, MIN, find_bounds, to_value, to_word
from qgen.conform.operands import make_operands


def word(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


ONE, THREE, HUGE, TINY = word(1.0), word(3.0), 0x7F7FFFFF, 0x00800000


def test_words_and_values_go_together() -> None:
    for number in (1.0, -1.5, 2.0**-126, float(MAX), -1.25 * 2.0**-60):
        assert to_value(word(number)) == Fraction(number)
    assert to_value(0) == to_value(1 << 31) == 0
    assert [to_value(each) for each in (1, 0x7F800000, 0xFFC00000, 0x807FFFFF)] == [None] * 4
    assert to_word(-(1 << 23), 1) == word(-2.0)


@pytest.mark.parametrize(("significand", "exponent"), [(1 << 24, 0), (1, 0), (1 << 23, 128), (1 << 23, -127)])
def test_only_normal_numbers_have_words(significand: int, exponent: int) -> None:
    with pytest.raises(ValueError, match="no normal f32"):
        to_word(significand, exponent)


@pytest.mark.parametrize(
    ("name", "a", "b", "bounds"),
    [
        ("sum", ONE, word(2.0**-24), (ONE, ONE)),
        ("sum", ONE + 1, word(2.0**-24), (ONE + 2, ONE + 2)),
        ("sum", ONE, word(-1.0), (0, 0)),
        ("sum", HUGE, HUGE, None),
        ("sum", HUGE, word(2.0**102), None),
        ("difference", TINY + 1, TINY, None),
        ("product", HUGE, word(-1.0), (HUGE | 1 << 31, HUGE | 1 << 31)),
        ("product", TINY, word(0.5), None),
        ("product", TINY + 1, word(1.0 - 2.0**-24), (TINY, TINY)),
        ("product", TINY, word(1.0 - 2.0**-24), None),
        ("product", 1, ONE, None),
        ("product", 0x7FC00000, ONE, None),
        ("quotient", ONE, THREE, (0x3EAAAAA9, 0x3EAAAAAD)),
        ("quotient", ONE, THREE | 1 << 31, (0xBEAAAAAD, 0xBEAAAAA9)),
        ("quotient", ONE, ONE, (ONE - 2, ONE + 1)),
        ("quotient", 0, ONE, None),
        ("quotient", ONE, 0, None),
        ("quotient", HUGE, word(2.0**127), None),
        ("quotient", TINY, ONE, None),
    ],
)
def test_bounds(name: str, a: int, b: int, bounds: tuple[int, int] | None) -> None:
    assert find_bounds(name, a, b) == bounds


def test_ieee_results_are_the_only_right_ones() -> None:
    pairs = make_operands()[::7]
    a, b = (np.array(words, np.uint32).view(np.float32) for words in zip(*pairs, strict=True))
    with np.errstate(all="ignore"):
        results = {"sum": a + b, "difference": a - b, "product": a * b}
    for name, result in results.items():
        for pair, value in zip(pairs, result, strict=True):
            bounds = find_bounds(name, *pair)
            if value == 0 and bounds:
                assert bounds == (0, 0)
            elif bounds:
                assert bounds == (int(value.view(np.uint32)),) * 2
            else:
                assert not MIN < abs(float(value)) < MAX


def test_quotients_within_the_bounds_are_those_within_the_ulps() -> None:
    for a, b in make_operands()[::31]:
        bounds, x, y = find_bounds("quotient", a, b), to_value(a), to_value(b)
        if bounds is None or x is None or y is None:
            continue
        exact = x / y
        below = next(power for power in (Fraction(2) ** n for n in range(128, -128, -1)) if power < abs(exact))
        allowed = Fraction(5, 2) * below / 2**23
        low, high = sorted(word & 0x7FFFFFFF for word in bounds)
        for candidate in range(low - 2, high + 3):
            value = to_value(candidate)
            assert value is not None
            assert (abs(value - abs(exact)) <= allowed) == (low <= candidate <= high)
