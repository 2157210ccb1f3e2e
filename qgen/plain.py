"""Which scales are plain: the compiler's own condition on a scale, evaluated.

A plain scale meets every `require` of quick code that depends on the scale alone. What is asked here is the very function that an entry
point would call for each group, run by the evaluator; there is no second statement of it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes
from qgen.dtypes import WORD_BITS, DType
from qgen.emit.module import emit_functions
from qgen.evaluate import evaluate_function
from qgen.ir.program import Program, Stage
from qgen.passes.discharge import Condition
from qgen.sidecar.assumption import Assumption

Codes = NDArray[np.uint32]
Intervals = tuple[tuple[int, int], ...]

_HALF: Final = 16
_LOW_HALVES: Final = (0, 1, 0x7FFF, 0x8000, 0xFFFF)
"""What the lower half of a 32-bit code is tried with, under every upper half."""


def are_plain(condition: Condition, codes: Codes) -> NDArray[np.bool_]:
    """Return of each code of a scale whether it meets the condition; any shape."""
    flat = codes.astype(np.uint32).reshape(-1)
    if flat.size == 0:
        return np.ones(codes.shape, np.bool_)
    met = evaluate_function(condition.test, condition.functions, [flat]).value
    if isinstance(met, dict):
        raise TypeError(condition)
    return np.asarray(met, np.bool_).reshape(codes.shape)


def plain_intervals(condition: Condition) -> Intervals:
    """Return the codes that meet the condition, as intervals with both ends, in order.

    Codes of up to 16 bits are all tried. Of 32-bit ones those with the lower halves of `_LOW_HALVES` are, and where two side by side
    differ, what lies between is halved until the end is found: right where no interval begins and ends between two of these.
    """
    bits = condition.scale.dtype.bits
    codes = np.arange(1 << min(bits, _HALF), dtype=np.uint32)
    if bits > _HALF:
        codes = ((codes << np.uint32(_HALF))[:, np.newaxis] | np.array(_LOW_HALVES, np.uint32)).reshape(-1)
    met = are_plain(condition, codes)
    at = np.flatnonzero(met[1:] != met[:-1])
    below, above = codes[at].astype(np.int64), codes[at + 1].astype(np.int64)
    while at.size and int((above - below).max()) > 1:
        middle = (below + above) // 2
        same = are_plain(condition, middle.astype(np.uint32)) == met[at]
        below, above = np.where(same, middle, below), np.where(same, above, middle)
    starts = [*([0] if met[0] else []), *(int(code) for code, was in zip(above, met[at], strict=True) if not was)]
    ends = [*(int(code) for code, was in zip(below, met[at], strict=True) if was), *([(1 << bits) - 1] if met[-1] else [])]
    return tuple(zip(starts, ends, strict=True))


def make_assumption(condition: Condition) -> Assumption:
    """Return what a kernel for plain scales relies on, for its sidecar and its header."""
    scale = condition.scale
    intervals = plain_intervals(condition)
    program = Program(scale.name, Stage.LEGAL, (scale,), (), (condition.test, *condition.functions))
    wgsl = "\n\n".join(emit_functions(program)) + "\n"
    return Assumption(scale.name, describe_condition(condition), intervals, wgsl)


def describe_condition(condition: Condition) -> str:
    """Return the condition in words."""
    scale = condition.scale
    return f"every {scale.name} {_words(plain_intervals(condition), scale.dtype)}"


def _words(intervals: Intervals, dtype: DType) -> str:
    """Return which values the intervals have, sign aside where both signs have the same."""
    top = 1 << (dtype.bits - 1)
    if dtype.is_integer and dtype.min < 0:
        # An interval of codes that has both signs is two of values.
        halves = [(max(low, start), min(high, start + top - 1)) for low, high in intervals for start in (0, top)]
        return f"is {_ranges(tuple((low, high) for low, high in halves if low <= high), dtype)}"
    if dtype.format is not None and not dtype.format.is_unsigned:
        positive = tuple((low, high) for low, high in intervals if high < top)
        if tuple((low - top, high - top) for low, high in intervals if low >= top) == positive:
            return f"has a magnitude {_ranges(positive, dtype)}"
    return f"is {_ranges(intervals, dtype)}"


def _ranges(intervals: Intervals, dtype: DType) -> str:
    ends = np.array(intervals, np.uint32).reshape(-1, 2)
    values = np.sort(from_codes(ends, dtype, ends.shape).astype(np.float64), axis=1)
    return ", or ".join(f"from {_number(low)} to {_number(high)}" for low, high in sorted(values.tolist()))


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1 << WORD_BITS else f"{value:.9g}"
