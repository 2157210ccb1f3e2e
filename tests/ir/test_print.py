"""The printer: every node of every stage has its text, and what it leaves out in parentheses changes no tree."""

from __future__ import annotations

from typing import get_args

import pytest

from qgen.ir import nodes as ir
from qgen.ir.print import print_expr, print_program
from qgen.ir.program import Program
from qgen.ir.rewrite import walk_body
from qgen.ir.verify import verify
from tests.goldens import Goldens
from tests.ir.every_node import F32, I32, PROGRAMS, U32, name, u


def bodies(program: Program) -> list[tuple[ir.Stmt, ...]]:
    return [*(kernel.body for kernel in program.kernels), *(function.body for function in program.functions)]


def statements(body: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
    """Return the statements of a body and those inside them."""
    inner: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.If(_, then, otherwise):
                inner += statements(then) + statements(otherwise)
            case ir.For():
                inner += statements(stmt.body)
            case _:
                pass
    return [*body, *inner]


@pytest.mark.parametrize("stage", PROGRAMS)
def test_programs_read_well(stage: str, golden: Goldens) -> None:
    golden.check(f"ir/print-{stage}.txt", print_program(verify(PROGRAMS[stage], "the test")))


def test_the_programs_have_every_node() -> None:
    found: set[type] = {type(stmt) for program in PROGRAMS.values() for body in bodies(program) for stmt in statements(body)}
    found |= {type(expr) for program in PROGRAMS.values() for body in bodies(program) for expr in walk_body(body)}
    assert found == {*get_args(ir.Expr), *get_args(ir.Stmt)}


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (ir.Binary("-", ir.Binary("-", name("a"), name("b"), U32), name("c"), U32), "a - b - c"),
        (ir.Binary("-", name("a"), ir.Binary("-", name("b"), name("c"), U32), U32), "a - (b - c)"),
        (ir.Binary("*", ir.Binary("+", name("a"), name("b"), U32), name("c"), U32), "(a + b) * c"),
        (ir.Binary("&", ir.Binary("+", name("a"), name("b"), U32), name("c"), U32), "(a + b) & c"),
        (ir.Unary("-", ir.Literal(-2, I32), I32), "-(-2)"),
        (ir.Unary("-", ir.Unary("-", name("a", I32), I32), I32), "-(-a)"),
        (ir.Field(ir.Unary("-", name("a", F32), F32), "f", F32), "(-a).f"),
        (u(1023), "1023u"),
        (u(1024), "0x400u"),
        (ir.Literal(-5, I32), "-5"),
        (ir.Literal(0.1, F32), "0.1"),
        (ir.Binary("+", ir.Read("x", U32), ir.Uniform("n"), U32), "read x + uniform n"),
    ],
)
def test_expressions(expr: ir.Expr, text: str) -> None:
    assert print_expr(expr) == text
