"""The cost model: counts derived by hand, of a program made for it and of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import qgen
from qgen.check import kernel_variants, matrix_requests
from qgen.compiler import compile_kernel
from qgen.cost import KINDS, KernelCost, count_costs
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Param, Program
from qgen.ir.types import Scalar, Vector
from tests.passes.build import lower

F32, U32, BOOL = Scalar.F32, Scalar.U32, Scalar.BOOL

# What the text of these functions of the library says, for one call; both sides of each `if`, and all that follows a return.
MUL_SMALL = {"integer": 24, "shift": 4, "select": 2}
ROUND_PACK = {"integer": 10, "shift": 1}
ROUND_SHIFT = {"integer": 5, "shift": 3}
PRODUCT = (MUL_SMALL, ROUND_PACK, ROUND_SHIFT)
"""An integer of 9 bits times a float32, by integers."""


def total(*parts: Mapping[str, int], times: int = 1) -> dict[str, int]:
    return {kind: times * sum(part.get(kind, 0) for part in parts) for kind in KINDS}


def operations(counts: Mapping[tuple[str, str], int]) -> dict[str, int]:
    return {kind: counts.get(("operation", kind), 0) for kind in KINDS}


def cost_of(op: str, **choices: Any) -> KernelCost:  # noqa: ANN401 - what `qgen.compile` takes
    compiled = qgen.compile(op, **{"target": "webgpu:lanes=128"} | choices).compiled
    (cost,) = count_costs(compiled.legal, compiled.plans)
    return cost


def accesses(counts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    return {key: number for key, number in counts.items() if key[0] != "operation"}


def test_quick_code_for_known_scales() -> None:
    cost = cost_of("DequantizeLinear", x="int8", scale="float32", granularity=qgen.per_axis(0), shape=(64, 128), plain_scale=True)
    # The guard, first, end, the group; a loop of 32 rounds: 33 tests and 32 steps.
    entry = {"integer": 1 + 1 + 1 + 33 + 32, "shift": 1}
    # The number of a piece of 4 elements, which is that of the vector that it stores.
    piece = {"integer": 2}
    # Of four elements: a word apart, their signs, products; zero has the sign of the scale.
    codes, extended = {"integer": 1}, {"integer": 4 + 4}
    product = {"convert": 4, "float": 4, "integer": 1 + 4, "select": 4}
    assert operations(cost.computed) == total(entry, total(piece, codes, extended, product, times=32))
    assert accesses(cost.computed) == {
        ("load", "x"): 32,
        ("words", "x"): 32,
        ("load", "x_scale"): 1,
        ("words", "x_scale"): 1,
        ("store", "y"): 32,
        ("words", "y"): 128,
    }
    assert (cost.name, cost.items, cost.redone) == ("main", 128, None)
    assert cost.least_bytes == {"x": 1, "x_scale": 64 * 4 / (64 * 128), "y": 4}


def test_what_is_redone_where_a_scale_is_not_plain() -> None:
    words: dict[str, Any] = {"x": "int8", "scale": "float32", "granularity": qgen.per_axis(0), "shape": (64, 128)}
    cost, plain = cost_of("DequantizeLinear", **words), cost_of("DequantizeLinear", **words, plain_scale=True)
    # The scale's exponent, its two bounds; where to begin again, and one test of the loop that is not entered.
    tested = {"integer": 1 + 3 + 1, "select": 1}
    assert operations(cost.computed) == total(operations(plain.computed), tested)
    # For each element a test and a step; its word and its code out of that, and its sign. A part of a vector is found without an operation.
    element = total({"integer": 2 + 3, "shift": 2}, {"integer": 2}, *PRODUCT)
    assert cost.redone is not None
    assert operations(cost.redone) == total(element, times=128)
    assert accesses(cost.redone) == {("load", "x"): 128, ("words", "x"): 128, ("store", "y"): 128, ("words", "y"): 128}


def test_integer_code_alone_with_shapes_in_uniforms() -> None:
    cost = cost_of("DequantizeLinear", x="uint8", scale="float32", numerics="strict")
    # The unit by rows, the guard, first, end; a loop of 4 rounds.
    entry = {"integer": 3 + 1 + 1 + 2 + 5 + 4}
    element = total({"integer": 3, "shift": 1}, *PRODUCT)
    assert operations(cost.computed) == total(entry, total(element, times=4))
    assert accesses(cost.computed) == {
        ("load", "x"): 1,
        ("words", "x"): 1,
        ("load", "x_scale"): 1,
        ("words", "x_scale"): 1,
        ("store", "y"): 4,
        ("words", "y"): 4,
    }
    assert (cost.items, cost.redone) == (4, None)
    assert cost.least_bytes == {"x": 1, "x_scale": None, "y": 4}


def name(text: str, type_: Scalar = U32) -> ir.Name:
    return ir.Name(text, type_)


def number(value: int) -> ir.Literal:
    return ir.Literal(value, U32)


def binary(op: str, lhs: ir.Expr, rhs: ir.Expr, type_: Scalar | Vector = U32) -> ir.Binary:
    return ir.Binary(op, lhs, rhs, type_)


def of_body(*body: ir.Stmt, functions: tuple[Function, ...] = ()) -> KernelCost:
    """Return the cost of an entry point that begins with these statements, in the place of a kernel for 8 elements."""
    made = lower(shape=(8,))
    program = Program("p", made.legal.stage, made.legal.operands, (Kernel("main", body, 64),), functions)
    (cost,) = count_costs(program, made.plans)
    return cost


@pytest.mark.parametrize(
    ("expr", "kinds"),
    [
        (binary("+", name("a"), name("b")), {"integer": 1}),
        (binary("+", number(1), number(2)), {}),
        (binary("*", ir.Name("a", F32), ir.Name("b", F32), F32), {"float": 1}),
        (binary("/", ir.Name("a", F32), ir.Literal(2.0, F32), F32), {"division": 1}),
        (binary("/", name("a"), name("b")), {"division": 1}),
        (binary("/", name("a"), number(4)), {"shift": 1}),
        (binary("%", name("a"), number(4)), {"integer": 1}),
        (binary("/", name("a"), number(3)), {"integer": 1, "shift": 1}),
        (binary(">>", ir.Name("a", Vector(U32)), ir.Compose((number(3),), Vector(U32)), Vector(U32)), {"shift": 4}),
        (binary("%", ir.Name("a", Vector(U32)), ir.Compose((number(8),), Vector(U32)), Vector(U32)), {"integer": 4}),
        (ir.Select(binary("<", ir.Name("a", F32), ir.Name("b", F32), BOOL), number(1), number(2), U32), {"float": 1, "select": 1}),
        (ir.Builtin("clamp", (name("a"), number(1), number(9)), U32), {"integer": 2}),
        (ir.Builtin("all", (ir.Name("a", Vector(BOOL)),), BOOL), {"integer": 3}),
        (ir.Unary("!", ir.Name("a", BOOL), BOOL), {"integer": 1}),
        (ir.Convert(name("a"), F32), {"convert": 1}),
        (ir.Convert(ir.Name("a", BOOL), U32), {"select": 1}),
        (ir.Convert(name("a"), Scalar.I32), {}),
        (ir.Bitcast(name("a"), F32), {}),
    ],
)
def test_an_operation_has_a_kind_and_one_count_for_each_element(expr: ir.Expr, kinds: dict[str, int]) -> None:
    assert operations(of_body(ir.Let("result", expr)).computed) == total(kinds)


def test_loops_count_as_often_as_they_run_and_functions_with_both_sides() -> None:
    absolute = Function(
        "f",
        (Param("v", U32),),
        U32,
        (
            ir.If(binary("<", name("v"), number(9), BOOL), (ir.Return(binary("+", name("v"), number(1))),)),
            ir.Return(binary("<<", name("v"), number(1))),
        ),
    )
    each = ir.Let("w", ir.Call("f", (ir.Load("x", name("j")),), U32))
    inner = ir.For("j", name("i"), number(4), number(1), (each,))
    cost = of_body(ir.For("i", number(0), number(4), number(1), (inner,)), functions=(absolute,))
    # 4 rounds outside, with 4, 3, 2 and 1 inside: each loop tests once more than it has rounds.
    rounds, loops = 4 + 3 + 2 + 1, 4
    assert operations(cost.computed) == total({"integer": 4 + 5 + 2 * rounds + loops}, total({"integer": 2, "shift": 1}, times=rounds))
    assert accesses(cost.computed) == {("load", "x"): rounds, ("words", "x"): rounds}


def test_a_condition_on_data_holds_first_and_then_fails() -> None:
    held = ir.Name("held", BOOL)
    cost = of_body(
        ir.Var("held", ir.Literal(value=True, type=BOOL)),
        ir.Assign("held", binary("&&", held, binary("<", ir.Load("x", number(0)), number(9), BOOL), BOOL)),
        ir.Let("again", ir.Select(held, number(4), number(0), U32)),
        ir.For("i", name("again"), number(4), number(1), (ir.Store("y", name("i"), name("i")),)),
        ir.If(binary(">=", ir.Invocation("x"), number(0), BOOL), (ir.Return(None),)),
        ir.Let("never", ir.Load("x", number(1))),
    )
    assert operations(cost.computed) == total({"integer": 2 + 1 + 1, "select": 1})
    assert accesses(cost.computed) == {("load", "x"): 1, ("words", "x"): 1}
    assert cost.redone is not None
    assert operations(cost.redone) == total({"integer": 2 * 4})
    assert accesses(cost.redone) == {("store", "y"): 4, ("words", "y"): 4}


def test_every_kind_of_kernel_has_a_cost() -> None:
    requests = matrix_requests()
    for at in range(0, len(requests), 499):
        for variant in kernel_variants(requests[at], at):
            compiled = compile_kernel(variant)
            for cost in count_costs(compiled.legal, compiled.plans):
                stored = {key[1] for key in cost.computed if key[0] == "store"}
                assert stored == {"y"}
                assert 4 * cost.computed["words", "y"] / cost.items >= (cost.least_bytes["y"] or 0)
