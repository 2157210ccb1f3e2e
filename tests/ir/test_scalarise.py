"""Vectors as four values: what each node becomes, calls named once, and texts without vectors given back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qgen.errors import InternalError
from qgen.evaluate import evaluate_function
from qgen.ir import nodes as ir
from qgen.ir.print import print_body
from qgen.ir.program import ById, Kernel
from qgen.ir.rewrite import walk_body
from qgen.ir.scalarise import scalarise_function, scalarise_kernel
from qgen.ir.types import Struct, Vector, print_type
from qgen.ir.verify import verify
from qgen.numerics.library import candidates, closure
from tests.goldens import Goldens
from tests.ir.every_node import BOOL, F32, LEGAL, PROGRAMS, U32, U32X4, WIDE_FUNCTION, add, name, u
from tests.passes.build import lower

F32X4, BOOLX4 = Vector(F32), Vector(BOOL)
V, W, F, T = name("v", U32X4), name("w", U32X4), name("f", F32X4), name("t", BOOLX4)
CALL = ir.Call("scaled_4", (V, name("s")), U32X4)


def texts(*body: ir.Stmt) -> list[str]:
    """Return the lines of an entry point's statements without vectors."""
    return [line.strip() for line in print_body(scalarise_kernel(ById(Kernel("main", body, 64))).body)]


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (V, ("v.x", "v.w")),
        (ir.Compose((name("a"), name("b"), name("c"), name("d")), U32X4), ("a", "d")),
        (ir.Compose((add(name("a"), u(1)),), U32X4), ("a + 1u", "a + 1u")),
        (ir.LoadVector("x", name("q")), ("x[4u * q + 0u]", "x[4u * q + 3u]")),
        (ir.LoadVector("x", ir.Component(V, 2, U32)), ("x[4u * v.z + 0u]", "x[4u * v.z + 3u]")),
        (ir.Unary("~", V, U32X4), ("~v.x", "~v.w")),
        (ir.Binary("<<", V, ir.Compose((u(0), u(1), u(2), u(3)), U32X4), U32X4), ("v.x << 0u", "v.w << 3u")),
        (ir.Binary("<", V, W, BOOLX4), ("v.x < w.x", "v.w < w.w")),
        (ir.Builtin("clamp", (V, W, V), U32X4), ("clamp(v.x, w.x, v.x)", "clamp(v.w, w.w, v.w)")),
        (ir.Convert(V, F32X4), ("f32(v.x)", "f32(v.w)")),
        (ir.Bitcast(F, U32X4), ("bitcast<u32>(f.x)", "bitcast<u32>(f.w)")),
        (ir.Select(T, V, W, U32X4), ("if t.x then v.x else w.x", "if t.w then v.w else w.w")),
        (ir.Select(name("p", BOOL), V, W, U32X4), ("if p then v.x else w.x", "if p then v.w else w.w")),
    ],
)
def test_an_operation_on_vectors_is_one_on_each_element(value: ir.Expr, parts: tuple[str, str]) -> None:
    assert isinstance(value.type, Vector)
    found = texts(ir.Let("r", value))
    assert len(found) == 4
    first, last = (f"let r.{part}: {value.type.element.value} = {text}" for part, text in zip("xw", parts, strict=True))
    assert (found[0], found[3]) == (first, last)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ir.Component(V, 1, U32), "v.y"),
        (ir.Component(ir.Binary("^", V, W, U32X4), 3, U32), "v.w ^ w.w"),
        (add(ir.Component(V, 0, U32), ir.Load("x", ir.Component(W, 2, U32))), "v.x + x[w.z]"),
        (ir.Builtin("all", (T,), BOOL), "((t.x && t.y) && t.z) && t.w"),
        (ir.Builtin("any", (ir.Binary("==", V, W, BOOLX4),), BOOL), "(((v.x == w.x) || (v.y == w.y)) || (v.z == w.z)) || (v.w == w.w)"),
        (ir.Call("mixed", (name("a"), V, ir.Component(W, 0, U32)), U32), "mixed(a, v.x, v.y, v.z, v.w, w.x)"),
    ],
)
def test_what_a_vector_gives_is_of_its_elements(value: ir.Expr, text: str) -> None:
    assert texts(ir.Let("r", value)) == [f"let r: {print_type(value.type)} = {text}"]


def test_a_call_is_named_once_for_its_four_elements() -> None:
    named = "let call.0: vec4<u32> = scaled_4(v.x, v.y, v.z, v.w, s)"
    assert texts(ir.Let("r", CALL)) == [named, *(f"let r.{part}: u32 = call.0.{part}" for part in "xyzw")]
    total = add(ir.Component(CALL, 0, U32), ir.Component(CALL, 3, U32))
    assert texts(ir.Let("r", total)) == [named, "let r: u32 = call.0.x + call.0.w"]


def test_a_call_in_a_call_is_named_before_it() -> None:
    outer = ir.Call("scaled_4", (CALL, name("s")), U32X4)
    assert texts(ir.StoreVector("y", name("q"), outer))[:2] == [
        "let call.1: vec4<u32> = scaled_4(v.x, v.y, v.z, v.w, s)",
        "let call.0: vec4<u32> = scaled_4(call.1.x, call.1.y, call.1.z, call.1.w, s)",
    ]


def test_a_call_is_named_in_the_block_that_has_it() -> None:
    """Of two statements each has its own, and what an `if` tests stands before it."""
    test = ir.Binary("==", ir.Component(CALL, 0, U32), u(0), BOOL)
    found = texts(ir.If(test, (ir.Store("y", u(0), ir.Component(CALL, 1, U32)),)), ir.Store("y", u(1), ir.Component(CALL, 2, U32)))
    call = "vec4<u32> = scaled_4(v.x, v.y, v.z, v.w, s)"
    assert found == [
        f"let call.0: {call}",
        "if call.0.x == 0u {",
        f"let call.1: {call}",
        "store y[0u] = call.1.y",
        "}",
        f"let call.2: {call}",
        "store y[1u] = call.2.z",
    ]


@pytest.mark.parametrize(
    ("stmt", "lines"),
    [
        (ir.Var("a", ir.Component(V, 0, U32)), ["var a: u32 = v.x"]),
        (ir.Assign("a", ir.Component(V, 1, U32)), ["a = v.y"]),
        (ir.Return(None), ["return"]),
        (ir.Require(ir.Builtin("any", (T,), BOOL)), ["require ((t.x || t.y) || t.z) || t.w"]),
        (ir.AtomicMax("top", ir.Component(V, 0, U32), ir.Component(V, 1, U32)), ["atomic max top[v.x], v.y"]),
        (
            ir.For("i", ir.Component(V, 0, U32), ir.Component(V, 1, U32), u(2), (ir.Store("y", name("i"), ir.Component(V, 2, U32)),)),
            ["for i from v.x below v.y step 2u {", "store y[i] = v.z", "}"],
        ),
        (ir.StoreVector("y", name("q"), V), [f"store y[4u * q + {number}u] = v.{part}" for number, part in enumerate("xyzw")]),
    ],
)
def test_statements(stmt: ir.Stmt, lines: list[str]) -> None:
    assert texts(stmt) == lines


def test_a_function_takes_four_parameters_for_a_vector_and_returns_a_struct() -> None:
    found = scalarise_function(ById(WIDE_FUNCTION))
    assert [param.name for param in found.params] == ["x.x", "x.y", "x.z", "x.w", "s"]
    assert [param.of for param in found.params] == [WIDE_FUNCTION.params[0].of] * 4 + [WIDE_FUNCTION.params[1].of]
    assert found.result == Struct("vec4<u32>", tuple((part, U32) for part in "xyzw"))
    columns = [np.array([number, number + 4], np.float32) for number in range(4)]
    value = evaluate_function(WIDE_FUNCTION, (), [*(column.view(np.uint32) for column in columns), np.array([0x40400000], np.uint32)]).value
    assert isinstance(value, dict)
    assert [value[part].view(np.float32).tolist() for part in "xyzw"] == [(3 * column).tolist() for column in columns]


def test_a_legal_program_stays_legal(golden: Goldens) -> None:
    """The names have a dot, which no name of a formula or of a pass has."""
    kernels = tuple(scalarise_kernel(ById(kernel)) for kernel in LEGAL.kernels)
    functions = tuple(scalarise_function(ById(function)) for function in LEGAL.functions)
    program = verify(replace(LEGAL, kernels=kernels, functions=functions), "the test")
    for body in (*(kernel.body for kernel in kernels), *(function.body for function in functions)):
        assert not any(isinstance(node.type, Vector) for node in walk_body(body))
    lines = [line for function in program.functions for line in print_body(function.body)]
    golden.check("ir/scalarise-wide.txt", "\n".join([*print_body(program.kernels[-1].body), "", *lines, ""]))


def test_a_text_without_vectors_is_given_back() -> None:
    for program in PROGRAMS.values():
        for kernel in program.kernels[:1]:
            assert scalarise_kernel(ById(kernel)) is kernel
    for found in candidates().values():
        for candidate in found:
            for function in closure(candidate.name, candidate.format):
                assert scalarise_function(ById(function)) is function


def test_the_same_text_gives_the_same_object() -> None:
    """Models draw by the identity of nodes, and compiled texts are kept by it."""
    kernel = lower(mode="exact", shape=(64,)).legal.kernels[0]
    assert scalarise_kernel(ById(kernel)) is scalarise_kernel(ById(kernel)) is not kernel
    assert scalarise_function(ById(WIDE_FUNCTION)) is scalarise_function(ById(WIDE_FUNCTION))


def test_what_is_no_vector_has_no_elements() -> None:
    with pytest.raises(InternalError, match="a Name is no vector"):
        texts(ir.Let("r", ir.Component(name("a"), 0, U32)))
    with pytest.raises(InternalError, match="a Field makes no vector"):
        texts(ir.Let("r", ir.Field(name("a"), "x", U32X4)))  # type: ignore[arg-type]  # a field of that type is what is refused
