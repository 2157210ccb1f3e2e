"""Parentheses keep the tree: random expressions are emitted, read back by the specification's grammar, and taken by naga and Tint."""

from __future__ import annotations

import random

import pytest

from qgen.emit.wgsl import emit_expr
from qgen.ir import nodes as ir
from qgen.ir.precedence import ATOM, operand_precedences, parenthesise, precedence
from qgen.validate import validate_texts
from tests.ir.every_node import BOOL, F32, I32, U32, name
from tests.ir.random_exprs import NAMES, random_expr
from tests.ir.wgsl_expressions import read_expression, tree_of

MODULE = """
struct Pair {{ code: u32, value: f32 }}
struct Params {{ count: u32 }}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;
fn code_of(pair: Pair) -> u32 {{ return pair.code; }}
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3u) {{
    let a = x[0]; let b = x[1]; let m = i32(x[2]); let n = i32(x[3]);
    let f = f32(x[4]); let g = f32(x[5]); let p = x[6] == 0u; let q = x[7] == 0u;
{lines}
}}
"""

LESS = ir.Binary("<", name("a"), name("b"), BOOL)
GREATER = ir.Binary(">", name("a"), name("b"), BOOL)


def sample(count: int) -> list[ir.Expr]:
    rng = random.Random(7)
    return [random_expr(rng, rng.choice(tuple(NAMES)), 1 + number % 4) for number in range(count)]


def test_emitted_expressions_have_the_tree_they_were_emitted_from() -> None:
    for expr in sample(4000):
        text = emit_expr(expr)
        assert read_expression(text) == tree_of(expr), text


def test_the_expressions_are_wgsl_to_both_compilers() -> None:
    texts = {emit_expr(expr) for expr in sample(600)}
    module = MODULE.format(lines="\n".join(f"    let e{number} = {text};" for number, text in enumerate(sorted(texts))))
    for report in validate_texts([("expressions", module)], engine="all"):
        assert report.ok, report.raw


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (ir.Binary("+", name("f", F32), ir.Binary("-", name("g", F32), name("f", F32), F32), F32), "f + (g - f)"),
        (ir.Binary("*", name("f", F32), ir.Binary("/", name("g", F32), name("f", F32), F32), F32), "f * (g / f)"),
        (ir.Binary("<<", ir.Binary("<<", name("a"), name("b"), U32), name("b"), U32), "(a << b) << b"),
        (ir.Binary("|", ir.Binary("|", name("a"), name("b"), U32), name("b"), U32), "(a | b) | b"),
        (ir.Binary("==", ir.Binary("+", name("a"), name("b"), U32), name("b"), BOOL), "(a + b) == b"),
        (ir.Binary("+", name("a"), ir.Binary("&", name("a"), name("b"), U32), U32), "a + (a & b)"),
        (ir.Binary("-", name("m", I32), ir.Literal(-1, I32), I32), "m - -1"),
        (ir.Unary("-", ir.Literal(-1, I32), I32), "-(-1)"),
        (ir.Unary("-", ir.Literal(-0.0, F32), F32), "-(-0.0f)"),
        (ir.Binary("*", ir.Unary("-", name("m", I32), I32), name("n", I32), I32), "-m * n"),
        (ir.Literal(-(1 << 31), I32), "i32(-2147483648)"),
        (ir.Select(LESS, LESS, GREATER, BOOL), "select(a > b, (a < b), a < b)"),  # `a < b, a >` would open a template list
        (ir.Call("f", (LESS, ir.Call("g", (LESS,), U32), GREATER), U32), "f((a < b), g(a < b), a > b)"),
    ],
)
def test_parentheses(expr: ir.Expr, text: str) -> None:
    assert emit_expr(expr) == text


@pytest.mark.parametrize("op", ["<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||"])
def test_operators_without_a_precedence_take_operands_in_parentheses(op: str) -> None:
    for inner in ("+", "*", "<<", "==", "&&", op):
        least, _ = operand_precedences(op)
        assert parenthesise("a", precedence(inner), least) == "(a)"
        assert parenthesise("a", ATOM, least) == "a"
