"""Every operator, built-in and conversion against Python's integers and fractions."""

from __future__ import annotations

import itertools
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgen.evaluate import EvaluationError, evaluate_function
from qgen.evaluate.machine import NUMPY
from qgen.ir.nodes import Binary, Bitcast, Builtin, Convert, Expr, Literal, Unary
from qgen.ir.types import Scalar
from tests.evaluate.build import BOOL, F32, I32, U32, expression, name, op, u
from tests.evaluate.scalar import binary, builtin, wrap

EDGES = [0, 1, 2, 3, 7, 31, 32, 255, 256, 65535, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xAAAAAAAA, 0xFFFFFFFE, 0xFFFFFFFF]
INTEGERS = [U32, I32]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    3.5,
    -0.5,
    1 / 3,
    2.0**-149,
    -(2.0**-126),
    3.4028234663852886e38,
    16777217.0,
    1e10,
    -7.99,
    2147483520.0,
]


def apply(value: Expr, *args: npt.NDArray[Any], types: tuple[Scalar, ...]) -> list[Any]:
    params = dict(zip("abc", types, strict=False))
    result = evaluate_function(expression(value, **params), (), args).value
    assert not isinstance(result, dict)
    assert isinstance(value.type, Scalar)
    assert result.dtype == NUMPY[value.type]
    values: list[Any] = result.tolist()
    return values


def array(values: list[int], type_: Scalar) -> npt.NDArray[Any]:
    return np.array([wrap(value, type_) for value in values], NUMPY[type_])


def pairs(type_: Scalar) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    values = list(itertools.product(EDGES, EDGES))
    return array([a for a, _ in values], type_), array([b for _, b in values], type_)


@pytest.mark.parametrize("type_", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%", "&", "|", "^", "==", "!=", "<", "<=", ">", ">="])
def test_integer_operator_is_pythons_modulo_2_32(operator: str, type_: Scalar) -> None:
    a, b = pairs(type_)
    if operator in "/%":
        a, b = a[b != 0], b[b != 0]
    node = op(name("a", type_), operator, name("b", type_))
    expected = [wrap(binary(operator, p, q, type_), node.type) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert apply(node, a, b, types=(type_, type_)) == expected


@pytest.mark.parametrize("type_", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("operator", ["<<", ">>"])
@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
def test_shift_is_pythons_modulo_2_32(operator: str, type_: Scalar, *, constant: bool) -> None:
    values = array(EDGES, type_)
    for count in range(32):
        expected = [wrap(binary(operator, value, count, type_), type_) for value in values.tolist()]
        if constant:
            node = op(name("a", type_), operator, u(count))
            assert apply(node, values, types=(type_,)) == expected
        else:
            node = op(name("a", type_), operator, name("b"))
            assert apply(node, values, np.array([count], np.uint32), types=(type_, U32)) == expected


@pytest.mark.parametrize("operator", ["&&", "||", "&", "|", "==", "!="])
def test_bool_operator(operator: str) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    expected = [bool(binary(operator, p, q, BOOL)) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert apply(op(name("a", BOOL), operator, name("b", BOOL)), a, b, types=(BOOL, BOOL)) == expected


def test_unary_operators() -> None:
    assert apply(Unary("!", name("a", BOOL), BOOL), np.array([False, True]), types=(BOOL,)) == [True, False]
    for type_, operator in [(U32, "~"), (I32, "~"), (I32, "-")]:
        values = array(EDGES, type_)
        expected = [wrap(~value if operator == "~" else -value, type_) for value in values.tolist()]
        assert apply(Unary(operator, name("a", type_), type_), values, types=(type_,)) == expected
    assert np.signbit(apply(Unary("-", name("a", F32), F32), np.array([0.0], np.float32), types=(F32,)))


@pytest.mark.parametrize("type_", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize("title", ["abs", "countOneBits", "countLeadingZeros", "countTrailingZeros", "firstLeadingBit"])
def test_integer_builtin_of_one_argument(title: str, type_: Scalar) -> None:
    values = array([*EDGES, *(1 << bit for bit in range(32)), *(~(1 << bit) for bit in range(32))], type_)
    expected = [wrap(builtin(title, (value,), type_), type_) for value in values.tolist()]
    assert apply(Builtin(title, (name("a", type_),), type_), values, types=(type_,)) == expected


@pytest.mark.parametrize("type_", INTEGERS, ids=lambda t: t.value)
@pytest.mark.parametrize(("title", "count"), [("min", 2), ("max", 2), ("clamp", 3)])
def test_integer_builtin_of_several_arguments(title: str, count: int, type_: Scalar) -> None:
    rows = list(itertools.product(EDGES, repeat=count))
    columns = [array([row[k] for row in rows], type_) for k in range(count)]
    node = Builtin(title, tuple(name(key, type_) for key in "abc"[:count]), type_)
    expected = [builtin(title, args, type_) for args in zip(*(column.tolist() for column in columns), strict=True)]
    assert apply(node, *columns, types=(type_,) * count) == expected


def test_integer_conversions_are_modulo_2_32() -> None:
    for source, target in itertools.product([BOOL, *INTEGERS], repeat=2):
        values = array(EDGES, source)
        expected = [wrap(value, target) for value in values.tolist()]
        assert apply(Convert(name("a", source), target), values, types=(source,)) == expected
    for source, target in itertools.product(INTEGERS, repeat=2):
        values = array(EDGES, source)
        assert apply(Bitcast(name("a", source), target), values, types=(source,)) == [wrap(value, target) for value in values.tolist()]


def round_f32(value: Fraction) -> float:
    """Return a fraction rounded to f32, half to even, subnormals kept, by its definition."""
    if value == 0:
        return 0.0
    exponent = -149
    while abs(value) / Fraction(2) ** exponent >= 1 << 24:
        exponent += 1
    rounded = round(value / Fraction(2) ** exponent) * Fraction(2) ** exponent
    if abs(rounded) >= Fraction(2) ** 128:
        return float("inf") if rounded > 0 else float("-inf")
    return float(rounded)


finite = st.integers(0, 0xFFFFFFFF).map(lambda bits: struct.unpack("<f", struct.pack("<I", bits))[0]).filter(np.isfinite)
near = st.integers(-(1 << 25), 1 << 25).map(lambda n: struct.unpack("<f", struct.pack("<f", n / 1024))[0])
floats = st.one_of(st.sampled_from([struct.unpack("<f", struct.pack("<f", v))[0] for v in FLOATS]), finite, near)


def f32(value: float) -> npt.NDArray[np.float32]:
    return np.array([value], np.float32)


@given(floats, floats)
def test_f32_arithmetic_is_the_exact_result_rounded_once(a: float, b: float) -> None:
    exact = {"+": Fraction(a) + Fraction(b), "-": Fraction(a) - Fraction(b), "*": Fraction(a) * Fraction(b)}
    if b != 0:
        exact["/"] = Fraction(a) / Fraction(b)
    for operator, value in exact.items():
        node = op(name("a", F32), operator, name("b", F32))
        assert apply(node, f32(a), f32(b), types=(F32, F32)) == [round_f32(value)]
    for operator in ["==", "!=", "<", "<=", ">", ">="]:
        expected = bool(binary(operator, Fraction(a), Fraction(b), F32))  # type: ignore[arg-type]  # the orders are those of any numbers
        assert apply(op(name("a", F32), operator, name("b", F32)), f32(a), f32(b), types=(F32, F32)) == [expected]


@given(floats, floats, floats)
def test_f32_builtins(a: float, b: float, c: float) -> None:
    args = f32(a), f32(b), f32(c)
    a_, b_, c_ = (name(key, F32) for key in "abc")
    types = (F32, F32, F32)
    assert apply(Builtin("fma", (a_, b_, c_), F32), *args, types=types) == [round_f32(Fraction(a) * Fraction(b) + Fraction(c))]
    assert apply(Builtin("min", (a_, b_), F32), *args[:2], types=types[:2]) == [min(a, b)]
    assert apply(Builtin("max", (a_, b_), F32), *args[:2], types=types[:2]) == [max(a, b)]
    assert apply(Builtin("clamp", (a_, b_, c_), F32), *args, types=types) == [min(max(a, b), c)]
    whole = {
        "floor": Fraction(a).__floor__(),
        "ceil": Fraction(a).__ceil__(),
        "trunc": Fraction(a).__trunc__(),
        "round": round(Fraction(a)),
    }
    for title, value in whole.items():
        assert apply(Builtin(title, (a_,), F32), args[0], types=(F32,)) == [value]
    assert apply(Builtin("abs", (a_,), F32), args[0], types=(F32,)) == [abs(a)]


@given(st.integers(0, 0xFFFFFFFF))
def test_integers_to_f32_round_half_to_even(value: int) -> None:
    for type_ in INTEGERS:
        number = wrap(value, type_)
        assert apply(Convert(name("a", type_), F32), array([value], type_), types=(type_,)) == [round_f32(Fraction(number))]


@given(floats)
def test_f32_to_integers_truncates_and_clamps(value: float) -> None:
    whole = Fraction(value).__trunc__()
    assert apply(Convert(name("a", F32), I32), f32(value), types=(F32,)) == [min(max(whole, -(1 << 31)), 2147483520)]
    assert apply(Convert(name("a", F32), U32), f32(value), types=(F32,)) == [min(max(whole, 0), 4294967040)]
    assert apply(Convert(name("a", F32), BOOL), f32(value), types=(F32,)) == [value != 0]


def test_f32_specials_to_integers() -> None:
    values = np.array([np.inf, -np.inf, np.nan], np.float32)
    assert apply(Convert(name("a", F32), I32), values, types=(F32,)) == [2147483520, -2147483648, 0]
    assert apply(Convert(name("a", F32), U32), values, types=(F32,)) == [4294967040, 0, 0]
    assert apply(Convert(name("a", BOOL), F32), np.array([False, True]), types=(BOOL,)) == [0.0, 1.0]


@given(st.integers(0, 0xFFFFFFFF))
def test_bitcast_keeps_every_bit(bits: int) -> None:
    there_and_back = Bitcast(Bitcast(name("a"), F32), U32)
    assert apply(there_and_back, array([bits], U32), types=(U32,)) == [bits]


def test_literals() -> None:
    for value, type_ in [(True, BOOL), (0xFFFFFFFF, U32), (-(1 << 31), I32), (0.1, F32), (1, F32)]:
        assert apply(Literal(value, type_), types=()) == [NUMPY[type_](value).item()]
    assert np.signbit(apply(Literal(-0.0, F32), types=()))
    assert not np.signbit(apply(Literal(0.0, F32), types=()))


A_U, A_F, A_B = name("a"), name("b", F32), name("c", BOOL)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(Unary("-", A_U, U32), "there is no -u32", id="minus-u32"),
        pytest.param(Unary("~", A_F, F32), "there is no ~f32", id="not-f32"),
        pytest.param(Unary("!", A_U, BOOL), "there is no !u32", id="not-u32"),
        pytest.param(Binary("+", A_U, Literal(1, I32), U32), "there is no u32 + i32", id="mixed-types"),
        pytest.param(Binary("<", A_U, u(1), U32), "there is no u32 < u32 -> u32", id="comparison-result"),
        pytest.param(Binary("%", A_F, A_F, F32), "there is no f32 % f32", id="remainder-f32"),
        pytest.param(Binary("+", A_B, A_B, BOOL), "there is no bool + bool", id="plus-bool"),
        pytest.param(Binary("<<", A_F, u(1), F32), "there is no shift of f32", id="shift-f32"),
        pytest.param(Binary("<<", A_U, u(32), U32), "a shift by 32", id="constant-shift"),
        pytest.param(Binary("<<", A_U, Literal(1, I32), U32), "a shift by 1", id="shift-by-i32"),
        pytest.param(Binary("**", A_U, u(1), U32), "there is no u32 **", id="unknown-operator"),
        pytest.param(Builtin("sin", (A_F,), F32), "there is no sin(f32) -> f32", id="unknown-builtin"),
        pytest.param(Builtin("round", (A_U,), U32), "there is no round(u32)", id="round-u32"),
        pytest.param(Builtin("min", (A_U,), U32), "there is no min(u32)", id="arguments-missing"),
        pytest.param(Builtin("max", (A_U, Literal(1, I32)), U32), "there is no max(u32, i32)", id="builtin-mixed"),
        pytest.param(Bitcast(A_B, U32), "there is no bitcast of bool to u32", id="bitcast-bool"),
        pytest.param(Literal(-1, U32), "the literal -1 is not a value of u32", id="literal-negative"),
        pytest.param(Literal(1 << 32, U32), "is not a value of u32", id="literal-large"),
        pytest.param(Literal(1 << 31, I32), "is not a value of i32", id="literal-large-i32"),
        pytest.param(Literal(1.0, U32), "the literal 1.0 is not a value of u32", id="literal-float"),
        pytest.param(Literal(value=True, type=U32), "the literal True is not a value of u32", id="literal-bool"),
        pytest.param(Literal(1, BOOL), "the literal 1 is not a value of bool", id="literal-int"),
        pytest.param(Literal(1e39, F32), "is not a value of f32", id="literal-overflow"),
        pytest.param(Literal(float("nan"), F32), "is not a value of f32", id="literal-nan"),
    ],
)
def test_what_wgsl_does_not_have_is_an_error(value: Expr, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        apply(value, *(np.zeros(1, NUMPY[type_]) for type_ in (U32, F32, BOOL)), types=(U32, F32, BOOL))
    assert message in caught.value.message
    assert caught.value.kernel == "f"
