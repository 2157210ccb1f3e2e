"""Folding of one node: the value stays, no float is touched, and nothing is folded that a compiler would refuse."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.evaluate import evaluate_function
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_node
from qgen.ir.program import Function, Param
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import Scalar
from tests.ir.every_node import BOOL, F32, I32, U32, name, u
from tests.ir.random_exprs import NAMES, random_expr

A, M, F = name("a"), name("m", I32), name("f", F32)


def i(value: int) -> ir.Literal:
    return ir.Literal(value, I32)


def f(value: float) -> ir.Literal:
    return ir.Literal(value, F32)


def binary(op: str, lhs: ir.Expr, rhs: ir.Expr, type_: Scalar = U32) -> ir.Expr:
    return ir.Binary(op, lhs, rhs, type_)


@pytest.mark.parametrize(
    ("expr", "folded"),
    [
        (binary("+", u(0xFFFFFFFF), u(2)), u(1)),
        (binary("-", u(1), u(2)), u(0xFFFFFFFF)),
        (binary("*", u(0x10000), u(0x10000)), u(0)),
        (binary("/", u(7), u(2)), u(3)),
        (binary("%", u(7), u(4)), u(3)),
        (binary("<<", u(3), u(31)), u(0x80000000)),
        (binary(">>", u(8), u(3)), u(1)),
        (binary("&", u(6), u(3)), u(2)),
        (binary("|", u(6), u(3)), u(7)),
        (binary("^", u(6), u(3)), u(5)),
        (binary("+", i(2), i(-3), I32), i(-1)),
        (binary("*", i(-2), i(3), I32), i(-6)),
        (binary("+", A, u(0)), A),
        (binary("+", u(0), A), A),
        (binary("-", A, u(0)), A),
        (binary("|", u(0), A), A),
        (binary("<<", A, u(0)), A),
        (binary(">>", M, u(0), I32), M),
        (binary("*", A, u(1)), A),
        (binary("*", i(1), M, I32), M),
        (binary("/", A, u(1)), A),
        (binary("%", A, u(1)), u(0)),
        (binary("*", A, u(0)), u(0)),
        (binary("&", A, u(0)), u(0)),
    ],
)
def test_what_is_folded(expr: ir.Expr, folded: ir.Expr) -> None:
    assert fold_node(expr) == folded


@pytest.mark.parametrize(
    "expr",
    [
        binary("/", u(1), u(0)),
        binary("%", u(1), u(0)),
        binary("<<", u(1), u(32)),
        binary("+", i((1 << 31) - 1), i(1), I32),
        binary("-", u(0), A),
        binary("-", i(0), M, I32),
        binary("%", M, i(1), I32),
        binary("+", F, f(0.0), F32),
        binary("+", f(0.0), F, F32),
        binary("-", F, f(0.0), F32),
        binary("*", F, f(1.0), F32),
        binary("*", f(1.0), F, F32),
        binary("*", F, f(0.0), F32),
        binary("+", f(1.0), f(2.0), F32),
        binary("==", u(1), u(1), BOOL),
        binary("&&", ir.Literal(value=False, type=BOOL), name("p", BOOL), BOOL),
        ir.Unary("-", i(1), I32),
        A,
        u(1),
    ],
)
def test_what_is_left(expr: ir.Expr) -> None:
    assert fold_node(expr) is expr


def with_constants(rng: random.Random, expr: ir.Expr) -> ir.Expr:
    """Return the expression with half of its integer names as constants that fold."""

    def change(node: ir.Expr) -> ir.Expr:
        if isinstance(node, ir.Name) and node.type in {U32, I32} and rng.random() < 0.5:
            return ir.Literal(rng.choice((0, 1, 2, 3)), node.type)
        return node

    return map_expr(expr, change)


def total(expr: ir.Expr) -> bool:
    """Whether nothing in it traps: no division, no shift but by a small constant; and nothing that a function has not."""
    match expr:
        case ir.Binary("/" | "%", _, _, Scalar.U32 | Scalar.I32) | ir.Load() | ir.Uniform() | ir.Invocation() | ir.Call():
            return False
        case ir.Binary("<<" | ">>", _, rhs, _):
            return isinstance(rhs, ir.Literal)
        case _:
            return True


def value_of(expr: ir.Expr, args: Mapping[tuple[str, Scalar], NDArray[Any]]) -> NDArray[Any]:
    assert isinstance(expr.type, Scalar)
    function = Function("g", tuple(Param(each, type_) for each, type_ in args), expr.type, (ir.Return(expr),))
    value = evaluate_function(function, (), list(args.values())).value
    assert isinstance(value, np.ndarray)
    return value


def test_the_value_of_a_random_expression_stays() -> None:
    rng = random.Random(11)
    columns = {
        BOOL: np.array([True, False, True]),
        U32: np.array([0, 5, 0xFFFFFFFF], np.uint32),
        I32: np.array([0, -7, 1 << 20], np.int32),
        F32: np.array([0.0, -1.5, 3e38], np.float32),
    }
    names = [(each, type_) for type_, group in NAMES.items() for each in group]
    args = {(each, type_): np.roll(columns[type_], number) for number, (each, type_) in enumerate(names)}
    changed = 0
    for number in range(1500):
        expr = with_constants(rng, random_expr(rng, rng.choice((U32, I32)), 1 + number % 3))
        folded = map_expr(expr, fold_node)
        if all(map(total, walk_expr(expr))) and all(map(total, walk_expr(folded))):
            assert np.array_equal(value_of(expr, args), value_of(folded, args), equal_nan=True)
            changed += folded is not expr
    assert changed > 100
