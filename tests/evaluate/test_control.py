"""Statements, calls and structs under masks: each kind of node, in the smallest program that shows it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qgen.evaluate import EvaluationError, evaluate_function
from qgen.evaluate.compile_stmt import NARROW_LANES
from qgen.ir.nodes import (
    Assign,
    Call,
    Construct,
    Expr,
    Field,
    For,
    If,
    Invocation,
    Let,
    Read,
    Require,
    Return,
    Select,
    Stmt,
    Store,
    Typed,
    Uniform,
    Var,
    Write,
)
from qgen.ir.nodes import Op as TypedOp
from qgen.ir.program import Function
from qgen.ir.types import Int, Scalar, Struct
from tests.evaluate.build import BOOL, F32, I32, U32, UINT8, X, function, load, name, op, program, run, store_x, u

PAIR = Struct("Pair", (("low", U32), ("flag", BOOL)))
A = name("a")


def call_u32(function_: Function, *args: list[int], functions: tuple[Function, ...] = ()) -> list[int]:
    result = evaluate_function(function_, functions, [np.array(arg, np.uint32) for arg in args])
    assert not isinstance(result.value, dict)
    assert result.held.all()
    values: list[int] = result.value.tolist()
    return values


def test_let_name_load_store_and_invocation() -> None:
    assert run(program(*store_x(op(load(X), "*", u(3)))), [1, 2, 3, 4], 4) == [3, 6, 9, 12]


def test_invocation_y_and_uniform() -> None:
    at = op(op(Invocation("y"), "*", Uniform("stride")), "+", X)
    body = (Let("at", at), Store("y", name("at"), op(name("at"), "+", Uniform("base"))))
    of = program(*body, uniforms=("stride", "base"))
    assert run(of, [], 12, uniforms={"stride": 4, "base": 100}, workgroups=(1, 3, 1)) == list(range(100, 112))


def test_select_takes_a_side_a_lane() -> None:
    value = Select(op(X, "<", u(2)), u(7), load(X), U32)
    assert run(program(*store_x(value)), [1, 2, 3, 4], 4) == [7, 7, 3, 4]


def test_if_and_else_and_a_variable() -> None:
    body = (
        Var("v", u(1)),
        If(op(X, "==", u(2)), (Assign("v", op(name("v"), "+", u(10))),), (Assign("v", op(X, "*", u(2))),)),
        Store("y", X, name("v")),
    )
    assert run(program(*body), [], 4) == [0, 2, 11, 6]


def test_if_on_a_condition_that_every_lane_shares() -> None:
    body = (
        Var("v", u(1)),
        If(op(Uniform("n"), "==", u(2)), (Assign("v", u(5)),), (Assign("v", u(6)),)),
        Store("y", X, name("v")),
    )
    of = program(*body, uniforms=("n",))
    assert run(of, [], 4, uniforms={"n": 2}) == [5] * 4
    assert run(of, [], 4, uniforms={"n": 3}) == [6] * 4


def test_a_branch_shadows_a_name_and_leaves_it() -> None:
    body = (Let("v", X), If(op(X, ">", u(1)), (Let("v", u(9)), Var("w", name("v")), Assign("w", u(8)))), Store("y", X, name("v")))
    assert run(program(*body), [], 4) == [0, 1, 2, 3]


def test_early_return_of_the_entry_point() -> None:
    body = (If(op(X, ">=", u(3)), (Return(None),)), Store("y", X, load(X)))
    assert run(program(*body), [5, 6, 7], 3) == [5, 6, 7]


def test_loop_with_a_bound_a_lane() -> None:
    body = (
        Var("sum", u(0)),
        For("i", u(1), op(load(X), "+", u(1)), u(1), (Assign("sum", op(name("sum"), "+", name("i"))),)),
        Store("y", X, name("sum")),
    )
    assert run(program(*body), [0, 1, 4, 100], 4) == [0, 1, 10, 5050]


def test_stop_is_evaluated_before_each_round() -> None:
    body = (Var("n", u(10)), For("i", u(0), name("n"), u(3), (Assign("n", op(name("n"), "-", u(1))),)), Store("y", X, name("n")))
    assert run(program(*body), [], 4) == [7] * 4  # i = 0, 3, 6 with n = 10, 9, 8; then 9 < 7 is false


def test_nested_loops_and_a_return_from_within() -> None:
    inner = For("j", name("i"), u(5), u(2), (Assign("sum", op(op(name("sum"), "*", u(3)), "+", name("j"))),))
    leave = If(op(name("sum"), ">", load(X)), (Store("y", X, name("sum")), Return(None)))
    body = (Var("sum", u(0)), For("i", u(0), u(4), u(1), (inner, leave)), Store("y", X, u(999)))

    def expected(limit: int) -> int:
        total = 0
        for i in range(4):
            for j in range(i, 5, 2):
                total = total * 3 + j
            if total > limit:
                return total
        return 999

    limits = [0, 9, 10, 50, 91, 2000, 5000, 100000]
    assert run(program(*body, workgroup=8), limits, 8) == [expected(limit) for limit in limits]


def test_function_with_early_returns() -> None:
    body = (
        If(op(A, "<", u(2)), (Return(u(10)),)),
        If(op(A, "==", u(5)), (Return(u(20)),), (If(op(A, ">", u(7)), (Return(A),)),)),
        Let("b", op(A, "+", u(100))),
        Return(name("b")),
    )
    assert call_u32(function("f", {"a": U32}, U32, *body), [0, 1, 2, 5, 7, 8]) == [10, 10, 102, 20, 107, 8]


def test_function_that_returns_on_both_sides() -> None:
    body = (If(op(A, "<", u(2)), (Return(u(10)),), (Return(u(20)),)),)
    assert call_u32(function("f", {"a": U32}, U32, *body), [0, 2]) == [10, 20]


def test_calls_under_a_mask() -> None:
    square = function("square", {"a": U32}, U32, If(op(A, "==", u(3)), (Return(u(0)),)), Return(op(A, "*", A)))
    outer = function("outer", {"a": U32}, U32, If(op(A, ">", u(1)), (Return(Call("square", (A,), U32)),)), Return(u(7)))
    body = (If(op(X, "<", u(4)), store_x(Call("outer", (X,), U32))),)
    assert run(program(*body, functions=(outer, square), workgroup=8), [], 4) == [7, 7, 4, 0]


def test_structs() -> None:
    make = function(
        "make",
        {"a": U32},
        PAIR,
        If(op(A, "<", u(2)), (Return(Construct((u(5), op(A, "==", u(0))), PAIR)),)),
        Let("p", Construct((A, op(A, ">", u(2))), PAIR)),
        Return(Select(op(A, "==", u(9)), Construct((u(99), op(u(0), "==", u(0))), PAIR), name("p", PAIR), PAIR)),
    )
    take = function(
        "take", {"p": PAIR}, U32, Return(Select(Field(name("p", PAIR), "flag", BOOL), u(1000), Field(name("p", PAIR), "low", U32), U32))
    )
    made = evaluate_function(make, {}, [np.array([0, 1, 2, 3, 9], np.uint32)]).value
    assert isinstance(made, dict)
    assert {key: column.tolist() for key, column in made.items()} == {"low": [5, 5, 2, 3, 99], "flag": [True, False, False, True, True]}
    taken = evaluate_function(take, {}, [made]).value
    assert not isinstance(taken, dict)
    assert taken.tolist() == [1000, 5, 2, 1000, 1000]
    inner = Call("take", (Call("make", (X,), PAIR),), U32)
    assert run(program(*store_x(inner), functions=(make, take)), [], 4) == [1000, 5, 2, 1000]


def test_few_lanes_run_on_their_own_with_the_same_result() -> None:
    """Of many lanes few enter the branch, so that it runs on a narrow frame: variables, structs, returns and Requires come back."""
    lanes = NARROW_LANES * 4
    long: Expr = A
    for step in range(20):
        long = op(op(long, "*", u(3)), "+", u(step))
    rare = (
        Let("long", long),
        Require(op(A, "!=", u(64))),
        If(op(A, "==", u(128)), (Return(Construct((u(1), op(A, "==", A)), PAIR)),)),
        If(op(A, "==", u(192)), (Let("unused", long), Return(Construct((name("long"), op(A, "!=", A)), PAIR)))),
    )
    body = (If(op(op(A, "%", u(64)), "==", u(0)), rare), Return(Construct((A, op(A, ">", u(500))), PAIR)))
    result = evaluate_function(function("f", {"a": U32}, PAIR, *body), (), [np.arange(lanes, dtype=np.uint32)])
    value = 192
    for step in range(20):
        value = (value * 3 + step) % (1 << 32)
    assert isinstance(result.value, dict)
    low = list(range(lanes))
    low[128], low[192] = 1, value
    assert result.value["low"].tolist() == low
    assert result.value["flag"].tolist() == [lane > 500 or lane == 128 for lane in range(lanes)]
    assert np.flatnonzero(~result.held).tolist() == [64]


def test_require_shows_on_the_lanes_that_meet_it() -> None:
    partial = function("partial", {"a": U32}, U32, Require(op(A, "<", u(5))), Return(A))
    whole = function(
        "f", {"a": U32}, U32, If(op(A, "==", u(9)), (Return(u(0)),)), Require(op(A, "!=", u(2))), Return(Call("partial", (A,), U32))
    )
    result = evaluate_function(whole, [partial], [np.array([1, 2, 6, 9, 4], np.uint32)])
    assert result.held.tolist() == [True, False, False, True, True]
    shared = function("g", {"a": U32}, U32, Require(op(u(1), "==", u(2))), Return(A))
    assert evaluate_function(shared, (), [np.arange(3, dtype=np.uint32)]).held.tolist() == [False] * 3


CONDITION = op(u(1), "==", u(1))
STATEMENTS: dict[str, tuple[tuple[Stmt, ...], str]] = {
    "undeclared": ((Let("a", name("b")),), "b is not declared"),
    "twice": ((Let("a", u(1)), Var("a", u(1))), "a is declared twice in a block"),
    "name of another type": ((Let("a", u(1)), Let("b", name("a", I32))), "a is u32, not i32"),
    "out of scope": ((If(CONDITION, (Let("a", u(1)),)), Let("b", A)), "a is not declared"),
    "loop variable out of scope": ((For("a", u(0), u(1), u(1), ()), Let("b", A)), "a is not declared"),
    "assigned let": ((Let("a", u(1)), Assign("a", u(1))), "a is not a variable of that type"),
    "assigned another type": ((Var("a", u(1)), Assign("a", CONDITION)), "a is not a variable of that type"),
    "condition u32": ((If(u(1), ()),), "Literal of type u32 where bool is expected"),
    "select condition": ((Let("a", Select(u(1), u(1), u(1), U32)),), "Literal of type u32 where bool is expected"),
    "select sides": ((Let("a", Select(CONDITION, u(1), CONDITION, U32)),), "the sides of a select differ in type"),
    "loop with step 0": ((For("a", u(0), u(1), u(0), ()),), "a loop with step 0"),
    "store of a bool": ((Store("y", u(0), CONDITION),), "Binary of type bool where u32 is expected"),
    "return of a value": ((Return(u(1)),), "a Return whose value is not the result"),
    "field": (
        (Let("a", Construct((u(1), CONDITION), PAIR)), Let("b", Field(name("a", PAIR), "high", U32))),
        "Pair has no field high of type u32",
    ),
    "construct": ((Let("a", Construct((CONDITION, u(1)), PAIR)),), "the arguments are not the fields of Pair"),
    "invocation z": ((Let("a", Invocation("z")),), "invocation id .z is not to be had"),
    "require": ((Require(CONDITION),), "Require is not a statement of an entry point"),
    "typed": ((Let("a", Typed(TypedOp.ABS, (u(1),), Int(0, 1))),), "Typed is not a node of the LEGAL stage"),
    "read": ((Let("a", Read("x", UINT8)),), "Read is not a node of the LEGAL stage"),
    "write": ((Write("y", u(1)),), "Write is not a node of the LEGAL stage"),
}


@pytest.mark.parametrize("key", STATEMENTS)
def test_a_text_that_is_not_legal_is_an_error(key: str) -> None:
    body, message = STATEMENTS[key]
    with pytest.raises(EvaluationError) as caught:
        run(program(*body), [], 0)
    assert caught.value.message == message
    assert caught.value.kernel == "main"


@pytest.mark.parametrize(
    ("body", "result", "message"),
    [
        pytest.param((If(op(A, "<", u(2)), (Return(A),)),), U32, "a Return is missing on a path", id="else"),
        pytest.param((If(op(A, "<", u(2)), (), (Return(A),)),), U32, "a Return is missing on a path", id="then"),
        pytest.param((Let("b", A),), U32, "a Return is missing on a path", id="none"),
        pytest.param((Return(None),), U32, "a Return whose value is not the result", id="no-value"),
        pytest.param((Return(A),), F32, "a Return whose value is not the result", id="type"),
        pytest.param((Return(Invocation("x")),), U32, "invocation id .x is not to be had", id="invocation"),
        pytest.param((Return(Call("g", (A,), U32)),), U32, "a call of g, which is missing", id="missing"),
        pytest.param((Return(Call("h", (), U32)),), U32, "a call of h with other types than its own", id="types"),
        pytest.param((Return(Call("h", (A,), U32)),), U32, "h calls itself", id="recursion"),
        pytest.param((Return(load(A)),), U32, "a function that loads, stores or reads a uniform", id="load"),
    ],
)
def test_a_function_that_is_not_legal_is_an_error(body: tuple[Stmt, ...], result: Scalar, message: str) -> None:
    recursive: Expr = Call("h", (A,), U32)
    with pytest.raises(EvaluationError) as caught:
        evaluate_function(
            function("f", {"a": U32}, result, *body), [function("h", {"a": U32}, U32, Return(recursive))], [np.zeros(1, np.uint32)]
        )
    assert caught.value.message == message


def test_arguments_are_checked() -> None:
    f = function("f", {"a": U32, "b": U32}, U32, Return(op(A, "+", name("b"))))
    one, three = np.zeros(1, np.uint32), np.zeros(3, np.uint32)
    assert evaluate_function(f, (), [one, three]).held.shape == (3,)
    two, signed, square = np.zeros(2, np.uint32), np.zeros(1, np.int32), np.zeros((1, 1), np.uint32)
    cases: list[list[npt.NDArray[Any] | dict[str, npt.NDArray[Any]]]] = [
        [one],
        [one, signed],
        [one, square],
        [three, two],
        [three, np.zeros(0, np.uint32)],
        [one, {"low": one}],
    ]
    for args in cases:
        with pytest.raises(EvaluationError, match="argument"):
            evaluate_function(f, (), args)
