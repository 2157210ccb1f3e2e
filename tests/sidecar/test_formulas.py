"""The formulas of a sidecar: values by hand, values of random trees, and each way to have no value."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgen.errors import QgenError
from qgen.sidecar.formulas import GREATEST, OPERATIONS, Formula, evaluate_formula

SHAPES = {"x": (2, 3, 5, 7), "blocks": (2, 3, 9, 7), "turned": (3, 2, 5, 7), "s": (3,), "scalar": (), "empty": (4, 0)}

VALUES: list[tuple[Formula, int]] = [
    (7, 7),
    (-7, -7),
    (["add", 2, 3], 5),
    (["add", 2, 3, 4], 9),
    (["sub", 2, 3], -1),
    (["mul", 2, 3, 5], 30),
    (["floor_div", 7, 2], 3),
    (["floor_div", 0, 2], 0),
    (["ceil_div", 7, 2], 4),
    (["ceil_div", 8, 2], 4),
    (["ceil_div", 0, 2], 0),
    (["mod", 7, 4], 3),
    (["min", 7, 4, 9], 4),
    (["max", 7, 4, 9], 9),
    (["eq", 4, 4], 1),
    (["eq", 4, 5], 0),
    (["le", 4, 4], 1),
    (["le", 5, 4], 0),
    (["and", 3, 5], 1),
    (["and", 3, 0], 0),
    (["or", 0, 5], 1),
    (["or", 0, 0], 0),
    (["numel", "x"], 210),
    (["numel", "scalar"], 1),
    (["numel", "empty"], 0),
    (["rank", "x"], 4),
    (["rank", "scalar"], 0),
    (["dim", "x", 0], 2),
    (["dim", "x", -1], 7),
    (["dim", "x", ["sub", ["rank", "x"], 2]], 5),
    (["prod_dims", "x", 1, 3], 15),
    (["prod_dims", "x", 2, 99], 35),
    (["prod_dims", "x", 0, -1], 30),
    (["prod_dims", "x", 3, 1], 1),
    (["prod_dims", "scalar", 0, 9], 1),
    (["same_dims_except", "x", "blocks", 2], 1),
    (["same_dims_except", "blocks", "x", -2], 1),
    (["same_dims_except", "x", "blocks", ["sub", ["rank", "x"], 2]], 1),
    (["same_dims_except", "x", "blocks", 3], 0),
    (["same_dims_except", "x", "blocks", 4], 0),
    (["same_dims_except", "x", "blocks", -6], 0),
    (["same_dims_except", "x", "turned", 0], 0),
    (["same_dims_except", "x", "turned", -1], 0),
    (["same_dims_except", "x", "x", 99], 1),
    (["same_dims_except", "x", "s", 0], 0),
    (["same_dims_except", "empty", "s", 0], 0),
    (["same_dims_except", "scalar", "s", 0], 0),
    (["same_dims_except", "s", "scalar", 0], 0),
    (["same_dims_except", "scalar", "scalar", 0], 1),
    (["mul", 4, ["ceil_div", "N", 4]], 212),
    (GREATEST, 1 << 53),
]


@pytest.mark.parametrize(("formula", "value"), VALUES, ids=str)
def test_a_formula_has_its_value(formula: Formula, value: int) -> None:
    assert evaluate_formula(formula, SHAPES, {"M": "N", "N": ["numel", "x"]}) == value


def test_every_operation_is_tried() -> None:
    assert {formula[0] for formula, _ in VALUES if isinstance(formula, list)} == set(OPERATIONS)


FAULTS: list[tuple[object, str]] = [
    (["pow", 2, 3], "there is no operation `pow`"),
    ([], "neither an integer"),
    ([1, 2], "neither an integer"),
    ({"add": 1}, "neither an integer"),
    (None, "neither an integer"),
    (1.5, "neither an integer"),
    (True, "a boolean"),
    (["add", 1], "another number of operands"),
    (["sub", 1], "another number of operands"),
    (["sub", 1, 2, 3], "another number of operands"),
    (["numel"], "another number of operands"),
    (["numel", "x", 1], "another number of operands"),
    (["numel", 1], "another number of operands"),
    (["dim", "x"], "another number of operands"),
    (["prod_dims", "x", 1], "another number of operands"),
    (["same_dims_except", "x", 1], "another number of operands"),
    (["same_dims_except", "x", 1, 2], "another number of operands"),
    (["same_dims_except", "x", "s"], "another number of operands"),
    (["same_dims_except", "x", "s", 1, 2], "another number of operands"),
    (["same_dims_except", "x", "s", "nothing"], "no such name"),
    (["floor_div", 1, 0], "divides 1 by 0"),
    (["ceil_div", 1, 0], "divides 1 by 0"),
    (["mod", 1, 0], "divides 1 by 0"),
    (["mod", -1, 2], "divides -1 by 2"),
    (["floor_div", 1, -2], "divides 1 by -2"),
    (["dim", "x", 4], "has rank 4"),
    (["dim", "x", -5], "has rank 4"),
    (["dim", "scalar", 0], "has rank 0"),
    (GREATEST + 1, "beyond 2^53"),
    (["mul", GREATEST, 2], "beyond 2^53"),
    (["sub", -1, GREATEST], "beyond 2^53"),
    (["mul", ["mul", GREATEST, 2], 0], "beyond 2^53"),
    ("nothing", "no such name"),
    ("4", "no such name"),
    ("self", "defined by itself"),
    ("ping", "defined by itself"),
    ("deep", "nested deeper"),
]


@pytest.mark.parametrize(("formula", "reason"), FAULTS, ids=str)
def test_a_formula_without_a_value_says_why(formula: Any, reason: str) -> None:  # noqa: ANN401 - what no type allows is tried too
    deep: Formula = 1
    for _ in range(200):
        deep = ["add", deep, 1]
    let: dict[str, Formula] = {"self": ["add", "self", 1], "ping": ["mul", 2, "pong"], "pong": "ping", "deep": deep}
    with pytest.raises(QgenError) as caught:
        evaluate_formula(formula, SHAPES, let)
    assert caught.value.code == "QG600"
    assert reason in caught.value.message


def test_a_missing_shape_is_named() -> None:
    with pytest.raises(QgenError, match="shape of `w`") as caught:
        evaluate_formula(["numel", "w"], SHAPES, {})
    assert caught.value.code == "QG603"
    with pytest.raises(QgenError, match="shape of `w`") as caught:
        evaluate_formula(["same_dims_except", "x", "w", 0], SHAPES, {})
    assert caught.value.code == "QG603"


def test_a_name_that_is_not_used_needs_no_value() -> None:
    assert evaluate_formula("N", SHAPES, {"N": ["numel", "x"], "never": ["mod", 1, 0]}) == 210


def test_a_name_is_computed_once() -> None:
    let: dict[str, Formula] = {"n0": 1} | {f"n{i}": ["add", f"n{i - 1}", f"n{i - 1}"] for i in range(1, 50)}
    assert evaluate_formula("n49", {}, let) == 1 << 49


_LEAVES = st.one_of(
    st.integers(0, 1000).map(lambda value: (value, value)),
    st.sampled_from(sorted(SHAPES)).map(lambda name: (["numel", name], prod(SHAPES[name]))),
    st.sampled_from(sorted(SHAPES)).map(lambda name: (["rank", name], len(SHAPES[name]))),
)


def _grow(children: st.SearchStrategy[tuple[Any, int]]) -> st.SearchStrategy[tuple[Any, int]]:
    def combine(operation: str, left: tuple[Any, int], right: tuple[Any, int]) -> tuple[Any, int]:
        (a, x), (b, y) = left, right
        match operation:
            case "add":
                return ["add", a, b], x + y
            case "min":
                return ["min", a, b], min(x, y)
            case "max":
                return ["max", a, b], max(x, y)
            case "eq":
                return ["eq", a, b], 1 if x == y else 0
            case "le":
                return ["le", a, b], 0 if x > y else 1
            case "mod":
                return ["mod", a, ["add", b, 1]], x - x // (y + 1) * (y + 1)
            case _:
                return ["ceil_div", a, ["add", b, 1]], x // (y + 1) + (x % (y + 1) > 0)

    return st.builds(combine, st.sampled_from(["add", "min", "max", "eq", "le", "mod", "ceil_div"]), children, children)


@given(st.recursive(_LEAVES, _grow, max_leaves=20))
def test_random_formulas_have_the_value_that_builds_up_beside_them(pair: tuple[Formula, int]) -> None:
    formula, value = pair
    assert evaluate_formula(formula, SHAPES, {}) == value
    assert evaluate_formula("named", SHAPES, {"named": formula}) == value
