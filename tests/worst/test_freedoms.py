"""Each freedom, alone, moves the result of a small program; with all of them a model stays within what WGSL promises."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.evaluate import IEEE, ArithmeticModel, EvaluationError, evaluate_function
from qgen.evaluate.choice import nearest_boundary
from qgen.evaluate.worst import ALL, Freedom, Worst, worst_models
from qgen.ir.nodes import Binary, Bitcast, Builtin, Convert, Expr, Let, Literal, Return, Store, Unary
from qgen.ir.program import Function
from qgen.ir.types import Scalar
from tests.evaluate.build import BOOL, F32, I32, U32, X, expression, function, load, name, op, program, run, store_x, u

A, B, C = name("a", F32), name("b", F32), name("c", F32)
LEAST: Final = 2.0**-126
NAN: Final = 0x7FC01234


@dataclass(frozen=True, slots=True)
class Case:
    """`text` of parameters a, b and c gives other bits where `freedom` alone is used."""

    title: str
    freedom: Freedom
    text: Function
    values: tuple[float, ...]


def text_of(value: Expr, count: int) -> Function:
    """Return the function of the f32 a, b and c, as many as `count`, that computes `value`."""
    assert isinstance(value.type, Scalar)
    return function("f", dict.fromkeys("abc"[:count], F32), value.type, Return(value))


def case(title: str, freedom: Freedom, value: Expr, *values: float) -> Case:
    return Case(title, freedom, text_of(value, len(values)), values)


def bits(value: Expr) -> Bitcast:
    return Bitcast(value, U32)


def builtin(title: str, *args: Expr) -> Builtin:
    return Builtin(title, args, F32)


PRODUCT_SUM = op(op(A, "*", B), "+", C)
NAMED = function("f", {"a": F32, "b": F32, "c": F32}, F32, Let("p", op(A, "*", B)), Return(op(name("p", F32), "-", C)))
FUSED = (1 + 2.0**-12, 1 + 2.0**-12, -1 - 2.0**-11)
CASES = [
    case("a quotient", Freedom.QUOTIENT, op(A, "/", B), 1.0, 3.0),
    case("an exact quotient", Freedom.QUOTIENT, op(A, "/", B), 6.0, 3.0),
    case("a quotient by a subnormal", Freedom.QUOTIENT, op(A, "/", B), LEAST / 2, LEAST / 4),
    case("a quotient by a large number", Freedom.QUOTIENT, op(A, "/", B), 1.0, 2.0**127),
    case("a sum", Freedom.ROUNDING, op(A, "+", B), 1.0, 2.0**-30),
    case("a difference", Freedom.ROUNDING, op(A, "-", B), 1.0, 2.0**-30),
    case("a product", Freedom.ROUNDING, op(A, "*", B), 1 + 2.0**-23, 1 + 2.0**-23),
    case("a fused sum", Freedom.ROUNDING, builtin("fma", A, B, C), 1 + 2.0**-23, 1 + 2.0**-23, 0.0),
    case("a conversion", Freedom.ROUNDING, Convert(Literal((1 << 24) + 1, I32), F32)),
    case("a literal", Freedom.ROUNDING, Literal(0.1, F32)),
    case("a subnormal operand", Freedom.SUBNORMALS, op(A, "*", B), LEAST / 4, 8.0),
    case("a subnormal result", Freedom.SUBNORMALS, op(A, "*", B), LEAST, 0.25),
    case("a subnormal sum", Freedom.SUBNORMALS, op(A, "-", B), 1.5 * LEAST, LEAST),
    case("a subnormal quotient", Freedom.SUBNORMALS, op(A, "/", B), LEAST, 4.0),
    case("a comparison of subnormals", Freedom.SUBNORMALS, op(A, ">", B), LEAST / 2, 0.0),
    case("a subnormal as a truth value", Freedom.SUBNORMALS, Convert(A, BOOL), LEAST / 2),
    case("the negative of a subnormal", Freedom.SUBNORMALS, Unary("-", A, F32), LEAST / 2),
    case("the ceiling of a subnormal", Freedom.SUBNORMALS, builtin("ceil", A), LEAST / 2),
    case("the maximum of subnormals", Freedom.SUBNORMALS, builtin("max", A, B), LEAST / 4, LEAST / 2),
    case("a clamped subnormal", Freedom.SUBNORMALS, builtin("clamp", A, B, C), LEAST / 4, LEAST / 2, 1.0),
    case("the bits of a subnormal", Freedom.SUBNORMALS, bits(A), LEAST / 2),
    case("a subnormal of bits", Freedom.SUBNORMALS, Bitcast(Literal(50, U32), F32)),
    case("the bits of a zero", Freedom.ZERO_SIGN, bits(A), 0.0),
    case("a zero of bits", Freedom.ZERO_SIGN, Bitcast(Literal(0x80000000, U32), F32)),
    case("a converted zero", Freedom.ZERO_SIGN, Convert(Literal(0, I32), F32)),
    case("a product that is zero", Freedom.ZERO_SIGN, op(A, "*", B), -1.0, 0.0),
    case("a rounded number that is zero", Freedom.ZERO_SIGN, builtin("round", A), -0.25),
    case("the bits of a NaN", Freedom.NAN_BITS, bits(A), float("nan")),
    case("a NaN of bits", Freedom.NAN_BITS, Bitcast(Literal(NAN, U32), F32)),
    case("a sum that is NaN", Freedom.NAN_BITS, op(A, "+", B), float("nan"), 1.0),
    case("an infinite operand", Freedom.NOT_FINITE, op(A, "+", B), float("inf"), 1.0),
    case("an overflow", Freedom.NOT_FINITE, op(A, "*", B), 2.0**100, 2.0**100),
    case("a sum that rounds down from beyond", Freedom.NOT_FINITE, op(A, "+", B), 2.0**128 - 2.0**104, 2.0**80),
    case("a quotient that may overflow", Freedom.NOT_FINITE, op(A, "/", B), 2.0**128 - 2.0**104, 1.0),
    case("a comparison with infinity", Freedom.NOT_FINITE, op(A, "<", B), 1.0, float("inf")),
    case("an infinity as an integer", Freedom.NOT_FINITE, Convert(A, I32), float("inf")),
    case("a NaN as an integer", Freedom.NOT_FINITE, Convert(A, U32), float("nan")),
    case("the minimum of a NaN", Freedom.NAN_ORDER, builtin("min", A, B), float("nan"), 1.0),
    case("a clamped NaN", Freedom.NAN_ORDER, builtin("clamp", A, B, C), float("nan"), -1.0, 1.0),
    case("a NaN equal to itself", Freedom.NAN_ORDER, op(A, "==", A), float("nan")),
    case("a NaN above a number", Freedom.NAN_ORDER, op(A, ">", B), float("nan"), 1.0),
    case("a product and a sum", Freedom.FUSION, PRODUCT_SUM, *FUSED),
    case("a sum and a product", Freedom.FUSION, op(C, "+", op(A, "*", B)), *FUSED),
    case("a number less a product", Freedom.FUSION, op(C, "-", op(A, "*", B)), FUSED[0], FUSED[1], -FUSED[2]),
    Case("a product that has a name", Freedom.FUSION, NAMED, (FUSED[0], FUSED[1], -FUSED[2])),
    case("fma in two roundings", Freedom.FUSION, builtin("fma", A, B, C), *FUSED),
    case("a difference and a product", Freedom.DISTRIBUTION, op(op(A, "-", B), "*", C), 2.0**24, 2.0**24 - 1, 1 / 3),
    case("a factor before a sum", Freedom.DISTRIBUTION, op(C, "*", op(A, "+", B)), 2.0**24, 1 - 2.0**24, 1 / 3),
    case("a great number added and taken away", Freedom.REASSOCIATION, op(op(A, "+", B), "-", C), 2.5, 2.0**23, 2.0**23),
    case("a sum of a sum", Freedom.REASSOCIATION, op(A, "+", op(B, "+", C)), 2.0**24, 1.0, 1.0),
    case("a product of a product", Freedom.REASSOCIATION, op(op(A, "*", B), "*", C), 1.2, 1.1, 1.9),
    case("a quotient of a product", Freedom.REASSOCIATION, op(op(A, "*", B), "/", C), 1.1, 1.3, 1.7),
]  # fmt: skip


def only(freedom: Freedom, *, rounds_to_nearest: bool = False) -> list[Worst]:
    """Return the models with all freedoms but one taken away."""
    return [Worst(model.name, model.choice, model.quotients, rounds_to_nearest, frozenset({freedom})) for model in worst_models("strict")]


def result_bits(text: Function, values: tuple[float, ...], model: ArithmeticModel) -> int:
    value = evaluate_function(text, (), [np.array([value], np.float32) for value in values], model).value
    assert isinstance(value, np.ndarray)
    return int(value.astype(np.uint32)[0]) if value.dtype == np.bool_ else int(value.view(np.uint32)[0])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_freedom_alone_moves_a_result(case: Case) -> None:
    ieee = result_bits(case.text, case.values, IEEE)
    assert any(result_bits(case.text, case.values, model) != ieee for model in only(case.freedom))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_without_its_freedom_no_other_is_needed_to_move_it_back(case: Case) -> None:
    """A model without any freedom is `ieee`."""
    model = worst_models("strict")[0]
    none = Worst("none", model.choice, model.quotients, rounds_to_nearest=False, freedoms=frozenset())
    assert result_bits(case.text, case.values, none) == result_bits(case.text, case.values, IEEE)


def test_every_freedom_has_a_case() -> None:
    assert {case.freedom for case in CASES} | {Freedom.OUT_OF_BOUNDS} == ALL


@pytest.mark.parametrize("case", [case for case in CASES if case.freedom is Freedom.ROUNDING], ids=lambda case: case.title)
def test_rounding_to_nearest_keeps_normal_arithmetic_and_nothing_else(case: Case) -> None:
    ieee = result_bits(case.text, case.values, IEEE)
    moved = any(result_bits(case.text, case.values, model) != ieee for model in only(Freedom.ROUNDING, rounds_to_nearest=True))
    assert moved == (case.title in {"a conversion", "a literal"})


def test_rounding_to_nearest_is_not_relied_on_where_something_is_subnormal() -> None:
    (below,) = (model for model in only(Freedom.ROUNDING, rounds_to_nearest=True) if model.choice.direction.value == "down")
    product = expression(op(A, "*", B), a=F32, b=F32)
    assert result_bits(product, (1 - 2.0**-24, LEAST * (1 + 2.0**-23)), below) == 0x00800000
    assert result_bits(product, (1 - 2.0**-24, LEAST), below) == 0x007FFFFF


def random_pairs(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(7)
    x, y = (rng.integers(0, 1 << 32, count, dtype=np.uint32) for _ in range(2))
    near = rng.integers(0, 2, count) == 1
    return x.view(np.float32), np.where(near, (x ^ rng.integers(0, 1 << 25, count, dtype=np.uint32)), y).view(np.float32)


EXACTLY: Final = {"+": Fraction.__add__, "-": Fraction.__sub__, "*": Fraction.__mul__}


@pytest.mark.parametrize("operator", EXACTLY)
def test_arithmetic_is_rounded_to_a_neighbour(operator: str) -> None:
    x, y = random_pairs(400)
    for model in only(Freedom.ROUNDING):
        found = values_of(op(A, operator, B), (x, y), model)
        for a, b, got in zip(x, y, found, strict=True):
            with np.errstate(over="ignore"):
                sides = [np.nextafter(got, np.float32(end)) for end in (-np.inf, np.inf)]
            if np.isfinite([a, b, *sides]).all():
                exact = EXACTLY[operator](Fraction(float(a)), Fraction(float(b)))
                assert Fraction(float(sides[0])) < exact < Fraction(float(sides[1]))


def test_quotients_go_to_the_ends_of_what_is_allowed_and_not_beyond() -> None:
    x, y = random_pairs(600)
    directed = {model.choice.direction.value: model for model in only(Freedom.QUOTIENT)}
    up, down = (values_of(op(A, "/", B), (x, y), directed[which]) for which in ("up", "down"))
    checked = 0
    for a, b, high, low in zip(x, y, up, down, strict=True):
        with np.errstate(over="ignore"):
            ends = np.nextafter(high, np.float32(np.inf)), np.nextafter(low, np.float32(-np.inf))
        if not (np.isfinite([a, b, *ends]).all() and LEAST <= abs(b) <= 2.0**126):
            continue
        exact = Fraction(float(a)) / Fraction(float(b))
        bound = Fraction(5, 2) * unit_in_the_last_place(exact)
        assert abs(Fraction(float(high)) - exact) <= bound
        assert abs(Fraction(float(low)) - exact) <= bound
        assert all(abs(Fraction(float(end)) - exact) > bound for end in ends)
        checked += 1
    assert checked > 200


def unit_in_the_last_place(value: Fraction) -> Fraction:
    """Return the least distance of two f32 between which `value` lies."""
    nearest = np.float32(float(value))
    sides = [float(np.nextafter(nearest, np.float32(-np.inf))), float(nearest), float(np.nextafter(nearest, np.float32(np.inf)))]
    return min(Fraction(b) - Fraction(a) for a, b in pairwise(sides) if Fraction(a) <= value <= Fraction(b))


def values_of(value: Expr, args: tuple[NDArray[np.float32], ...], model: ArithmeticModel) -> NDArray[Any]:
    found = evaluate_function(text_of(value, len(args)), (), args, model).value
    assert isinstance(found, np.ndarray)
    return found


def test_boundaries_are_ties_of_integers_and_of_narrow_floats() -> None:
    values = np.array([2.4999, -126.501, 1.0625 + 2.0**-16, 1 + 2.0**-9 + 2.0**-11 + 2.0**-20, 300000.3], np.float32)
    assert nearest_boundary(values).tolist() == [2.5, -126.5, 1.0625, 1 + 2.0**-9 + 2.0**-11, 300000.5]


def test_toward_goes_across_the_boundary_and_away_from_it() -> None:
    x, y = np.array([2.4999998, 2.5000002], np.float32), np.ones(2, np.float32)
    models = {model.name: model for model in only(Freedom.QUOTIENT)}
    quotient = op(A, "/", B)
    assert (values_of(quotient, (x, y), models["worst, toward"]) > 2.5).tolist() == [True, False]
    assert (np.abs(values_of(quotient, (x, y), models["worst, away"]) - 2.5) > np.abs(x - 2.5)).all()


def test_random_models_differ_and_repeat() -> None:
    x, y = random_pairs(2000)
    with np.errstate(all="ignore"):
        found = [values_of(op(A, "/", B), (x, y), model).tobytes() for model in worst_models("strict")]
        again = [values_of(op(A, "/", B), (x, y), model).tobytes() for model in worst_models("strict")]
    assert found == again
    assert len(set(found)) == len(found)
    assert [model.name for model in worst_models("exact")] == [model.name for model in worst_models("strict")]


def test_lanes_are_answered_alike_whoever_stands_beside_them() -> None:
    x, y = random_pairs(1000)
    for model in worst_models("strict"):
        whole = values_of(PRODUCT_SUM, (x, y, x), model)
        parts = [values_of(PRODUCT_SUM, (x[lo : lo + 100], y[lo : lo + 100], x[lo : lo + 100]), model) for lo in range(0, 1000, 100)]
        assert whole.tobytes() == np.concatenate(parts).tobytes()


def test_an_operation_that_the_models_do_not_know_is_refused() -> None:
    with pytest.raises(EvaluationError, match="there is no exp2"):
        values_of(builtin("exp2", A), (np.ones(1, np.float32),), worst_models("strict")[0])
    with pytest.raises(TypeError):
        worst_models("strict")[0].adjust(builtin("exp2", A), (np.ones(1, np.float32),), np.ones(1, np.float32))


def test_accesses_out_of_bounds_trap_unless_they_may_stray() -> None:
    outside, far = program(*store_x(load(u(9)))), program(Store("y", u(7), X), workgroup=1)
    for strict in worst_models("strict"):
        with pytest.raises(EvaluationError, match="a load outside"):
            run(outside, [5], 4, model=strict)
        with pytest.raises(EvaluationError, match="a store outside"):
            run(far, [], 1, model=strict)
    straying = worst_models("strict", strays=True)
    assert len({tuple(run(outside, [5], 4, model=model)) for model in straying}) > len(straying) // 2
    assert all(run(far, [], 1, model=model) == [0] for model in straying)


def test_a_stray_store_may_land_at_either_end() -> None:
    body = program(Store("y", X, u(1)), Store("y", u(100), u(2)), workgroup=1)
    found = {tuple(run(body, [], 1, model=model)) for model in worst_models("strict", strays=True)}
    assert found == {(2,)}


def test_a_plain_quantization_depends_on_every_kind_of_model() -> None:
    """Native division, `round` and `clamp`, written by hand: what a kernel would be that trusts f32."""
    x, scale = (Bitcast(load(index), F32) for index in (X, u(64)))
    clamped = builtin("clamp", builtin("round", op(x, "/", scale)), Literal(0.0, F32), Literal(255.0, F32))
    plain = program(*store_x(Convert(clamped, U32)), workgroup=64)
    ties = ((np.arange(64) + 0.5) * np.float32(0.1)).astype(np.float32)
    words = np.append(ties, np.float32(0.1)).astype(np.float32).view(np.uint32)
    ieee = run(plain, words, 64)
    for mode in ("strict", "exact"):
        assert all(run(plain, words, 64, model=model) != ieee for model in worst_models(mode))


def test_comparisons_of_ordinary_numbers_are_right() -> None:
    x, y = (np.array(values, np.float32) for values in ([1.0, 2.0, -3.0], [1.0, 1.5, 4.0]))
    for operator, wanted in (("<", [False, False, True]), ("==", [True, False, False]), (">=", [True, True, False])):
        for model in worst_models("strict"):
            assert values_of(Binary(operator, A, B, BOOL), (x, y), model).tolist() == wanted
