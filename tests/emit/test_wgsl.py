"""Lines of WGSL: each statement's text, and the refusal of what a pass should have lowered."""

from __future__ import annotations

import pytest

from qgen.dtypes import DTYPES
from qgen.emit.formula import print_formula
from qgen.emit.wgsl import emit_entry_point, emit_expr, emit_function, emit_struct
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Param
from qgen.ir.types import Int
from tests.frontend.test_errors import check_formula
from tests.ir.every_node import BOOL, F32, I32, PAIR, QUOTIENT, U32, X, add, name, u

LEAST = ir.Builtin("min", (name("n"), u(4)), U32)


def lines_of(*body: ir.Stmt) -> list[str]:
    """Return the lines inside an entry point, where constants are counts."""
    return [line.removeprefix("    ") for line in emit_entry_point(Kernel("main", body, 64), frozenset()).splitlines()[2:-1]]


@pytest.mark.parametrize(
    ("stmt", "lines"),
    [
        (ir.Let("a", u(300)), ["let a = 300u;"]),
        (ir.Var("a", u(0)), ["var a = 0u;"]),
        (ir.Assign("a", u(1)), ["a = 1u;"]),
        (ir.Assign("a", add(name("a"), u(1))), ["a += 1u;"]),
        (ir.Assign("a", ir.Binary("|", name("a"), name("b"), U32)), ["a |= b;"]),
        (ir.Assign("a", ir.Binary("-", name("a"), name("b"), U32)), ["a = a - b;"]),
        (ir.Assign("a", add(u(1), name("a"))), ["a = 1u + a;"]),
        (ir.Return(None), ["return;"]),
        (ir.Store("y", name("i"), add(name("a"), u(1))), ["y[i] = a + 1u;"]),
        (ir.If(name("p", BOOL), (ir.Return(None),)), ["if (p) { return; }"]),
        (ir.If(name("p", BOOL), (ir.Let("a", u(1)),)), ["if (p) {", "    let a = 1u;", "}"]),
        (ir.If(name("p", BOOL), (ir.Return(None),), (ir.Return(None),)), ["if (p) {", "    return;", "} else {", "    return;", "}"]),
        (ir.For("i", u(0), add(name("n"), u(4)), u(1), ()), ["for (var i = 0u; i < (n + 4u); i++) {", "}"]),
        (ir.For("i", name("n"), LEAST, u(8), (ir.Return(None),)), ["for (var i = n; i < min(n, 4u); i += 8u) {", "    return;", "}"]),
    ],
)  # fmt: skip
def test_statements(stmt: ir.Stmt, lines: list[str]) -> None:
    assert lines_of(stmt) == lines


def test_an_entry_point_has_its_workgroup() -> None:
    assert emit_entry_point(Kernel("main", (), 64), frozenset()).splitlines() == [
        "@compute @workgroup_size(64)",
        "fn main(@builtin(global_invocation_id) id: vec3u) {",
        "}",
    ]


def test_a_function_has_its_explanation_and_bits_in_hexadecimal() -> None:
    body = (ir.Let("big", ir.Binary("&", name("x"), u(0x7FFFFFFF), U32)), ir.Return(ir.Binary("&", name("big"), u(255), U32)))
    function = Function("f", (Param("x", U32), Param("p", PAIR)), U32, body, None, "What it does.")
    assert emit_function(function).splitlines() == [
        "// What it does.",
        "fn f(x: u32, p: Pair) -> u32 {",
        "    let big = x & 0x7fffffffu;",
        "    return big & 255u;",
        "}",
    ]


def test_structs() -> None:
    assert emit_struct(PAIR).splitlines() == ["struct Pair {", "    code: u32,", "    value: f32,", "}"]


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (u(255), "255u"),
        (u(256), "0x100u"),
        (ir.Literal(-5, I32), "-5"),
        (ir.Literal(-(1 << 31), I32), "i32(-2147483648)"),
        (ir.Literal(value=True, type=BOOL), "true"),
        (ir.Literal(0.5, F32), "0.5f"),
        (ir.Literal(2.0**-20, F32), "9.5367431640625e-07f"),
        (ir.Literal(float.fromhex("0x1.fffffep127"), F32), "3.4028234663852886e+38f"),
        (ir.Select(name("p", BOOL), u(1), u(2), U32), "select(2u, 1u, p)"),
        (ir.Construct((u(1), name("f", F32)), PAIR), "Pair(1u, f)"),
        (ir.Field(name("p", PAIR), "code", U32), "p.code"),
        (ir.Uniform("count"), "params.count"),
        (ir.Invocation("y"), "id.y"),
        (ir.Load("x", add(name("i"), u(1))), "x[i + 1u]"),
        (ir.Bitcast(name("f", F32), U32), "bitcast<u32>(f)"),
        (ir.Convert(name("m", I32), F32), "f32(m)"),
    ],
)
def test_expressions(expr: ir.Expr, text: str) -> None:
    assert emit_expr(expr) == text


@pytest.mark.parametrize(
    "expr", [X, QUOTIENT, ir.Literal(1, Int(0, 255)), add(name("a"), ir.Read("x", U32))], ids=lambda expr: type(expr).__name__
)
def test_expressions_that_were_not_lowered_are_refused(expr: ir.Expr) -> None:
    with pytest.raises(InternalError, match="reaches the emitter"):
        emit_expr(expr)


@pytest.mark.parametrize("stmt", [ir.Write("y", u(1)), ir.Require(ir.Literal(value=True, type=BOOL))], ids=lambda stmt: type(stmt).__name__)
def test_statements_that_were_not_lowered_are_refused(stmt: ir.Stmt) -> None:
    with pytest.raises(InternalError, match=f"a {type(stmt).__name__} reaches the emitter"):
        lines_of(stmt)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("y = z;", "y = z"),
        ("let q = x / s; y = (round_even(q) + (z as int)) as Y saturating;", "y = saturate_uint8(round_even(x / s) + z)"),
        ("y = round_even((x - s) * (x - (s - x))) as Y saturating;", "y = saturate_uint8(round_even((x - s) * (x - (s - x))))"),
        ("y = round_even(x - s - x) as Y saturating;", "y = saturate_uint8(round_even(x - s - x))"),
        ("y = round_even(x as float16) as Y saturating;", "y = saturate_uint8(round_even(float16(x)))"),
        ("y = ((z as int) - 2) as Y saturating;", "y = saturate_uint8(z - 2)"),
    ],
)
def test_formulas_of_headers(body: str, text: str) -> None:
    assert print_formula(check_formula(body)) == (text,)


def test_formulas_keep_a_wrap() -> None:
    program = check_formula(
        "y = (((x as int) - (z as int)) as int32 wrapping) as float32;", "x: X, z: X per group = 0", X="int32", Y="float32"
    )
    assert print_formula(program) == ("y = float32(wrap_int32(x - z))",)
    assert program.operands[0].dtype == DTYPES["int32"]
