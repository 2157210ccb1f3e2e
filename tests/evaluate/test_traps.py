"""Every trap, each beside the nearest program that does not trap: so the trap, and nothing else, tells them apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from qgen.evaluate import EvaluationError, evaluate_kernel
from qgen.ir.nodes import Binary, Bitcast, Expr, For, If, Invocation, Let, Load, Name, Return, Select, Stmt, Store, Uniform, Var
from qgen.ir.types import Scalar
from tests.evaluate.build import I32, U32, X, load, name, op, program, run, store_x, u

FIRST_HALF = op(X, "<", u(2))
NOT_FIRST = op(X, "!=", u(0))
CLASH = "a store to a word that another invocation stores"
NOT_OWN = "a load of a word that the invocation has not stored"


@dataclass(frozen=True)
class Case:
    """A body that traps and its sound twin, on x = [0, 1, 2, 3] and `size` words of y, by groups of four invocations."""

    trap: tuple[Stmt, ...]
    sound: tuple[Stmt, ...]
    message: str
    buffer: str | None = None
    index: int | None = None
    invocation: tuple[int, int, int] | None = None
    size: int = 4
    workgroups: tuple[int, int, int] = (1, 1, 1)
    sound_workgroups: tuple[int, int, int] | None = None
    uniforms: dict[str, int] = field(default_factory=dict)


def guarded(condition: Expr, *body: Stmt) -> tuple[Stmt, ...]:
    """Return the body under a condition, after every word of y is stored."""
    return (Store("y", X, u(0)), If(condition, body))


def division(operator: str, type_: Scalar) -> Stmt:
    """Return 7 divided by x[x], in a type."""
    a, b = (u(7), load(X)) if type_ is U32 else (Bitcast(u(7), I32), Bitcast(load(X), I32))
    return Let("q", Binary(operator, a, b, type_))


def divided(operator: str, type_: Scalar) -> Case:
    return Case(
        guarded(FIRST_HALF, division(operator, type_)),
        guarded(NOT_FIRST, division(operator, type_)),
        "an integer division by zero",
        invocation=(0, 0, 0),
    )


def shifted(operator: str) -> Case:
    shift = Let("s", op(load(X), operator, op(X, "+", u(30))))
    return Case(guarded(NOT_FIRST, shift), guarded(FIRST_HALF, shift), "a shift by 32 or more", invocation=(2, 0, 0))


CASES = {
    "load": Case(store_x(load(op(X, "+", u(1)))), store_x(load(X)), "a load outside the 4 words", "x", 4, (3, 0, 0)),
    "load under a mask": Case(
        guarded(NOT_FIRST, Let("a", load(op(X, "+", u(2))))),
        guarded(FIRST_HALF, Let("a", load(op(X, "+", u(2))))),
        "a load outside the 4 words",
        "x",
        4,
        (2, 0, 0),
    ),
    "load in the side of a select that is not taken": Case(
        store_x(Select(FIRST_HALF, load(op(X, "+", u(2))), u(0), U32)),
        (If(FIRST_HALF, store_x(load(op(X, "+", u(2)))), store_x(u(0))),),
        "a load outside the 4 words",
        "x",
        4,
        (2, 0, 0),
    ),
    "load at an index that every lane shares": Case(
        store_x(load(u(4))), store_x(load(u(3))), "a load outside the 4 words", "x", 4, (0, 0, 0)
    ),
    "load after a wrap": Case(
        store_x(load(op(X, "-", u(1)))),
        guarded(NOT_FIRST, Let("a", load(op(X, "-", u(1))))),
        "a load outside the 4 words",
        "x",
        2**32 - 1,
        (0, 0, 0),
    ),
    "store": Case(
        (Store("y", op(X, "+", u(1)), u(1)),), (Store("y", op(u(3), "-", X), u(1)),), "a store outside the 4 words", "y", 4, (3, 0, 0)
    ),
    "store past the guard": Case(
        (If(op(X, ">", u(4)), (Return(None),)), Store("y", X, u(1))),
        (If(op(X, ">", u(3)), (Return(None),)), Store("y", X, u(1))),
        "a store outside the 4 words",
        "y",
        4,
        (4, 0, 0),
        workgroups=(2, 1, 1),
    ),
    "two invocations at once": Case((Store("y", op(X, "/", u(2)), X),), store_x(X), CLASH, "y", 0, (0, 0, 0)),
    "two invocations with one value": Case((Store("y", u(0), u(1)),), store_x(u(1)), CLASH, "y", 0, (0, 0, 0)),
    "two invocations one after the other": Case(
        (Store("y", X, u(1)), If(op(X, "==", u(3)), (Store("y", u(2), u(1)),))),
        (Store("y", X, u(1)), If(op(X, "==", u(3)), (Store("y", u(3), u(2)), Store("y", u(3), u(1))))),
        CLASH,
        "y",
        2,
        (3, 0, 0),
    ),
    "two invocations in y": Case(
        (Store("y", X, u(1)),),
        (Store("y", op(X, "+", op(Invocation("y"), "*", u(4))), u(1)),),
        CLASH,
        "y",
        0,
        (0, 0, 0),
        size=8,
        workgroups=(1, 2, 1),
    ),
    "two invocations in z": Case(store_x(u(1)), store_x(u(1)), CLASH, "y", 0, (0, 0, 0), workgroups=(1, 1, 2), sound_workgroups=(1, 1, 1)),
    "two invocations in two rounds of a loop": Case(
        (For("i", u(0), u(2), u(1), (Store("y", op(op(X, "+", name("i")), "%", u(4)), u(1)),)),),
        (For("i", u(0), u(2), u(1), (Store("y", X, name("i")),)),),
        CLASH,
        "y",
        1,
        (0, 0, 0),
    ),
    "word never stored": Case((If(op(X, "<", u(3)), (Store("y", X, u(1)),)),), store_x(u(1)), "1 of 4 words are never stored", "y", 3),
    "no store": Case((Let("a", u(1)),), store_x(u(1)), "no word is ever stored", "y", 0),
    "no invocation": Case(
        store_x(u(1)), store_x(u(1)), "4 of 4 words are never stored", "y", 0, workgroups=(0, 1, 1), sound_workgroups=(1, 1, 1)
    ),
    "load of an output before its store": Case(
        (Let("a", Load("y", X)), Store("y", X, u(1))), (Store("y", X, u(1)), Let("a", Load("y", X))), NOT_OWN, "y", 0, (0, 0, 0)
    ),
    "load of an output that another invocation stores": Case(
        (Store("y", X, u(1)), Let("a", Load("y", op(X, "^", u(1))))),
        (Store("y", X, u(1)), Let("a", Load("y", X))),
        NOT_OWN,
        "y",
        1,
        (0, 0, 0),
    ),
    "store to an input": Case((Store("x", X, u(1)), *store_x(u(1))), store_x(u(1)), "a store to an input", "x"),
    "buffer that is not there": Case(store_x(Load("w", X)), store_x(load(X)), "a buffer that is not bound", "w"),
    "uniform that is not there": Case(store_x(Uniform("m")), store_x(Uniform("n")), "the uniform m is missing", uniforms={"m": 1, "n": 1}),
    "uniform out of range": Case(
        store_x(Uniform("large")),
        store_x(Uniform("n")),
        "the uniform large is 4294967296, not a u32",
        uniforms={"large": 2**32, "n": 2**32 - 1},
    ),
    "negative workgroups": Case(
        store_x(X), store_x(X), "(-1, 1, 1) workgroups of 4 invocations", workgroups=(-1, 1, 1), sound_workgroups=(1, 1, 1)
    ),
    "loop variable": Case(
        (Store("y", X, u(0)), For("i", op(u(2**32 - 3), "-", X), u(2**32 - 1), u(3), ())),
        (Store("y", X, u(0)), For("i", op(u(2**32 - 7), "-", X), u(2**32 - 4), u(3), ())),
        "a loop variable passes 2^32",
        invocation=(0, 0, 0),
    ),
    "loop step": Case(
        (Store("y", X, u(0)), Var("by", op(u(2), "-", X)), For("i", u(0), u(9), Name("by", U32), ())),
        (Store("y", X, u(0)), Var("by", op(u(9), "-", X)), For("i", u(0), u(9), Name("by", U32), ())),
        "a loop does not advance",
        invocation=(2, 0, 0),
    ),
    **{f"division {operator} {type_.value}": divided(operator, type_) for operator in ("/", "%") for type_ in (U32, I32)},
    **{f"shift {operator}": shifted(operator) for operator in ("<<", ">>")},
}


def evaluate(body: tuple[Stmt, ...], case: Case, workgroups: tuple[int, int, int]) -> list[int]:
    return run(program(*body, uniforms=("n", "large")), [0, 1, 2, 3], case.size, uniforms=case.uniforms, workgroups=workgroups)


@pytest.mark.parametrize("key", CASES)
def test_trap(key: str) -> None:
    case = CASES[key]
    with pytest.raises(EvaluationError) as caught:
        evaluate(case.trap, case, case.workgroups)
    error = caught.value
    assert (error.message, error.buffer, error.index) == (case.message, case.buffer, case.index)
    assert error.invocation == case.invocation
    assert error.kernel == "main"


@pytest.mark.parametrize("key", CASES)
def test_sound_twin_does_not_trap(key: str) -> None:
    case = CASES[key]
    assert len(evaluate(case.sound, case, case.sound_workgroups or case.workgroups)) == case.size


def test_message_names_kernel_buffer_index_and_invocation() -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluate(CASES["load"].trap, CASES["load"], (1, 1, 1))
    assert str(caught.value) == "a load outside the 4 words (main, buffer x, index 4, invocation (3, 0, 0))"


def test_words_are_u32_of_one_dimension_and_bound() -> None:
    of = program(*store_x(load(X)))
    good = np.zeros(4, np.uint32)
    for x in (np.zeros(4, np.int64), np.zeros((2, 2), np.uint32)):
        with pytest.raises(EvaluationError, match="dimensions"):
            evaluate_kernel(of, of.kernels[0], {"x": np.asarray(x), "y": good}, {}, (1, 1, 1))
    with pytest.raises(EvaluationError, match="not bound"):
        evaluate_kernel(of, of.kernels[0], {"x": good}, {}, (1, 1, 1))
