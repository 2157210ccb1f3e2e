"""The keys of a reduction: u32 that grow (`max_key`) or fall (`min_key`) with the number: a group's greatest key is its result."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.dtypes import DTYPES
from qgen.evaluate import evaluate_function
from qgen.numerics import library
from tests.numerics.clauses import Codes
from tests.oracle.samples import edge_codes, float32_codes

FLOAT32 = DTYPES["float32"]
NAN, GREATEST = 0x7FC00000, 0xFFFFFFFF
CODES = np.unique(np.concatenate([float32_codes(200_000), [0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF]])).astype(np.uint32)
IS_NAN = (CODES & np.uint32(0x7FFFFFFF)) > 0x7F800000
PAIRS = [("max_key", "of_max_key"), ("min_key", "of_min_key")]


def call(name: str, codes: Codes) -> NDArray[np.uint32]:
    functions = {found.name: found for found in library.closure(name, None)}
    result = evaluate_function(library.function(name, None), functions, (codes,))
    assert isinstance(result.value, np.ndarray)
    assert result.held.all()
    return result.value


def in_order(codes: Codes) -> NDArray[np.uint32]:
    """Return the codes of numbers from the least to the greatest: -0 stands before +0."""
    magnitudes = (codes & np.uint32(0x7FFFFFFF)).astype(np.int64)
    return codes[np.argsort(np.where(codes >> 31 != 0, -1 - magnitudes, magnitudes))]


def test_the_codes_have_every_edge_and_several_nan() -> None:
    assert np.isin(edge_codes(FLOAT32), CODES).all()
    assert IS_NAN.sum() > 100
    numbers = in_order(CODES[~IS_NAN])
    values = numbers.view(np.float32).astype(np.float64)
    assert (np.diff(values) >= 0).all()
    assert [hex(code) for code in numbers[values == 0]] == ["0x80000000", "0x0"]


@pytest.mark.parametrize(("key", "direction"), [("max_key", 1), ("min_key", -1)])
def test_a_key_keeps_the_order(key: str, direction: int) -> None:
    keys = call(key, in_order(CODES[~IS_NAN])).astype(np.int64) * direction
    assert (np.diff(keys) > 0).all()


@pytest.mark.parametrize("key", ["max_key", "min_key"])
def test_nan_has_the_greatest_key_and_no_number_has_the_least(key: str) -> None:
    """What a reduction begins with, 0, is less than each key: of no element at all it stays."""
    assert set(call(key, CODES[IS_NAN]).tolist()) == {GREATEST}
    keys = call(key, CODES[~IS_NAN])
    assert 0 < keys.min() <= keys.max() < GREATEST


@pytest.mark.parametrize(("key", "back"), PAIRS)
def test_a_key_gives_the_number_back(key: str, back: str) -> None:
    assert np.array_equal(call(back, call(key, CODES)), np.where(IS_NAN, NAN, CODES))


@pytest.mark.parametrize(("key", "back"), PAIRS)
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_a_reduction_does_not_matter(key: str, back: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = CODES[~IS_NAN]
    for count in (1, 2, 7, 100):
        group = rng.choice(numbers, count)
        keys = call(key, group)
        wanted = in_order(group)[-1 if key == "max_key" else 0]
        for _ in range(3):
            assert call(back, np.array([np.maximum.reduce(rng.permutation(keys))])).tolist() == [wanted]
