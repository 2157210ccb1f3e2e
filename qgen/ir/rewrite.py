"""Walks over nodes: the children of an expression, the same expression with others, and what a body uses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import assert_never

from qgen.ir import nodes as ir
from qgen.ir.program import ById, Function


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the operands of an expression, in order."""
    return expr.operands


def with_children(expr: ir.Expr, new: tuple[ir.Expr, ...]) -> ir.Expr:
    """Return the expression with other operands; the same object where they are the same objects."""
    if len(new) != len(expr.operands):
        raise ValueError(f"{type(expr).__name__} has {len(expr.operands)} operands, not {len(new)}")
    if all(map(operator.is_, expr.operands, new)):
        return expr
    match expr:
        case ir.Literal() | ir.Name() | ir.Read() | ir.Uniform() | ir.Invocation():
            return expr
        case ir.Unary() | ir.Convert() | ir.Bitcast() | ir.Field():
            return replace(expr, operand=new[0])
        case ir.Binary():
            return replace(expr, lhs=new[0], rhs=new[1])
        case ir.Select():
            return replace(expr, condition=new[0], then=new[1], otherwise=new[2])
        case ir.Builtin() | ir.Call() | ir.Typed() | ir.Construct():
            return replace(expr, args=new)
        case ir.Load() | ir.LoadVector():
            return replace(expr, index=new[0])
        case ir.Compose():
            return replace(expr, args=new)
        case ir.Component():
            return replace(expr, operand=new[0])
        case ir.Reduce():
            return replace(expr, value=new[0])
        case _:
            assert_never(expr)


def map_expr(expr: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """Return the expression with `change` applied to each node, operands first."""
    below = expr.operands
    return change(with_children(expr, tuple([map_expr(child, change) for child in below])) if below else expr)


def map_stmt(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr]) -> ir.Stmt:
    """Return the statement with `change` applied to each expression in it, whole."""
    match stmt:
        case ir.Let(name, value):
            return ir.Let(name, change(value))
        case ir.Return(value):
            return ir.Return(None if value is None else change(value))
        case ir.If(condition, then, otherwise):
            return ir.If(change(condition), map_body(then, change), map_body(otherwise, change))
        case ir.Require(condition):
            return ir.Require(change(condition))
        case ir.Write(operand, value, quick):
            return ir.Write(operand, change(value), None if quick is None else _map_quick(quick, change))
        case ir.Accumulate(operand, value):
            return ir.Accumulate(operand, change(value))
        case ir.Store(buffer, index, value):
            return ir.Store(buffer, change(index), change(value))
        case ir.StoreVector(buffer, index, value):
            return ir.StoreVector(buffer, change(index), change(value))
        case ir.AtomicMax(buffer, index, value):
            return ir.AtomicMax(buffer, change(index), change(value))
        case ir.Var(name, value):
            return ir.Var(name, change(value))
        case ir.Assign(name, value):
            return ir.Assign(name, change(value))
        case ir.For(name, start, stop, step, body):
            return ir.For(name, change(start), change(stop), step, map_body(body, change))
        case _:
            assert_never(stmt)


def _map_quick(quick: ir.Quick, change: Callable[[ir.Expr], ir.Expr]) -> ir.Quick:
    return ir.Quick(change(quick.value), None if quick.holds is None else change(quick.holds))


def map_body(body: tuple[ir.Stmt, ...], change: Callable[[ir.Expr], ir.Expr]) -> tuple[ir.Stmt, ...]:
    """Return the statements with `change` applied to each expression in them, whole."""
    return tuple(map_stmt(stmt, change) for stmt in body)


def walk_expr(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the expression and all below it, from the top."""
    yield expr
    for child in expr.operands:
        yield from walk_expr(child)


def walk_body(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Expr]:
    """Yield every expression in the statements, in the order of the text."""
    for stmt in body:
        match stmt:
            case ir.Let(_, value) | ir.Var(_, value) | ir.Assign(_, value) | ir.Accumulate(_, value):
                yield from walk_expr(value)
            case ir.Write(_, value, quick):
                yield from walk_expr(value)
                if quick is not None:
                    yield from walk_expr(quick.value)
                    yield from walk_expr(quick.holds) if quick.holds is not None else ()
            case ir.Return(value):
                if value is not None:
                    yield from walk_expr(value)
            case ir.Require(condition):
                yield from walk_expr(condition)
            case ir.If(condition, then, otherwise):
                yield from walk_expr(condition)
                yield from walk_body(then)
                yield from walk_body(otherwise)
            case ir.Store(_, index, value) | ir.StoreVector(_, index, value) | ir.AtomicMax(_, index, value):
                yield from walk_expr(index)
                yield from walk_expr(value)
            case ir.For(_, start, stop, _, inner):
                yield from walk_expr(start)
                yield from walk_expr(stop)
                yield from walk_body(inner)
            case _:
                assert_never(stmt)


def walk_stmts(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    """Yield every statement, those inside others too, in the order of the text."""
    for stmt in body:
        yield stmt
        match stmt:
            case ir.If(_, then, otherwise):
                yield from walk_stmts(then)
                yield from walk_stmts(otherwise)
            case ir.For(_, _, _, _, inner):
                yield from walk_stmts(inner)
            case _:
                pass


def called_functions(body: tuple[ir.Stmt, ...]) -> tuple[str, ...]:
    """Return the functions that the statements call, each once, in the order of the text."""
    return tuple(dict.fromkeys(expr.function for expr in walk_body(body) if isinstance(expr, ir.Call)))


def drop_unused_lets(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Return the body without lets that nothing names, to the end of a chain of them."""
    while True:
        named = {node.name for node in walk_body(body) if isinstance(node, ir.Name)}
        kept = tuple(stmt for stmt in body if not isinstance(stmt, ir.Let) or stmt.name in named)
        if len(kept) == len(body):
            return body
        body = kept


@lru_cache(maxsize=2048)
def callees(function: ById[Function]) -> tuple[str, ...]:
    """Return what a function calls; kept for the functions of the library, which all programs share."""
    return called_functions(function.value.body)


def reachable_functions(bodies: Iterable[tuple[ir.Stmt, ...]], table: Mapping[str, Function]) -> tuple[Function, ...]:
    """Return the functions of `table` that the bodies call, directly or not, callers first, each once."""
    order: dict[str, Function] = {}

    def visit(name: str) -> None:
        if name not in order:
            for callee in callees(ById(table[name])):
                visit(callee)
            order[name] = table[name]

    names = [name for body in bodies for name in called_functions(body)]
    for name in reversed(dict.fromkeys(names)):
        visit(name)
    return tuple(reversed(order.values()))
