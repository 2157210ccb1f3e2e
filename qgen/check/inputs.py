"""Inputs that find what is wrong with a kernel: random codes, edges, quotients and products on and beside ties, scales of every kind.

Calm inputs are for code that is right for most elements and hands the others on: they have few of those, some of them just at the margin.

What an element or a group gets goes by its number, not by chance: every fourth element of a group is an edge, and they come in order, so
that a group of 4 n elements holds n edges, and the seeds in order give one scale after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes
from qgen.check.edges import Codes, Values, decode, edge_codes, encode, pick_edges, step_codes, value_range
from qgen.check.reduced import make_reduced
from qgen.compiler import find_condition
from qgen.dtypes import DType
from qgen.kernel import Kernel
from qgen.plain import are_plain, plain_intervals
from qgen.shapes import Blocked, Granularity, PerAxis, make_view, scale_shape
from qgen.signatures import Signature

Indices = NDArray[np.int64]

KINDS: Final = 4
"""Kinds of elements, and kinds of scales."""
_ORDINARY, _FITTED, _EDGE = 0, 1, 2
_SMALL: Final = 16
_RUN: Final = 16
_BYTE_BITS: Final = 8
_NARROWER: Final = (13, 16, 20, 21, 22)
"""By how many bits the significands of float16, bfloat16 and the narrower formats are shorter than that of float32."""
_STRIDE: Final = 7
"""By how many edges of x one scale and the next begin apart."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """The group of each element, and its number within the group."""

    of: Indices
    position: Indices
    count: int


def make_inputs(kernel: Kernel, shape: tuple[int, ...], seed: int, *, calm: bool = False) -> dict[str, NDArray[Any]]:
    """Return inputs for `kernel` by ONNX name, x of `shape`; the same for the same arguments.

    Where the scale is one for the whole tensor, its kind and its edge go by the seed: seeds in order give all of them. With `calm`, scales
    and elements are ordinary but for a few. A kernel for plain scales gets no others: those at the ends of what it takes, in turn, in the
    place of what it does not. Raises `QgenError` QG220 to QG222 where the shape does not fit the kernel's granularity.
    """
    signature, granularity = kernel.request.signature, kernel.request.granularity
    shared = scale_shape(granularity, shape)
    rng = np.random.default_rng([seed, *shape])
    groups = _find_groups(granularity, shape, math.prod(shared))
    if len(kernel.inputs) == 1:
        return {kernel.inputs[0]: from_codes(make_reduced(signature.x, groups.of, groups.position, seed, calm=calm), signature.x, shape)}
    quantized = signature.y if signature.is_quantize else signature.x
    has_zero_point = len(kernel.inputs) > len(("x", "scale"))
    # DequantizeLinear takes no other zero point of a float8 than zero (SEMANTICS 2.1, row 13).
    has_values = has_zero_point and (signature.is_quantize or not quantized.is_float8)
    zero_points = _zero_points(quantized, groups.count, seed, rng) if has_values else np.zeros(groups.count, np.uint32)
    if signature.is_quantize:
        scales = _taken(kernel, _scales_to_divide(signature, groups.count, seed, rng, calm=calm), seed)
        find = _calm_dividends if calm else _dividends
        x = find(signature, groups, decode(scales, signature.scale), decode(zero_points, quantized), seed)
    else:
        codes = _some(quantized, groups.count, rng)
        factors = decode(codes, quantized) - decode(zero_points, quantized)
        scales = _taken(kernel, _scales_to_multiply(signature, factors, seed, rng, calm=calm), seed)
        x = _some(quantized, groups.of.size, rng) if calm else _factors(signature, groups, codes, decode(zero_points, quantized), seed)
    arrays = [from_codes(x, signature.x, shape), from_codes(scales, signature.scale, shared)]
    if has_zero_point:
        arrays.append(from_codes(zero_points, quantized, shared))
    return dict(zip(kernel.inputs, arrays, strict=True))


def _taken(kernel: Kernel, scales: Codes, seed: int) -> Codes:
    """Return the scales, with the first and last codes of what the kernel takes in the place of those that it does not take."""
    condition = find_condition(kernel.request) if kernel.request.plain_scale else None
    if condition is None:
        return scales
    ends = np.array(plain_intervals(condition), np.uint32).reshape(-1)
    number = np.arange(scales.size, dtype=np.int64) + seed
    return np.where(are_plain(condition, scales), scales, ends[number // KINDS % ends.size]).astype(np.uint32)


def _find_groups(granularity: Granularity, shape: tuple[int, ...], count: int) -> _Groups:
    view = make_view(granularity, shape)
    index = np.arange(view.count, dtype=np.int64)
    of = np.zeros_like(index)
    if view.count and isinstance(granularity, PerAxis):
        of = index // view.inner % view.axis
    if view.count and isinstance(granularity, Blocked):
        row, inner = index // view.inner, index % view.inner
        of = (row // view.axis * view.blocks + row % view.axis // view.block_size) * view.inner + inner
    order = np.argsort(of, kind="stable")
    starts = np.searchsorted(of[order], np.arange(count))
    position = np.empty_like(index)
    position[order] = index - starts[of[order]]
    return _Groups(of, position, count)


def _some(dtype: DType, count: int, rng: np.random.Generator) -> Codes:
    """Return random codes; of the wider integers, half are of all magnitudes alike."""
    codes = rng.integers(0, 1 << dtype.bits, count)
    if dtype.is_integer and dtype.bits > _BYTE_BITS:
        sign = (1 << (dtype.bits - 1)) if dtype.min < 0 else 0
        shorter = ((codes ^ sign) - sign) >> rng.integers(0, dtype.bits, count)
        codes = np.where(rng.integers(0, 2, count) == 0, codes, shorter & dtype.mask)
    return codes.astype(np.uint32)


def _zero_points(dtype: DType, count: int, seed: int, rng: np.random.Generator) -> Codes:
    """Return, in turn, an extreme, an edge and a random code."""
    number = np.arange(count, dtype=np.int64) + seed
    ends = encode(np.array([dtype.min, dtype.max, 0], np.float64) if dtype.is_integer else np.array([0.0, -1.0, 1.0]), dtype)
    chosen = np.select(
        [number % 3 == 0, number % 3 == 1], [ends[number // 3 % len(ends)], pick_edges(dtype, number // 3)], _some(dtype, count, rng)
    )
    return chosen.astype(np.uint32)


def _scales(dtype: DType, seed: int, ordinary: Values, fitted: Values, rng: np.random.Generator, *, calm: bool) -> Codes:
    """Return scales by kind, in turn: an ordinary one, one that fits the data with a step of one unit, an edge, a random code.

    With `calm` they are ordinary, but for a random code in four of every last `_RUN` of four: so that what an invocation computes at a
    time, which may be of as many groups, is ordinary as a whole.
    """
    count = ordinary.size
    number = np.arange(count, dtype=np.int64) + seed
    beside = step_codes(encode(fitted, dtype), rng.integers(-1, 2, count), dtype)
    kind = number % KINDS
    kind = np.where(calm & ((kind < KINDS - 1) | (number // _RUN % KINDS < KINDS - 1)), _ORDINARY, kind)
    chosen = np.select(
        [kind == _ORDINARY, kind == _FITTED, kind == _EDGE],
        [encode(ordinary, dtype), beside, pick_edges(dtype, number // KINDS)],
        _some(dtype, count, rng),
    )
    return chosen.astype(np.uint32)


def _scales_to_divide(signature: Signature, count: int, seed: int, rng: np.random.Generator, *, calm: bool) -> Codes:
    """Return scales by which quotients reach the whole range of the output while x stays finite: any, and powers of two."""
    dtype, x, quantized = signature.scale, signature.x, signature.y
    widest = max(map(abs, value_range(quantized)))
    top = min(4.0, math.log2(value_range(x)[1] / (2 * widest + 4)))
    exponents = rng.uniform(top - 12, top, count)
    signs = np.where(rng.integers(0, 4, count) == 0, -1.0, 1.0)
    return _scales(dtype, seed, signs * 2.0**exponents, signs * 2.0 ** np.floor(exponents), rng, calm=calm)


def _scales_to_multiply(signature: Signature, factors: Values, seed: int, rng: np.random.Generator, *, calm: bool) -> Codes:
    """Return scales of all signs, and those whose product with the group's factor lies beside the middle of two values of y."""
    y, count = signature.y, factors.size
    signs = np.where(rng.integers(0, 4, count) == 0, -1.0, 1.0)
    largest = y.format.max_code if y.format else y.max
    below = rng.integers(0, largest, count).astype(np.uint32)
    middles = (decode(below, y) + decode(below + np.uint32(1), y)) / 2
    fitted = middles / np.where(factors == 0, 1.0, factors)
    return _scales(signature.scale, seed, signs * 2.0 ** rng.uniform(-12, 4, count), fitted, rng, calm=calm)


def _in_turn(dtype: DType, scale: DType, groups: _Groups, seed: int) -> Codes:
    """Return for every fourth element of a group the next edge, from where the last group with the same edge as scale has stopped."""
    period = KINDS * len(edge_codes(scale))
    each = (int(groups.position.max(initial=0)) + KINDS) // KINDS
    number = np.arange(groups.count, dtype=np.int64) + seed
    start = number // period * each + number % period * _STRIDE
    return pick_edges(dtype, start[groups.of] + groups.position // KINDS)


def _dividends(signature: Signature, groups: _Groups, scales: Values, zero_points: Values, seed: int) -> Codes:
    """Return x: edges, random codes, quotients within one unit of k + 1/2, quotients anywhere in the output's range."""
    dtype, quantized, count = signature.x, signature.y, groups.of.size
    rng = np.random.default_rng([seed, count])
    ends = np.array(value_range(quantized))
    scale, zero_point = scales[groups.of], zero_points[groups.of]
    inside = rng.uniform(ends[0] - 3, ends[1] + 3, count) - zero_point
    at_end = ends[rng.integers(0, 2, count)] + rng.integers(-3, 3, count) - zero_point
    where = rng.integers(0, 3, count)
    whole = np.select([where == 0, where == 1], [np.floor(inside), at_end], rng.integers(-_SMALL, _SMALL, count).astype(np.float64))
    steps = rng.integers(-1, 2, count)
    with np.errstate(all="ignore"):
        ties = step_codes(encode((whole + 0.5) * scale, dtype), steps, dtype)
        within = encode(np.where(rng.integers(0, 2, count) == 0, inside, whole) * scale, dtype)
    kind = groups.position % KINDS
    chosen = np.select(
        [kind == 0, kind == 1, kind == 2],
        [_in_turn(dtype, signature.scale, groups, seed), ties, _halfway(within, steps, dtype, rng)],
        _some(dtype, count, rng),
    )
    return chosen.astype(np.uint32)


def _calm_dividends(signature: Signature, groups: _Groups, scales: Values, zero_points: Values, seed: int) -> Codes:
    """Return x whose quotients lie within the output's range; one in eight is near a tie of integers or of a narrower format.

    These are all in every other run of elements, so that half of the invocations have none.
    """
    count = groups.of.size
    rng = np.random.default_rng([seed, count])
    least, greatest = value_range(signature.y)
    scale = scales[groups.of]
    # The zero point of a float8 may be NaN, and takes no part.
    inside = rng.uniform(least, greatest, count) - np.nan_to_num(zero_points[groups.of], nan=0.0, posinf=0.0, neginf=0.0)
    beside = (np.floor(inside) + 0.5) * (1 + rng.choice([-1.0, 1.0], count) * 2.0 ** rng.integers(-23, -13, count))
    codes = inside.astype(np.float32).view(np.uint32).astype(np.int64)
    width = rng.choice(_NARROWER, count)
    middle = (codes >> width << width) + (1 << (width - 1)) + rng.integers(-_SMALL, _SMALL, count)
    kind = np.where(np.arange(count) // (KINDS * _RUN) % 2 == 0, rng.integers(0, 2 * _SMALL, count), KINDS)
    with np.errstate(all="ignore"):  # beside zero there are NaN
        narrow = np.minimum(middle, 0xFFFFFFFF).astype(np.uint32).view(np.float32).astype(np.float64)
        return encode(np.select([kind < 2, kind < KINDS], [beside, narrow], inside) * scale, signature.x)


def _halfway(codes: Codes, steps: Indices, dtype: DType, rng: np.random.Generator) -> Codes:
    """Return codes, half of them moved to the middle of two values of a narrower format, or one unit beside it."""
    if dtype.is_integer or dtype.mantissa_bits < KINDS:
        return codes
    width = rng.integers(1, dtype.mantissa_bits, codes.size)
    middle = (codes.astype(np.int64) >> width << width) | (1 << (width - 1))
    moved = step_codes(middle.astype(np.uint32), steps, dtype)
    return np.where(rng.integers(0, 2, codes.size) == 0, codes, moved).astype(np.uint32)


def _factors(signature: Signature, groups: _Groups, codes: Codes, zero_points: Values, seed: int) -> Codes:
    """Return x: the code that the group's scale was fitted to, edges, differences to the zero point (edges, or small), random codes."""
    dtype, count = signature.x, groups.of.size
    rng = np.random.default_rng([seed, count])
    edges = decode(edge_codes(dtype), dtype)
    far = edges[rng.integers(0, len(edges), count)]
    difference = np.where(rng.integers(0, 2, count) == 0, far, rng.integers(-_SMALL, _SMALL, count))
    kind = groups.position % KINDS
    chosen = np.select(
        [kind == 0, kind == 1, kind == 2],
        [codes[groups.of], _in_turn(dtype, signature.scale, groups, seed), encode(zero_points[groups.of] + difference, dtype)],
        _some(dtype, count, rng),
    )
    return chosen.astype(np.uint32)
