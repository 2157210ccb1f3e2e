"""How a model uses a freedom: which of the allowed results a lane takes, decided by the operation and its operands' bits alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, assert_never, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt

from qgen.evaluate.model import Array, Words
from qgen.ir.nodes import Expr
from qgen.ir.print import print_expr
from qgen.ir.program import ById

Bools = npt.NDArray[np.bool_]

_MANTISSAS: Final = (1, 2, 3, 7, 10)
"""The mantissa bits of the formats that f32 are rounded to: float4 and float6, float8, bfloat16, float16."""
_WHOLE: Final = 2.0**22
_GOLDEN: Final = 0x9E3779B1


class Direction(Enum):
    """Which end of what is allowed is taken.

    A free bit or a free truth value is 1, 0, or other than by IEEE 754 (`TOWARD` and `AWAY`).
    """

    UP = "up"
    DOWN = "down"
    TOWARD = "toward"
    """The end on the side of the nearest deciding boundary, that is across it where it is near."""
    AWAY = "away"
    """The other end."""
    RANDOM = "random"
    """On each lane any."""
    MIXED = "mixed"
    """At each operation of the text, one end or the other for all lanes, at random."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A direction, and for `RANDOM` and `MIXED` a seed; `site` tells one text from another."""

    direction: Direction
    seed: int = 0
    site: int = 0

    def draw(self, node: Expr, operands: tuple[Array, ...]) -> Words:
        """Return random bits, a word a lane or one for all: by the seed, the text, the operation as it is printed, and the operands."""
        drawn = np.array([(_salt(ById(node)) ^ self.site) + self.seed * _GOLDEN & 0xFFFFFFFF], np.uint32)
        for operand in operands if self.direction is Direction.RANDOM else ():
            bits = operand.view(np.uint32) if operand.dtype.itemsize == 4 else operand.astype(np.uint32)
            drawn = mix(drawn ^ bits)
        return mix(drawn)

    def among(self, results: Sequence[Array], ieee: Array, draw: Words) -> Array:
        """Return one of the allowed results on each lane; `draw` has random bits, one word a lane."""
        if len(results) == 1:
            return results[0]
        match self.direction:
            case Direction.UP:
                return _greatest(results)
            case Direction.DOWN:
                return _least(results)
            case Direction.TOWARD | Direction.AWAY:
                is_below = ieee < nearest_boundary(ieee)
                upward = is_below == (self.direction is Direction.TOWARD)
                return np.where(upward, _greatest(results), _least(results))
            case Direction.RANDOM:
                # By the values, not by their numbers: there are more results, some of them twice, where another lane has a subnormal.
                table = np.stack(results)
                taken: Array = table[np.argmax(mix(table.view(np.uint32) ^ draw), axis=0), np.arange(ieee.size)]
                return taken
            case Direction.MIXED:
                return np.where((draw & np.uint32(1)) == 1, _greatest(results), _least(results))
            case _:
                assert_never(self.direction)

    def truth(self, ieee: Bools, draw: Words) -> Bools:
        """Return a free truth value on each lane."""
        match self.direction:
            case Direction.UP:
                return np.ones_like(ieee)
            case Direction.DOWN:
                return np.zeros_like(ieee)
            case Direction.TOWARD | Direction.AWAY:
                return ~ieee
            case Direction.RANDOM | Direction.MIXED:
                return np.broadcast_to((draw & np.uint32(1)) == 1, ieee.shape)
            case _:
                assert_never(self.direction)

    def bits(self, draw: Words) -> Words:
        """Return 32 free bits on each lane: an infinity, a NaN or zero; at random anything, half of it numbers of an ordinary size."""
        match self.direction:
            case Direction.UP:
                return np.full_like(draw, 0x7F800000)
            case Direction.DOWN:
                return np.full_like(draw, 0xFF800000)
            case Direction.TOWARD:
                return np.full_like(draw, 0x7FFFFFFF)
            case Direction.AWAY:
                return np.zeros_like(draw)
            case Direction.RANDOM | Direction.MIXED:
                ordinary = (draw & np.uint32(0x80FFFFFF)) + np.uint32(0x3F000000) + ((draw & np.uint32(0x07000000)) >> np.uint32(1))
                return np.where((draw & np.uint32(0x08000000)) == 0, ordinary, mix(draw))
            case _:
                assert_never(self.direction)

    def flag(self, number: int) -> bool:
        """Return a free truth value for all lanes, drawn with `number`; without a seed, yes."""
        if self.direction not in {Direction.RANDOM, Direction.MIXED}:
            return True
        return bool(int(mix(np.array([(number ^ self.site) + self.seed * _GOLDEN & 0xFFFFFFFF], np.uint32))[0]) & 1)


def _greatest(results: Sequence[Array]) -> Array:
    return cast("Array", np.maximum.reduce(results))


def _least(results: Sequence[Array]) -> Array:
    return cast("Array", np.minimum.reduce(results))


def nearest_boundary(value: Array) -> npt.NDArray[np.float64]:
    """Return the deciding boundary that is nearest to each f32.

    Boundaries are the integers and a half, below 2^22, where rounding to an integer decides; and the midpoints of two numbers with 1, 2,
    3, 7 or 10 mantissa bits, where rounding to a narrower float does.
    """
    exact = value.astype(np.float64)
    magnitude = np.abs(exact)
    best = np.where(magnitude < _WHOLE, np.floor(magnitude) + 0.5, np.inf)
    _, exponent = np.frexp(magnitude)
    for bits in _MANTISSAS:
        step = np.ldexp(1.0, exponent - 1 - bits)
        middle = (np.floor(magnitude / step) + 0.5) * step
        best = np.where(np.abs(middle - magnitude) < np.abs(best - magnitude), middle, best)
    return np.copysign(best, exact)


def mix(words: Words) -> Words:
    """Return the words scrambled, one to one, so that every bit depends on every bit."""
    mixed: Words = (words ^ (words >> np.uint32(16))) * np.uint32(0x7FEB352D)
    mixed = mixed ^ (mixed >> np.uint32(15))
    mixed = mixed * np.uint32(0x846CA68B)
    return mixed ^ (mixed >> np.uint32(16))


@lru_cache(maxsize=1 << 16)
def _salt(node: ById[Expr]) -> int:
    return crc32(print_expr(node.value).encode())
