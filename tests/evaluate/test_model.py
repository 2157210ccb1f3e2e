"""What a model can change: every f32 operation and nothing else, and accesses out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qgen.evaluate import Ieee, evaluate_function
from qgen.evaluate.model import Array, Words
from qgen.ir.nodes import Binary, Bitcast, Builtin, Convert, Expr, Literal, Select, Store, Unary
from tests.evaluate.build import F32, I32, U32, X, expression, load, name, op, program, run, store_x, u


class Recording(Ieee):
    """Notes what it is asked, and adds one unit in the last place to every f32."""

    def __init__(self) -> None:
        self.asked: list[tuple[Expr, tuple[Any, ...], Any]] = []

    def adjust(self, node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        self.asked.append((node, tuple(operand.tolist() for operand in operands), ieee.tolist()))
        return np.nextafter(ieee, np.float32(np.inf)) if ieee.dtype == np.float32 else ieee


A, B = name("a", F32), name("b", F32)
CASES = [
    pytest.param(op(A, "+", B), 3.5, id="sum"),
    pytest.param(op(A, "/", B), 0.75, id="quotient"),
    pytest.param(op(A, "<", B), True, id="comparison"),
    pytest.param(Unary("-", A, F32), -1.5, id="negation"),
    pytest.param(Builtin("max", (A, B), F32), 2.0, id="maximum"),
    pytest.param(Convert(A, I32), 1, id="to-i32"),
    pytest.param(Convert(u(7), F32), 7.0, id="from-u32"),
    pytest.param(Bitcast(A, U32), 0x3FC00000, id="bits-of"),
    pytest.param(Bitcast(u(0x3FC00000), F32), 1.5, id="from-bits"),
    pytest.param(Literal(1.5, F32), 1.5, id="literal"),
]


@pytest.mark.parametrize(("node", "ieee"), CASES)
def test_the_model_has_the_last_word_on_f32(node: Expr, ieee: float) -> None:
    model = Recording()
    args = [np.array([1.5], np.float32), np.array([2.0], np.float32)]
    result = evaluate_function(expression(node, a=F32, b=F32), (), args, model).value
    assert not isinstance(result, dict)
    assert [(asked, value) for asked, _, value in model.asked] == [(node, [ieee])]
    expected = np.nextafter(np.float32(ieee), np.float32(np.inf)) if node.type is F32 else ieee
    assert result.tolist() == [expected]


def test_the_model_sees_the_operands() -> None:
    model = Recording()
    args = [np.array([1.5, 8.0], np.float32), np.array([2.0], np.float32)]
    evaluate_function(expression(op(A, "*", B), a=F32, b=F32), (), args, model)
    assert [operands for _, operands, _ in model.asked] == [([1.5, 8.0], [2.0])]


def test_the_model_is_not_asked_about_integers() -> None:
    model = Recording()
    value = Bitcast(Binary("/", Convert(op(name("a"), "+", u(3)), I32), Literal(2, I32), I32), U32)
    evaluate_function(expression(value, a=U32), (), [np.array([5], np.uint32)], model)
    assert model.asked == []


class Stray(Ieee):
    """Loads out of bounds give 77, stores out of bounds go to word 3."""

    def load_outside(self, words: Words, index: Words) -> Words:
        assert (index >= words.size).all()
        return np.full(index.size, 77, np.uint32)

    def store_outside(self, size: int, index: Words) -> Words:
        assert (index >= size).all()
        return np.full(index.size, size - 1, np.uint32)


def test_the_model_may_give_words_out_of_bounds() -> None:
    assert run(program(*store_x(load(op(X, "*", u(2))))), [5, 6, 7], 4, model=Stray()) == [5, 7, 77, 77]
    assert run(program(*store_x(load(u(9)))), [5], 4, model=Stray()) == [77] * 4
    far = Store("y", Select(op(X, "==", u(3)), u(1000), X, U32), op(X, "+", u(10)))
    assert run(program(far), [], 4, model=Stray()) == [10, 11, 12, 13]
