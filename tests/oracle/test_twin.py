"""The vectorised oracle against its scalar twin in fractions: every operation into every type, and every signature as a whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from qgen.dtypes import DTYPES, DType
from qgen.ir.nodes import Let, Op, Read, Typed, Write
from qgen.ir.types import Int, print_type
from qgen.oracle import evaluate_reference
from qgen.oracle.exact import Values, add, div, mul, sub
from qgen.oracle.formats import decode
from qgen.oracle.operations import apply_operation
from qgen.shapes import per_axis
from qgen.signatures import Signature, distinct_key, enumerate_signatures
from tests.oracle.nodes import Array
from tests.oracle.programs import ROUNDED, build_program
from tests.oracle.samples import FLOAT_TYPES, dividends, edge_array, near_ties, random_array
from tests.oracle.twin import Number, evaluate, from_float, operate

FLOAT32, FLOAT16, BFLOAT16 = DTYPES["float32"], DTYPES["float16"], DTYPES["bfloat16"]
OPERANDS = (FLOAT32, FLOAT16, BFLOAT16, DTYPES["float8e4m3fn"], DTYPES["int32"])
ARITHMETIC = {Op.ADD: add, Op.SUB: sub, Op.MUL: mul, Op.DIV: div}


@pytest.mark.parametrize("op", [*ARITHMETIC, Op.MIN, Op.MAX], ids=lambda op: op.value)
@pytest.mark.parametrize("type_", FLOAT_TYPES, ids=lambda dtype: dtype.name)
def test_an_operation_on_two_numbers(op: Op, type_: DType) -> None:
    a, b = _pairs(800)
    _check(op, type_, a, b)


@pytest.mark.parametrize("op", [Op.CONVERT, Op.SATURATE, Op.ABS, Op.NEG], ids=lambda op: op.value)
@pytest.mark.parametrize("type_", FLOAT_TYPES, ids=lambda dtype: dtype.name)
def test_an_operation_on_one_number(op: Op, type_: DType) -> None:
    a = np.concatenate([decode(random_array(dtype, 300, 7), dtype) for dtype in OPERANDS])
    _check(op, type_, np.concatenate([a, _around_midpoints(type_)]))


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES.values() if dtype.is_integer], ids=lambda dtype: dtype.name)
def test_a_float_is_rounded_and_clamped_to_an_integer(dtype: DType) -> None:
    ties = np.concatenate(
        [near_ties(np.ones(200), 3, greatest=2.0 * dtype.max), np.array([dtype.min, dtype.max]) + np.array([[-0.5], [0.5]])], axis=None
    )
    a = np.concatenate([decode(random_array(FLOAT32, 500, 8), FLOAT32), ties, np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)])
    _check(Op.SATURATE, dtype, a)
    _check(Op.ROUND_EVEN, ROUNDED, a)


@pytest.mark.parametrize("type_", [*(dtype for dtype in DTYPES.values() if dtype.is_integer), Int.of_bits(32)], ids=print_type)
def test_an_integer_wraps(type_: DType | Int) -> None:
    a = np.random.default_rng(5).integers(-(1 << 33), 1 << 33, 500).astype(np.float64)
    ends = np.array([0, 1, -1, 1 << 31, (1 << 31) - 1, -(1 << 31), -(1 << 31) - 1, (1 << 32) - 1, 1 << 32], dtype=np.float64)
    _check(Op.WRAP, type_, np.concatenate([a, ends]))


@pytest.mark.parametrize("type_", FLOAT_TYPES, ids=lambda dtype: dtype.name)
def test_an_integer_becomes_a_float(type_: DType) -> None:
    a = np.concatenate([decode(edge_array(dtype), dtype) for dtype in DTYPES.values() if dtype.is_integer])
    _check(Op.CONVERT, type_, a)


def test_what_is_rounded_to_odd_lies_beside_the_exact_result_and_is_odd() -> None:
    a, b = _pairs(2000)
    keep = np.isfinite(a) & np.isfinite(b) & (b != 0)
    for op, operation in ARITHMETIC.items():
        for x, y, got in zip(a[keep].tolist(), b[keep].tolist(), operation(a[keep], b[keep]).tolist(), strict=True):
            want = operate_exactly(op, from_float(x), from_float(y))
            if want != got:
                assert (np.nextafter(got, -np.inf) < want < got) or (got < want < np.nextafter(got, np.inf))
                assert int(np.float64(got).view(np.uint64)) & 1


def operate_exactly(op: Op, a: Number, b: Number) -> Number:
    match op:
        case Op.ADD:
            return a + b
        case Op.SUB:
            return a - b
        case Op.MUL:
            return a * b
        case _:
            return a / b


def _signatures() -> dict[str, list[Signature]]:
    """Return every distinct computation, by operator and output type."""
    found: dict[str, list[Signature]] = {}
    keys = set()
    for signature, kind in enumerate_signatures():
        if kind != "per_tensor":
            continue
        key = distinct_key(signature, kind)
        if key not in keys:
            keys.add(key)
            found.setdefault(f"{signature.op}-{signature.y.name if signature.is_quantize else signature.x.name}", []).append(signature)
    return found


SIGNATURES = _signatures()


@pytest.mark.parametrize("group", SIGNATURES)
def test_every_signature_as_a_whole(group: str) -> None:
    for seed, signature in enumerate(SIGNATURES[group]):
        inputs = _inputs(signature, 40, seed)
        program = build_program(signature)
        got = decode(evaluate_reference(program, per_axis(0), inputs)["y"], signature.y)
        numbers = {name: decode(array, program.operand(name).dtype) for name, array in inputs.items()}
        for index, value in enumerate(got.tolist()):
            operands = {name: from_float(float(values[index])) for name, values in numbers.items()}
            want = evaluate(program.kernels[0].body, operands)["y"]
            assert _same(value, want), f"{signature}: {operands} gives {value}, not {want}"


def _inputs(signature: Signature, count: int, seed: int) -> dict[str, Array]:
    """Return x, scale and zero point of equal length, of the edges and of all magnitudes; half of x near ties of the scale."""
    prefix = "y" if signature.is_quantize else "x"
    quantized = signature.y if signature.is_quantize else signature.x
    scale = _mixed(signature.scale, count, 3 * seed)
    x = _mixed(signature.x, count, 3 * seed + 1)
    if signature.is_quantize:
        near = dividends(near_ties(decode(scale, signature.scale), seed), signature.x)
        x = np.where(np.arange(count) % 2 == 0, x, near)
    inputs = {"x": x, f"{prefix}_scale": scale}
    return inputs | ({f"{prefix}_zero_point": _mixed(quantized, count, 3 * seed + 2)} if signature.zero_point else {})


def _mixed(dtype: DType, count: int, seed: int) -> Array:
    edges = edge_array(dtype)
    chosen = edges[np.random.default_rng(seed).integers(0, len(edges), count)]
    return np.asarray(np.where(np.random.default_rng(seed + 1).integers(0, 4, count) == 0, chosen, random_array(dtype, count, seed)))


def _pairs(count: int) -> tuple[Values, Values]:
    """Return pairs of numbers of all types, the edges of float32 among them, and quotients near ties."""
    firsts, seconds = [], []
    for seed, (left, right) in enumerate(product(OPERANDS, OPERANDS)):
        firsts.append(decode(random_array(left, count // 10, seed), left))
        seconds.append(decode(random_array(right, count // 10, seed + 100), right))
    edges = decode(edge_array(FLOAT32), FLOAT32)
    left, right = np.random.default_rng(2).integers(0, len(edges), (2, count))
    scales = decode(random_array(FLOAT32, count, 9), FLOAT32)
    with np.errstate(all="ignore"):
        near = near_ties(scales, 10).astype(np.float32).astype(np.float64)
    return np.concatenate([*firsts, edges[left], near]), np.concatenate([*seconds, edges[right], scales])


def _around_midpoints(dtype: DType) -> Values:
    """Return values of the type, the midpoints of neighbours, and the float64 numbers on both sides of each."""
    values = np.sort(decode(random_array(dtype, 400, 11), dtype))
    values = values[np.isfinite(values)]
    quantum = np.spacing(values.astype(np.float32)) if dtype == FLOAT32 else np.diff(values, append=values[-1:])
    middles = values + quantum.astype(np.float64) / 2
    return np.concatenate([values, middles, np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf)])


def _check(op: Op, type_: DType | Int, *args: Values) -> None:
    node = Typed(op, tuple(Read(name, FLOAT32) for name in "ab"[: len(args)]), type_)
    with np.errstate(all="ignore"):
        got = apply_operation(node, args)
    for numbers in zip(got.tolist(), *(arg.tolist() for arg in args), strict=True):
        value, *operands = numbers
        want = operate(op, [from_float(number) for number in operands], type_)
        assert _same(value, want), f"{op.value} {operands} into {print_type(type_)} gives {value}, not {want}"


def _same(value: float, want: Number) -> bool:
    if value != value or want != want:  # noqa: PLR0124 - NaN
        return value != value and want != want  # noqa: PLR0124 - NaN
    return value == want and np.signbit(value) == np.signbit(float(want))


def test_the_bodies_compared_are_lets_and_writes() -> None:
    kinds = {
        type(statement) for group in SIGNATURES.values() for signature in group for statement in build_program(signature).kernels[0].body
    }
    assert kinds == {Let, Write}
