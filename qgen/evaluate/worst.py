"""The `worst` arithmetic models: each freedom that WGSL grants is used against the program, so its results must not depend on any.

A model is one way to choose. Where WGSL allows several results, the model takes the one that its `Choice` says: always the greatest, always
the least, the one toward or away from the nearest boundary at which a rounding decides, or one at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final, assert_never, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt

from qgen.evaluate import allowed
from qgen.evaluate.choice import Choice, Direction, mix
from qgen.evaluate.model import Array, Text, Words
from qgen.evaluate.operators import BINARY, COMPARISONS
from qgen.evaluate.regroup import Regrouping, regroup
from qgen.ir import nodes as ir
from qgen.ir.program import ById, Function, Kernel
from qgen.ir.types import Scalar

Bools = npt.NDArray[np.bool_]


class Freedom(Enum):
    """What WGSL leaves open ("Floating Point Evaluation" of the specification; section 3.2 of the project's WGSL notes)."""

    QUOTIENT = "a quotient within 2.5 ULP where the divisor's magnitude is in [2^-126, 2^126], anything elsewhere"
    ROUNDING = "sums, differences, products, conversions and literals rounded to either neighbour"
    SUBNORMALS = "subnormal operands and results flushed, by arithmetic, comparisons, built-in functions and bitcasts"
    ZERO_SIGN = "any sign for every f32 that is zero"
    NAN_BITS = "any payload and sign for every NaN"
    NOT_FINITE = "any bits where an operand or a result is infinite or NaN, or a result overflows"
    NAN_ORDER = "any result for a comparison and for min, max and clamp of a NaN"
    FUSION = "a * b + c in one rounding or two, as an expression and as fma"
    DISTRIBUTION = "(a - b) * s as a * s - b * s"
    REASSOCIATION = "sums and products grouped otherwise"
    OUT_OF_BOUNDS = "any word for a load out of bounds, and any place within the buffer for a store"


ALL: Final = frozenset(Freedom)
SEEDS: Final = 16
_ROUNDS_TO_NEAREST: Final = {"strict": False, "exact": True}
_REGROUPINGS: Final = {
    Regrouping.FUSE: Freedom.FUSION,
    Regrouping.DISTRIBUTE: Freedom.DISTRIBUTION,
    Regrouping.REASSOCIATE: Freedom.REASSOCIATION,
}
_REGROUPED_BY: Final = {
    Direction.UP: frozenset[Regrouping](),
    Direction.DOWN: frozenset({Regrouping.FUSE}),
    Direction.TOWARD: frozenset({Regrouping.DISTRIBUTE, Regrouping.FUSE}),
    Direction.AWAY: frozenset({Regrouping.REASSOCIATE, Regrouping.FUSE}),
    Direction.RANDOM: frozenset(Regrouping),
    Direction.MIXED: frozenset(Regrouping),
}
_QUIET: Final = 0x7F800001
"""The bits that make any word a NaN."""


@dataclass(frozen=True, slots=True)
class Worst:
    """One way to use the `freedoms`; `quotients` chooses among quotients, `choice` among everything else.

    With `rounds_to_nearest`, sums, differences and products of normal numbers (or zeros) with a normal result are rounded half to even:
    the mode `exact` relies on that. Without `OUT_OF_BOUNDS` among the freedoms, accesses out of bounds trap.
    """

    name: str
    choice: Choice
    quotients: Choice
    rounds_to_nearest: bool
    freedoms: frozenset[Freedom]

    def regroup(self, text: Text) -> Text:
        """Return the text with operations fused, distributed and reassociated: all, some kinds, or at random, as the choice says."""
        kinds = frozenset(kind for kind, freedom in _REGROUPINGS.items() if freedom in self.freedoms) & _REGROUPED_BY[self.choice.direction]
        if not kinds:
            return text
        if isinstance(text, Function):
            return _regrouped_function(ById(text), self.choice, kinds)
        return _regrouped_kernel(ById(text), self.choice, kinds)

    def within(self, owner: str) -> Worst:
        """Return the model for one text; what is random is drawn anew there."""
        return _within(self, owner) if self.choice.direction in {Direction.RANDOM, Direction.MIXED} else self

    def adjust(self, node: ir.Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        """Return what the operation gives: on each lane one of the allowed results. Raises `TypeError` for an operation unknown here."""
        draw = self.choice.draw(node, operands)
        if ieee.dtype == np.bool_:
            return self._truth(node, operands, ieee, np.broadcast_to(draw, ieee.shape))
        results = self._results(node, operands, ieee)
        choice = self.quotients if isinstance(node, ir.Binary) and node.op == "/" else self.choice
        taken = choice.among(results, ieee, draw)
        draw = np.broadcast_to(mix(draw), ieee.shape)
        if ieee.dtype == np.float32:
            taken = self._zeros(taken, ieee, draw)
        elif isinstance(node, ir.Bitcast):
            taken = self._zeros(taken.view(np.float32), operands[0], draw).view(ieee.dtype)
        taken = self._not_numbers(taken, node, operands, draw)
        free = self._is_indeterminate(node, operands, ieee)
        return np.where(free, self.choice.bits(draw).view(ieee.dtype), taken) if free.any() else taken

    def load_outside(self, words: Words, index: Words) -> Words | None:
        """Return arbitrary words where that freedom is used, else None."""
        if Freedom.OUT_OF_BOUNDS not in self.freedoms:
            return None
        match self.choice.direction:
            case Direction.UP:
                return np.full(index.size, 0xFFFFFFFF, np.uint32)
            case Direction.DOWN:
                return np.zeros(index.size, np.uint32)
            case Direction.TOWARD | Direction.AWAY | Direction.RANDOM | Direction.MIXED:
                return mix(index ^ np.uint32(self.choice.seed + words.size & 0xFFFFFFFF))
            case _:
                assert_never(self.choice.direction)

    def store_outside(self, size: int, index: Words) -> Words | None:
        """Return where in the buffer the words land where that freedom is used, else None: its end, its start, or anywhere."""
        if Freedom.OUT_OF_BOUNDS not in self.freedoms or size == 0:
            return None
        match self.choice.direction:
            case Direction.UP:
                return np.full(index.size, size - 1, np.uint32)
            case Direction.DOWN:
                return np.zeros(index.size, np.uint32)
            case Direction.TOWARD:
                return index % np.uint32(size)
            case Direction.AWAY:
                return np.uint32(size - 1) - index % np.uint32(size)
            case Direction.RANDOM | Direction.MIXED:
                return mix(index ^ np.uint32(self.choice.seed)) % np.uint32(size)
            case _:
                assert_never(self.choice.direction)

    def _readings(self, operands: tuple[Array, ...]) -> Sequence[tuple[Array, ...]]:
        return list(allowed.readings(operands)) if Freedom.SUBNORMALS in self.freedoms else [operands]

    def _results(self, node: ir.Expr, operands: tuple[Array, ...], ieee: Array) -> list[Array]:
        """Return what is allowed where operands and results are finite."""
        match node:
            case ir.Literal():
                return self._rounded(np.array([node.value], np.float64)) if Freedom.ROUNDING in self.freedoms else [ieee]
            case ir.Unary("-"):
                results = [-value for (value,) in self._readings(operands)]
            case ir.Binary("+" | "-" | "*" | "/"):
                results = [result for reading in self._readings(operands) for result in self._arithmetic(node.op, *reading)]
            case ir.Builtin("fma"):
                results = [result for reading in self._readings(operands) for result in self._fma(*reading)]
            case ir.Builtin("min" | "max" | "clamp" as name) if Freedom.SUBNORMALS in self.freedoms:
                results = [result for reading in self._readings(operands) for result in allowed.least_or_greatest(name, reading)]
            case ir.Builtin("min" | "max" | "clamp"):
                results = [ieee]
            case ir.Builtin(name) if name in allowed.ROUNDINGS:
                results = [allowed.ROUNDINGS[name](value) for (value,) in self._readings(operands)]
            case ir.Convert(source, Scalar.F32):
                exact = allowed.widen(operands[0])
                return self._rounded(exact) if Freedom.ROUNDING in self.freedoms and source.type is not Scalar.BOOL else [ieee]
            case ir.Convert():
                return [ieee]  # toward zero, which a flushed subnormal goes to as well
            case ir.Bitcast(_, Scalar.F32):
                results = [ieee]
            case ir.Bitcast():
                return [value.view(ieee.dtype) for (value,) in self._readings(operands)]
            case _:
                raise TypeError(node)
        return self._with_flushed(results)

    def _with_flushed(self, results: list[Array]) -> list[Array]:
        if Freedom.SUBNORMALS not in self.freedoms:
            return results
        return results + [allowed.flush(result) for result in results if allowed.is_subnormal(result).any()]

    def _arithmetic(self, op: str, x: Array, y: Array) -> list[Array]:
        if op == "/":
            if Freedom.QUOTIENT in self.freedoms:
                return allowed.within_quotient(x, y)
            return [BINARY[Scalar.F32][op](x, y)]
        if Freedom.ROUNDING not in self.freedoms:
            return [BINARY[Scalar.F32][op](x, y)]
        a, b = allowed.widen(x), allowed.widen(y)
        exact = np.atleast_1d(a * b) if op == "*" else allowed.sum_to_odd(a, b if op == "+" else -b)
        return self._rounded(exact, ~(allowed.is_subnormal(x) | allowed.is_subnormal(y)) if self.rounds_to_nearest else None)

    def _rounded(self, exact: npt.NDArray[np.float64], reliable: Bools | None = None) -> list[Array]:
        down, up, *flushed = allowed.neighbours(exact, reliable)
        return [down, up, *(flushed if Freedom.SUBNORMALS in self.freedoms else ())]

    def _fma(self, x: Array, y: Array, z: Array) -> list[Array]:
        fused = allowed.sum_to_odd(allowed.widen(x) * allowed.widen(y), allowed.widen(z))
        reliable = ~(allowed.is_subnormal(x) | allowed.is_subnormal(y) | allowed.is_subnormal(z)) if self.rounds_to_nearest else None
        results = self._rounded(fused, reliable) if Freedom.ROUNDING in self.freedoms else [fused.astype(np.float32)]
        if Freedom.FUSION in self.freedoms:
            results += [result for part in self._arithmetic("*", x, y) for result in self._arithmetic("+", part, z)]
        return results

    def _zeros(self, taken: Array, ieee: Array, draw: Words) -> Array:
        """Return f32 with the signs of zeros chosen."""
        zero = taken == 0
        if Freedom.ZERO_SIGN not in self.freedoms or not zero.any():
            return taken
        negative = ~self.choice.truth(~np.broadcast_to(np.signbit(ieee), taken.shape), draw)
        return np.where(zero, np.where(negative, np.float32(-0.0), np.float32(0)), taken)

    def _not_numbers(self, taken: Array, node: ir.Expr, operands: tuple[Array, ...], draw: Words) -> Array:
        """Return the results with the bits of NaN chosen; as f32, or through a bitcast of one."""
        value = operands[0] if isinstance(node, ir.Bitcast) and node.type is not Scalar.F32 else taken
        if Freedom.NAN_BITS not in self.freedoms or value.dtype != np.float32 or not np.isnan(value).any():
            return taken
        bits = (self.choice.bits(draw) ^ np.uint32(0x002AAAAA)) | np.uint32(_QUIET)
        return np.where(np.isnan(value), bits.view(taken.dtype), taken)

    def _is_indeterminate(self, node: ir.Expr, operands: tuple[Array, ...], ieee: Array) -> Bools:
        """Return where any bits may come out."""
        free = np.zeros(ieee.shape, np.bool_)
        values = [value for value in (*operands, ieee) if value.dtype == np.float32]
        if Freedom.NOT_FINITE in self.freedoms:
            for value in values:
                free = free | ~np.isfinite(value)
        match node:
            case ir.Binary("/"):
                x, y = operands
                if Freedom.QUOTIENT in self.freedoms:
                    free = free | ~((np.abs(y) >= allowed.DIVISORS[0]) & (np.abs(y) <= allowed.DIVISORS[1]))
                if Freedom.NOT_FINITE in self.freedoms:
                    free = free | allowed.quotient_is_beyond(x, y)
            case ir.Binary("+" | "-" | "*") if Freedom.NOT_FINITE in self.freedoms:
                # What rounds to the greatest number from above overflows too.
                exact = BINARY[Scalar.F32][node.op](*(allowed.widen(value) for value in operands))
                free = free | (np.abs(exact) > allowed.GREATEST)
            case ir.Builtin("min" | "max" | "clamp") if Freedom.NAN_ORDER in self.freedoms:
                for value in operands:
                    free = free | np.isnan(value)
            case _:
                pass
        return free

    def _truth(self, node: ir.Expr, operands: tuple[Array, ...], ieee: Array, draw: Words) -> Bools:
        """Return the result of a comparison, or of a conversion to bool, which is one with zero."""
        match node:
            case ir.Binary(op) if op in COMPARISONS:
                compare = BINARY[Scalar.F32][op]
            case ir.Convert():
                compare, operands = np.not_equal, (*operands, np.zeros(1, np.float32))
            case _:
                raise TypeError(node)
        free = np.zeros(ieee.shape, np.bool_)
        for reading in self._readings(operands):
            free = free | (compare(*reading) != ieee)
        for value in operands:
            if Freedom.NAN_ORDER in self.freedoms:
                free = free | np.isnan(value)
            if Freedom.NOT_FINITE in self.freedoms:
                free = free | ~np.isfinite(value)
        return cast("Bools", np.where(free, self.choice.truth(ieee, draw), ieee) if free.any() else ieee)


def worst_models(mode: str, *, strays: bool = False) -> tuple[Worst, ...]:
    """Return the models under which kernels of a numerics mode must give the bits that they give under `ieee`.

    All up, all down, toward and away from the deciding boundary, quotients toward it and what tests them away; and 16 random ones, of which
    half draw for each lane, half for each operation of a text. The same in every run. With `strays`, a load out of bounds gives any word
    and a store lands anywhere in the buffer; else both trap, which finds them whatever the words are. Even so a store that lands on another
    invocation's word traps. Raises `KeyError` for a mode that promises nothing under them.
    """
    rounds_to_nearest = _ROUNDS_TO_NEAREST[mode]
    freedoms = ALL if strays else ALL - {Freedom.OUT_OF_BOUNDS}
    up, down, toward, away = (Choice(direction) for direction in (Direction.UP, Direction.DOWN, Direction.TOWARD, Direction.AWAY))
    named = [("up", up, up), ("down", down, down), ("toward", toward, toward), ("away", away, away), ("across", away, toward)]
    drawn = [Choice(Direction.RANDOM if seed % 2 else Direction.MIXED, seed) for seed in range(1, SEEDS + 1)]
    named += [(f"{choice.direction.value} {choice.seed}", choice, choice) for choice in drawn]
    return tuple(Worst(f"worst, {name}", choice, quotients, rounds_to_nearest, freedoms) for name, choice, quotients in named)


@lru_cache(maxsize=1 << 12)
def _within(model: Worst, owner: str) -> Worst:
    site = crc32(owner.encode())
    return replace(model, choice=replace(model.choice, site=site), quotients=replace(model.quotients, site=site))


@lru_cache(maxsize=1 << 13)
def _regrouped_function(text: ById[Function], choice: Choice, kinds: frozenset[Regrouping]) -> Function:
    return regroup(text.value, lambda kind, site: kind in kinds and choice.flag(site))


@lru_cache(maxsize=1 << 10)
def _regrouped_kernel(text: ById[Kernel], choice: Choice, kinds: frozenset[Regrouping]) -> Kernel:
    return regroup(text.value, lambda kind, site: kind in kinds and choice.flag(site))
