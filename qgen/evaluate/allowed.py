"""What WGSL allows an f32 operation to give: for operands in lockstep, arrays of results of which every lane may take any.

Section "Floating Point Evaluation" of the WGSL specification: rounding to either neighbour, division within 2.5 ULP, subnormal operands and
results flushed or not. Signs of zeros, and what is infinite or NaN, are left to the caller, who may overwrite those lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qgen.evaluate.model import Array

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LEAST_NORMAL: Final = np.float32(2.0**-126)
GREATEST: Final = 2.0**128 - 2.0**104
DIVISORS: Final = (2.0**-126, 2.0**126)
"""The magnitudes of divisors for which the accuracy of a quotient is stated."""
QUOTIENT_ULPS: Final = 2.5
_LEAST_ULP: Final = -149


def is_subnormal(value: Array) -> Bools:
    """Return where an f32 is subnormal."""
    magnitude = np.abs(value)
    return (magnitude < LEAST_NORMAL) & (magnitude > 0)


def flush(value: Array) -> Array:
    """Return the f32 with subnormals replaced by zeros."""
    return np.where(is_subnormal(value), np.float32(0), value)


def readings(operands: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    """Yield the operands with each choice of which of them are flushed; those without a subnormal have one reading."""
    return product(*((value, flush(value)) if value.dtype == np.float32 and is_subnormal(value).any() else (value,) for value in operands))


def sum_to_odd(a: Any, b: Any) -> F64:  # noqa: ANN401 - NumPy types promotion by operators alone
    """Return a + b in float64 rounded to odd, from which rounding to 24 bits, either way, is that of the exact sum."""
    total = np.atleast_1d(a + b)
    rest = total - a
    error = (a - (total - rest)) + (b - rest)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & np.isfinite(error) & (error != 0) & ((bits & 1) == 0)
    return (bits + np.where(inexact, np.where((error > 0) == (total > 0), 1, -1), 0)).view(np.float64)


def widen(value: Array) -> F64:
    """Return the value in float64, exactly."""
    return value.astype(np.float64)


def neighbours(exact: F64, reliable: Bools | None = None) -> list[Array]:
    """Return the f32 below and above what is not representable, else it itself; the nearest, half to even, where that is `reliable`.

    With a third result, zero, for what is subnormal before it is rounded, where there is such a lane.
    """
    nearest = exact.astype(np.float32)
    down = np.where(nearest <= exact, nearest, np.nextafter(nearest, np.float32(-np.inf)))
    up = np.where(nearest >= exact, nearest, np.nextafter(nearest, np.float32(np.inf)))
    tiny = (np.abs(exact) < LEAST_NORMAL) & (exact != 0)
    if reliable is not None:
        kept = reliable & ~tiny
        down, up = np.where(kept, nearest, down), np.where(kept, nearest, up)
    return [down, up, *([np.where(tiny, np.float32(0), down)] if tiny.any() else [])]


def within_quotient(x: Array, y: Array) -> list[Array]:
    """Return f32 within 2.5 ULP of x / y: the least, the greatest, and the nearest with the ones beside it; y is in `DIVISORS`."""
    exact = np.atleast_1d(widen(x) / widen(y))
    significand, exponent = np.frexp(np.abs(exact))
    # At a power of two, the distance to the number below, as the specification defines it.
    ulp = np.ldexp(1.0, np.maximum(exponent - np.where(significand == 0.5, 25, 24), _LEAST_ULP))
    ulp = np.where(exact == 0, 2.0**_LEAST_ULP, ulp)
    # Exact enough: a quotient of 24 bits by 24 bits is no nearer than 2^-49 to a number of 25 bits that it does not equal.
    least = neighbours(exact - QUOTIENT_ULPS * ulp)[1]
    greatest = neighbours(exact + QUOTIENT_ULPS * ulp)[0]
    nearest = exact.astype(np.float32)
    steps = [np.nextafter(nearest, np.float32(end)) for end in (-np.inf, np.inf)]
    return [least, greatest, nearest, *(np.clip(step, least, greatest) for step in steps)]


def quotient_is_beyond(x: Array, y: Array) -> Bools:
    """Return where some result within 2.5 ULP of x / y is not finite."""
    return np.abs(widen(x) / widen(y)) > GREATEST - QUOTIENT_ULPS * 2.0**104


def least_or_greatest(name: str, operands: tuple[Array, ...]) -> list[Array]:
    """Return what `min`, `max` and `clamp` may give: of two subnormals either, and `clamp` also as the median of three."""
    match name, operands:
        case "min" | "max", (a, b):
            both = is_subnormal(a) & is_subnormal(b)
            found = np.minimum(a, b) if name == "min" else np.maximum(a, b)
            return [found] if not both.any() else [np.where(both, a, found), np.where(both, b, found)]
        case "clamp", (value, low, high):
            found = np.minimum(np.maximum(value, low), high)
            median = np.maximum(np.minimum(value, low), np.minimum(np.maximum(value, low), high))
            tiny = is_subnormal(value) & (is_subnormal(low) | is_subnormal(high))
            either = [np.where(tiny & is_subnormal(end), end, found) for end in operands] if tiny.any() else []
            return [found, median, *either]
        case _:
            raise TypeError(name)


ROUNDINGS: Final[dict[str, Callable[[Array], Array]]] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
}
"""The built-in functions of one f32 whose result is exact but for a flushed operand."""
