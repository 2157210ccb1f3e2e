"""Arguments for the library's functions: edges, random codes, and codes built to lie on or beside a rounding boundary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qgen.dtypes import DTYPES, DType
from qgen.ir.nodes import Op, Typed
from qgen.ir.types import Int
from tests.numerics.clauses import Clause, Codes

Words = NDArray[np.uint32]

FLOAT32 = DTYPES["float32"]
_SIGN32 = 0x80000000


def arguments(clause: Clause, seed: int, count: int) -> tuple[Codes, ...]:
    """Return the arguments to hold a clause on; about `count` lanes, or every code where the parameters have at most 16 bits together."""
    rng = np.random.default_rng(seed)
    expr = clause.pattern.expr
    assert isinstance(expr, Typed)
    match [of for _, of in clause.pattern.params]:
        case [DType(bits=bits)] if bits <= 16:
            return (np.arange(1 << bits, dtype=np.uint32),)
        case [DType(bits=bits), DType() as other] if bits + other.bits <= 16:
            codes = np.arange(1 << (bits + other.bits), dtype=np.uint32)
            return codes >> np.uint32(other.bits), codes & np.uint32(other.mask)
        case [DType() as dtype] if dtype == FLOAT32:
            around = _around_codes(rng, expr.type, count) if isinstance(expr.type, DType) else _around_halves(rng, count)
            return (np.concatenate([_edges(dtype), _random(rng, dtype, count // 2), around, around | np.uint32(_SIGN32)]),)
        case [DType() as dtype]:
            return (np.concatenate([_integer_edges(dtype), _random(rng, dtype, count)]),)
        case [Int() as interval]:
            return (_integers(rng, interval, expr.type, count),)
        case [DType() as dtype, DType() as other] if dtype == other:
            return _pairs(rng, dtype, _operation(expr), count)
        case [lhs, rhs]:
            return _mixed_pairs(rng, lhs, rhs, count)
        case other_params:
            raise TypeError(other_params)


def _operation(expr: Typed) -> Op:
    """Return the operation in a clause, below the roundings and conversions of its result."""
    inner = expr.args[0]
    is_rounding = expr.op in {Op.CONVERT, Op.SATURATE, Op.ROUND_EVEN}
    return _operation(inner) if is_rounding and isinstance(inner, Typed) else expr.op


def _random(rng: np.random.Generator, dtype: DType, count: int) -> Words:
    codes: Words = rng.integers(0, 1 << dtype.bits, count, dtype=np.uint32)
    return codes


def _integer_edges(dtype: DType) -> Words:
    bits = dtype.bits
    values = [0, 1, 2, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << (bits - 1)) + 1, dtype.mask - 1, dtype.mask]
    return np.array(values, np.uint32)


def _edges(dtype: DType) -> Words:
    """Return zeros, ends of the subnormals and of the normals, ones and their neighbours, infinities and several NaNs, of both signs."""
    form = dtype.format
    assert form is not None
    mantissa, infinity = form.mantissa_bits, form.max_code + 1
    one = form.bias << mantissa
    half, two = one - (1 << mantissa), one + (1 << mantissa)
    normal = 1 << mantissa
    values = {
        0,
        1,
        2,
        3,
        normal - 1,
        normal,
        normal + 1,
        2 * normal,
        form.max_code - 1,
        form.max_code,
        infinity,
        infinity + 1,
        form.nan_code,
    }
    values |= {(1 << (dtype.bits - 1)) - 1, infinity - normal, infinity - normal - 1}
    values |= {base + step for base in (half, one, two, one + 3 * normal, one + (normal >> 1)) for step in (-1, 0, 1)}
    if dtype == FLOAT32:
        # 127, 128, 255, 32767.5, 65535, 65536, 2^18 and its neighbours, the limits of float16, the integers' last halves.
        values |= {0x42FE0000, 0x43000000, 0x437F0000, 0x46FFFF00, 0x477FFF00, 0x47800000, 0x48800000, 0x487FFFFF, 0x48800001}
        values |= {0x477FE000, 0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001, 0x387FC000, 0x387FE000, 0x4AFFFFFF, 0x4B000000, 0x4B7FFFFF}
    magnitudes = np.array(sorted(value for value in values if value is not None), np.uint32)
    return np.concatenate([magnitudes, magnitudes | np.uint32(1 << (dtype.bits - 1))])


def _around_codes(rng: np.random.Generator, target: DType, count: int) -> Words:
    """Return float32 magnitudes at, and up to two steps beside, the codes of a format and the midpoints between neighbours."""
    form = target.format
    assert form is not None
    codes = rng.integers(0, form.max_code + 2, count // 4)
    doubled = 2 * codes + rng.integers(0, 2, codes.size)  # in half steps of a code: even for codes, odd for midpoints
    field = np.maximum(doubled >> (form.mantissa_bits + 1), 1)
    significand = doubled - ((field - 1) << (form.mantissa_bits + 1))  # with the leading one, which subnormals lack
    values = np.ldexp(significand.astype(np.float64), field - form.bias - form.mantissa_bits - 1)
    with np.errstate(over="ignore"):
        words = values.astype(np.float32).view(np.uint32).astype(np.int64) + rng.integers(-2, 3, values.size)
    clipped: Words = np.clip(words, 0, 0x7F800000).astype(np.uint32)
    return clipped


def _around_halves(rng: np.random.Generator, count: int) -> Words:
    """Return float32 magnitudes beside integers and halves up to 2^19."""
    whole = rng.integers(0, 1 << 20, count // 4) >> rng.integers(0, 20, count // 4)
    values = (whole / 2).astype(np.float32).view(np.uint32).astype(np.int64)
    words: Words = np.maximum(values + rng.integers(-2, 3, values.size), 0).astype(np.uint32)
    return words


def _integers(rng: np.random.Generator, interval: Int, target: object, count: int) -> NDArray[np.int32]:
    """Return integers of every magnitude, ends of the interval and of the target type, and what lies on or beside a tie of a conversion."""
    spread = rng.integers(-(1 << 31), 1 << 31, count) >> rng.integers(0, 31, count)
    bits = target.mantissa_bits if isinstance(target, DType) and target.is_float else 23
    midpoints = ((rng.integers(1 << bits, 2 << bits, count // 2) << 1) + 1) << (29 - bits)  # of 31 bits
    ties = (midpoints >> rng.integers(0, 29 - bits, count // 2)) + rng.integers(-1, 2, count // 2)
    ends = [interval.lo, interval.hi, 0, 1 << 24, -(1 << 24)]
    if isinstance(target, DType) and target.is_integer:
        ends += [target.min, target.max]
    edges = np.array([end + step for end in ends for step in (-2, -1, 0, 1, 2)])
    clipped: NDArray[np.int32] = np.clip(np.concatenate([edges, spread, ties, -ties]), interval.lo, interval.hi).astype(np.int32)
    return clipped


def _pairs(rng: np.random.Generator, dtype: DType, op: Op, count: int) -> tuple[Words, Words]:
    edges = _edges(dtype)
    parts = [(np.repeat(edges, edges.size), np.tile(edges, edges.size))]
    match op:
        case Op.DIV:
            parts += [_near_quotients(rng, dtype, count // 3), _short_pairs(rng, dtype, op, count // 3)]
        case Op.MUL:
            parts += [_near_products(rng, dtype, count // 3), _short_pairs(rng, dtype, op, count // 3)]
        case Op.MAX | Op.MIN | Op.EQUAL:
            parts += [_close_pairs(rng, dtype, count // 3), _close_pairs(rng, dtype, count // 3, opposite=True)]
        case _:
            parts += [_near_sums(rng, dtype, count // 3), _near_sums(rng, dtype, count // 3, keep_only=True)]
    parts.append((_random(rng, dtype, count // 6), _random(rng, dtype, count // 6)))
    subnormal = np.uint32((1 << (dtype.bits - 1)) | ((1 << (dtype.mantissa_bits + 1)) - 1))
    parts.append((_random(rng, dtype, count // 12) & subnormal, _random(rng, dtype, count // 12)))
    parts.append((_random(rng, dtype, count // 12), _random(rng, dtype, count // 12) & subnormal))
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def _near_sums(rng: np.random.Generator, dtype: DType, count: int, *, keep_only: bool = False) -> tuple[Words, Words]:
    """Return pairs of exponents at most a few more apart than a significand has bits, a quarter of them nearly opposite numbers.

    With `keep_only` the greater operand has few bits and so many sums are exact or ties.
    """
    bits = dtype.mantissa_bits
    x = _random(rng, dtype, count)
    if keep_only:
        low = rng.integers(0, bits + 1, count).astype(np.uint32)
        x = x >> low << low
    exponent = (x >> np.uint32(bits)).astype(np.int64) & ((1 << (dtype.bits - 1 - bits)) - 1)
    other = np.clip(exponent + rng.integers(-bits - 5, bits + 6, count), 0, (1 << (dtype.bits - 1 - bits)) - 2)
    y = _compose(rng, dtype, rng.integers(0, 1 << bits, count) >> np.where(rng.integers(0, 2, count) == 1, bits - 1, 0), other)
    quarter = count // 4
    opposite = (x[:quarter] ^ np.uint32(1 << (dtype.bits - 1))).astype(np.int64) + rng.integers(-3, 4, quarter)
    y[:quarter] = (opposite & dtype.mask).astype(np.uint32)
    return x, y


def _close_pairs(rng: np.random.Generator, dtype: DType, count: int, *, opposite: bool = False) -> tuple[Words, Words]:
    """Return pairs of codes at most two apart, of one sign, or of `opposite` ones; a quarter of them are zeros, infinities or NaN."""
    assert dtype.format is not None
    sign = 1 << (dtype.bits - 1)
    x = _random(rng, dtype, count).astype(np.int64)
    special = [0, 1, dtype.format.max_code, dtype.format.max_code + 1, dtype.format.max_code + 2, sign - 1]
    x[: count // 4] = rng.choice(special, count // 4) | (x[: count // 4] & sign)
    magnitude = np.clip((x & (sign - 1)) + rng.integers(-2, 3, count), 0, sign - 1)
    y = magnitude | ((x & sign) ^ (sign if opposite else 0))
    return x.astype(np.uint32), y.astype(np.uint32)


def _mixed_pairs(rng: np.random.Generator, lhs: object, rhs: object, count: int) -> tuple[Codes, Codes]:
    """Return operands of a quotient that are not both float32; half of the results are integers and halves, or beside them."""
    x, y = _operand(rng, lhs, count), _operand(rng, rhs, count)
    near = count // 2
    halves = (rng.integers(-(1 << 20), 1 << 20, near) >> rng.integers(0, 20, near)) / 2
    divisor = _values(y[:near], rhs)
    with np.errstate(all="ignore"):
        dividend = divisor * halves
    if isinstance(lhs, Int):
        close = np.rint(np.where(np.isfinite(dividend), dividend, 1)) + rng.integers(-1, 2, near)
        x[:near] = np.clip(close, lhs.lo, lhs.hi).astype(np.int32)
    else:
        with np.errstate(all="ignore"):
            words = dividend.astype(np.float32).view(np.uint32).astype(np.int64) + rng.integers(-1, 2, near)
        x[:near] = (words & 0xFFFFFFFF).astype(np.uint32)
    edges = [_integers(rng, of, None, 0) if isinstance(of, Int) else _edges(FLOAT32) for of in (lhs, rhs)]
    x = np.concatenate([x, np.repeat(edges[0], edges[1].size)])
    return x, np.concatenate([y, np.tile(edges[1], edges[0].size)])


def _operand(rng: np.random.Generator, of: object, count: int) -> Codes:
    if isinstance(of, Int):
        return (rng.integers(of.lo, of.hi + 1, count) >> rng.integers(0, 31, count)).astype(np.int32)
    # Exponents of 2^-32 to 2^31: quotients with an int32 then have every magnitude that is not clamped.
    return _compose(rng, FLOAT32, rng.integers(0, 1 << 23, count) >> rng.integers(0, 23, count), rng.integers(95, 159, count))


def _values(codes: Codes, of: object) -> NDArray[np.float64]:
    return codes.astype(np.float64) if isinstance(of, Int) else codes.view(np.float32).astype(np.float64)


def _compose(rng: np.random.Generator, dtype: DType, significand: Codes, exponent: Codes) -> Words:
    """Return codes of normal numbers with random signs; significands have their leading one, exponents are biased."""
    mask = (1 << dtype.mantissa_bits) - 1
    signs = rng.integers(0, 2, significand.size) << (dtype.bits - 1)
    return ((significand & mask) | (exponent << dtype.mantissa_bits) | signs).astype(np.uint32)


def _exponents(rng: np.random.Generator, dtype: DType, op: Op, count: int) -> tuple[Codes, Codes]:
    """Return biased exponents of operands: a third near the format's underflow, a third near its overflow, a third of results near 1."""
    form = dtype.format
    assert form is not None
    top = form.max_code >> form.mantissa_bits
    ends = [(-form.mantissa_bits - 3, 3), (top - 2, top + 3), (form.bias - 2, form.bias + 3)]
    result = np.concatenate([rng.integers(lo, hi, count - 2 * (count // 3) if lo < 0 else count // 3) for lo, hi in ends])
    lhs = rng.integers(1, top + 1, count)
    rhs = lhs - result + form.bias if op is Op.DIV else result - lhs + form.bias
    inside = np.clip(rhs, 1, top)
    shift = inside - rhs if op is Op.DIV else rhs - inside
    return np.clip(lhs + shift, 1, top), inside


def _near_quotients(rng: np.random.Generator, dtype: DType, count: int) -> tuple[Words, Words]:
    """Return pairs whose quotient is as near as it gets to a code or a midpoint: y and a quotient chosen, x the nearest product."""
    bits = dtype.mantissa_bits
    y = rng.integers(1 << bits, 2 << bits, count)
    quotient = rng.integers(2 << bits, 4 << bits, count)  # one bit more than a significand: odd is a midpoint
    ends = count // 8
    y[:ends] = (2 << bits) - 1 - rng.integers(0, 8, ends)
    quotient[ends : 2 * ends] = (2 << bits) + rng.integers(0, 8, ends)
    quotient[2 * ends : 3 * ends] = (4 << bits) - 1 - rng.integers(0, 8, ends)
    product = quotient * y
    shift = np.where(product >= 1 << (2 * bits + 2), bits + 2, bits + 1)
    x = np.clip((product + (1 << (shift - 1)) >> shift) + rng.integers(-1, 2, count), 1 << bits, (2 << bits) - 1)
    lhs, rhs = _exponents(rng, dtype, Op.DIV, count)
    return _compose(rng, dtype, x, lhs), _compose(rng, dtype, y, rhs)


def _near_products(rng: np.random.Generator, dtype: DType, count: int) -> tuple[Words, Words]:
    """Return pairs whose product is near a code or a midpoint: y = odd, x the inverse of it modulo a power of two, up to a small rest."""
    bits = dtype.mantissa_bits
    y = rng.integers(1 << bits, 2 << bits, count) | 1
    inverse = y.copy()
    for _ in range(5):
        inverse = inverse * (2 - y * inverse) & ((1 << (bits + 1)) - 1)
    rest = rng.integers(-3, 4, count) + np.where(rng.integers(0, 2, count) == 1, 1 << bits, 0)
    x = (inverse * rest) & ((1 << bits) - 1) | (1 << bits)
    lhs, rhs = _exponents(rng, dtype, Op.MUL, count)
    return _compose(rng, dtype, x, lhs), _compose(rng, dtype, y, rhs)


def _short_pairs(rng: np.random.Generator, dtype: DType, op: Op, count: int) -> tuple[Words, Words]:
    """Return operands with few bits set, among whose results exact ones and exact ties, of normal and subnormal numbers, are many."""
    bits = dtype.mantissa_bits

    def short() -> Codes:
        keep = rng.integers(1, bits + 1, count)
        return rng.integers(1 << bits, 2 << bits, count) >> keep << keep

    lhs, rhs = _exponents(rng, dtype, op, count)
    divisor = np.where(rng.integers(0, 2, count) == 1, 1 << bits, short()) if op is Op.DIV else short()
    return _compose(rng, dtype, short() | rng.integers(0, 2, count), lhs), _compose(rng, dtype, divisor, rhs)
