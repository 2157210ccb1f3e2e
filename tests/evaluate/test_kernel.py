"""Slabs, determinism, several kernels, and inputs left alone."""

from __future__ import annotations

import numpy as np
import pytest

from qgen.evaluate import SLAB, EvaluationError, evaluate_function, evaluate_kernel, evaluate_program
from qgen.ir.nodes import Assign, Bitcast, For, If, Invocation, Let, Literal, Load, Return, Store, Uniform, Var
from qgen.ir.program import Kernel, Operand, Program, Stage
from tests.evaluate.build import F32, U32, UINT8, X, expression, function, load, name, op, program, run, store_x, u

COUNT = 2 * SLAB + 77
GUARD = If(op(X, ">=", Uniform("count")), (Return(None),))


def test_slabs_join() -> None:
    x = np.random.default_rng(1).integers(0, 1 << 32, COUNT, dtype=np.uint64).astype(np.uint32)
    of = program(GUARD, *store_x(op(load(X), "*", u(3))), uniforms=("count",), workgroup=64)
    got = run(of, x, COUNT, uniforms={"count": COUNT}, workgroups=(-(-COUNT // 64), 1, 1))
    assert got == (x * np.uint32(3)).tolist()


def test_slabs_cut_through_rows_of_y() -> None:
    width, height = 1000, 131
    at = op(op(Invocation("y"), "*", u(width)), "+", X)
    of = program(Let("at", at), Store("y", name("at"), op(op(X, "*", u(1000)), "+", Invocation("y"))), workgroup=8)
    got = run(of, [], width * height, workgroups=(width // 8, height, 1))
    assert got == [x * 1000 + y for y in range(height) for x in range(width)]


def test_a_race_between_slabs_traps() -> None:
    of = program(Store("y", op(X, "%", u(SLAB)), X), workgroup=64)
    with pytest.raises(EvaluationError) as caught:
        run(of, [], SLAB, workgroups=(SLAB // 64 + 1, 1, 1))
    assert (caught.value.index, caught.value.invocation) == (0, (SLAB, 0, 0))


def test_lanes_of_a_function_beyond_a_slab() -> None:
    f = function("f", {"a": U32, "b": U32}, U32, If(op(name("a"), "==", u(SLAB)), (Return(u(1)),)), Return(op(name("a"), "+", name("b"))))
    result = evaluate_function(f, (), [np.arange(COUNT, dtype=np.uint32), np.array([5], np.uint32)])
    expected = np.arange(COUNT) + 5
    expected[SLAB] = 1
    assert not isinstance(result.value, dict)
    assert np.array_equal(result.value, expected)
    assert result.held.shape == (COUNT,)


def test_the_same_twice_and_buffers_left_alone() -> None:
    of = program(
        Var("v", load(X)), For("i", u(0), X, u(1), (Assign("v", op(name("v"), "*", u(5))),)), Store("y", X, name("v")), workgroup=64
    )
    x = np.arange(64, dtype=np.uint32)
    buffers = {"x": x.copy(), "y": np.full(64, 9, np.uint32)}
    first = evaluate_kernel(of, of.kernels[0], buffers, {}, (1, 1, 1))
    second = evaluate_kernel(of, of.kernels[0], buffers, {}, (1, 1, 1))
    assert first.keys() == {"y"}
    assert np.array_equal(first["y"], second["y"])
    assert np.array_equal(buffers["x"], x)
    assert (buffers["y"] == 9).all()


def two_kernels(*first: Store) -> Program:
    operands = (Operand("x", UINT8), Operand("mid", UINT8, is_output=True), Operand("y", UINT8, is_output=True))
    second = Store("y", X, op(Load("mid", X), "+", Load("mid", op(u(3), "-", X))))
    return Program("two", Stage.LEGAL, operands, (Kernel("first", first, 4), Kernel("second", (second,), 4)))


def test_a_kernel_loads_what_an_earlier_one_stored() -> None:
    of = two_kernels(Store("mid", X, op(load(X), "*", u(10))))
    x = np.array([1, 2, 3, 4], np.uint32)
    result = evaluate_program(of, {"x": x}, {"mid": 4, "y": 4}, {}, [(1, 1, 1)] * 2)
    assert {key: words.tolist() for key, words in result.items()} == {"mid": [10, 20, 30, 40], "y": [50, 50, 50, 50]}
    alone = evaluate_kernel(of, of.kernels[1], {"x": x, "mid": result["mid"], "y": x}, {}, (1, 1, 1))
    assert {key: words.tolist() for key, words in alone.items()} == {"y": [50, 50, 50, 50]}


def test_a_kernel_that_loads_words_never_stored_traps() -> None:
    of = two_kernels(Store("mid", X, u(1)))
    with pytest.raises(EvaluationError, match=r"1 of 5 words are never stored \(second, buffer mid, index 4\)"):
        evaluate_program(of, {"x": np.zeros(4, np.uint32)}, {"mid": 5, "y": 4}, {}, [(1, 1, 1)] * 2)


def test_kernels_that_store_halves_of_an_output() -> None:
    operands = (Operand("y", UINT8, is_output=True),)
    low, high = Kernel("low", (Store("y", X, u(1)),), 4), Kernel("high", (Store("y", op(X, "+", u(4)), u(2)),), 4)
    of = Program("halves", Stage.LEGAL, operands, (low, high))
    assert evaluate_program(of, {}, {"y": 8}, {}, [(1, 1, 1)] * 2)["y"].tolist() == [1] * 4 + [2] * 4
    with pytest.raises(EvaluationError, match=r"1 of 9 words are never stored \(halves, buffer y, index 8\)"):
        evaluate_program(of, {}, {"y": 9}, {}, [(1, 1, 1)] * 2)


def test_texts_that_compare_equal_are_kept_apart() -> None:
    zero, minus_zero = (expression(Bitcast(Literal(value, F32), U32)) for value in (0.0, -0.0))
    assert zero == minus_zero
    for text, bits in [(zero, 0), (minus_zero, 1 << 31), (zero, 0)]:
        result = evaluate_function(text, (), ()).value
        assert not isinstance(result, dict)
        assert result.tolist() == [bits]
