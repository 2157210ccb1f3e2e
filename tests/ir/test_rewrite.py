"""The walks over nodes: they see every node, in the order of the text, and give back the same object where nothing changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qgen.errors import Span
from qgen.ir import nodes as ir
from qgen.ir.rewrite import called_functions, children, map_body, map_expr, walk_body, walk_expr, with_children
from tests.ir.every_node import BOOL, PARTIAL, PROGRAMS, U32, add, name, u
from tests.ir.test_print import bodies

ALL_BODIES = [body for program in PROGRAMS.values() for body in bodies(program)]
ALL_EXPRS = [expr for body in ALL_BODIES for expr in walk_body(body)]


def unchanged(expr: ir.Expr) -> ir.Expr:
    return expr


def test_the_same_children_make_the_same_object() -> None:
    for expr in ALL_EXPRS:
        assert with_children(expr, children(expr)) is expr
        assert map_expr(expr, unchanged) is expr


def test_other_children_take_the_place_of_the_old_ones() -> None:
    for expr in ALL_EXPRS:
        new = tuple(ir.Name(f"new{number}", child.type) for number, child in enumerate(children(expr)))
        changed = with_children(expr, new)
        assert children(changed) == new
        assert type(changed) is type(expr)
        assert with_children(changed, children(expr)) == expr


def test_children_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="operands"):
        with_children(u(1), (u(2),))


def test_an_expression_is_changed_from_the_leaves_up() -> None:
    seen: list[ir.Expr] = []

    def double(node: ir.Expr) -> ir.Expr:
        seen.append(node)
        return u(node.value * 2) if isinstance(node, ir.Literal) and isinstance(node.value, int) else node

    assert map_expr(add(u(1), add(u(2), name("a"))), double) == add(u(2), add(u(4), name("a")))
    assert seen == [u(1), u(2), name("a"), add(u(4), name("a")), add(u(2), add(u(4), name("a")))]


@pytest.mark.parametrize("body", ALL_BODIES, ids=range(len(ALL_BODIES)))
def test_bodies_keep_what_is_not_changed(body: tuple[ir.Stmt, ...]) -> None:
    assert map_body(body, unchanged) == body


@pytest.mark.parametrize("body", ALL_BODIES, ids=range(len(ALL_BODIES)))
def test_every_expression_of_a_body_is_changed_whole(body: tuple[ir.Stmt, ...]) -> None:
    whole: list[ir.Expr] = []

    def note(expr: ir.Expr) -> ir.Expr:
        whole.append(expr)
        return expr

    map_body(body, note)
    assert [node for expr in whole for node in walk_expr(expr)] == list(walk_body(body))


def test_the_order_of_a_walk_is_that_of_the_text() -> None:
    expr = ir.Select(name("c", BOOL), add(name("a"), u(1)), u(2), U32)
    assert list(walk_expr(expr)) == [expr, name("c", BOOL), add(name("a"), u(1)), name("a"), u(1), u(2)]


def test_called_functions_are_named_once_in_order() -> None:
    call = ir.Call("f", (ir.Call("g", (), U32), ir.Call("f", (u(1),), U32)), U32)
    assert called_functions((ir.Let("a", call), ir.Return(ir.Call("h", (), U32)))) == ("f", "g", "h")


def test_a_function_hashes_by_its_name_and_compares_by_its_text() -> None:
    other = replace(PARTIAL, body=())
    assert hash(other) == hash(PARTIAL)
    assert other != PARTIAL


def test_a_place_takes_no_part_in_equality() -> None:
    typed = next(expr for expr in ALL_EXPRS if isinstance(expr, ir.Typed))
    assert replace(typed, span=Span("a.qg", 1, 2, 3)) == typed
    assert hash(replace(typed, span=Span("a.qg", 1, 2, 3))) == hash(typed)
