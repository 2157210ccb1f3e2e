"""Walks over nodes: the children of an expression, the same expression with others, and what a body uses."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from qgen.ir import nodes as ir
from qgen.ir.program import Function, kept


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
        case ir.Unary(op, _, type_):
            return ir.Unary(op, new[0], type_)
        case ir.Binary(op, _, _, type_):
            return ir.Binary(op, new[0], new[1], type_)
        case ir.Select(_, _, _, type_):
            return ir.Select(new[0], new[1], new[2], type_)
        case ir.Builtin(name, _, type_):
            return ir.Builtin(name, new, type_)
        case ir.Call(name, _, type_):
            return ir.Call(name, new, type_)
        case ir.Typed(op, _, type_, span):
            return ir.Typed(op, new, type_, span)
        case ir.Convert(_, type_):
            return ir.Convert(new[0], type_)
        case ir.Bitcast(_, type_):
            return ir.Bitcast(new[0], type_)
        case ir.Field(_, name, type_):
            return ir.Field(new[0], name, type_)
        case ir.Construct(_, type_):
            return ir.Construct(new, type_)
        case ir.Compose(_, type_):
            return ir.Compose(new, type_)
        case ir.Component(_, number, type_):
            return ir.Component(new[0], number, type_)
        case ir.Load(buffer, _):
            return ir.Load(buffer, new[0])
        case ir.LoadVector(buffer, _):
            return ir.LoadVector(buffer, new[0])
        case ir.Reduce(op, _, type_):
            return ir.Reduce(op, new[0], type_)
        case _:
            assert_never(expr)


def map_expr(expr: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """Return the expression with `change` applied to each node, operands first; the same object where that changed none."""
    below = expr.operands
    if not below:
        return change(expr)
    new = tuple([map_expr(child, change) for child in below])
    return change(with_children(expr, new) if any(map(operator.is_not, below, new)) else expr)


def map_stmt(stmt: ir.Stmt, change: Callable[[ir.Expr], ir.Expr]) -> ir.Stmt:
    """Return the statement with `change` applied to each expression in it, whole; the same object where that changed none."""
    match stmt:
        case ir.Let(name, value) | ir.Var(name, value) | ir.Assign(name, value) | ir.Accumulate(name, value):
            new = change(value)
            return stmt if new is value else type(stmt)(name, new)
        case ir.Return(value):
            returned = None if value is None else change(value)
            return stmt if returned is value else ir.Return(returned)
        case ir.If(condition, then, otherwise):
            test, first, second = change(condition), map_body(then, change), map_body(otherwise, change)
            is_same = test is condition and first is then and second is otherwise
            return stmt if is_same else ir.If(test, first, second)
        case ir.Require(condition):
            test = change(condition)
            return stmt if test is condition else ir.Require(test)
        case ir.Write(operand, value, quick):
            new, other = change(value), None if quick is None else _map_quick(quick, change)
            return stmt if new is value and other is quick else ir.Write(operand, new, other)
        case ir.Store(buffer, index, value) | ir.StoreVector(buffer, index, value) | ir.AtomicMax(buffer, index, value):
            at, new = change(index), change(value)
            return stmt if at is index and new is value else type(stmt)(buffer, at, new)
        case ir.For(name, start, stop, step, body):
            begin, end, by, inner = change(start), change(stop), change(step), map_body(body, change)
            is_same = begin is start and end is stop and by is step and inner is body
            return stmt if is_same else ir.For(name, begin, end, by, inner)
        case _:
            assert_never(stmt)


def _map_quick(quick: ir.Quick, change: Callable[[ir.Expr], ir.Expr]) -> ir.Quick:
    value, holds = change(quick.value), None if quick.holds is None else change(quick.holds)
    return quick if value is quick.value and holds is quick.holds else ir.Quick(value, holds)


def map_body(body: tuple[ir.Stmt, ...], change: Callable[[ir.Expr], ir.Expr]) -> tuple[ir.Stmt, ...]:
    """Return the statements with `change` applied to each expression in them, whole; the same object where that changed none."""
    new = tuple([map_stmt(stmt, change) for stmt in body])
    return new if any(map(operator.is_not, body, new)) else body


def walk_expr(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Yield the expression and all below it, from the top."""
    return _walk([expr])


def walk_body(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Expr]:
    """Yield every expression in the statements, in the order of the text."""
    whole: list[ir.Expr] = []
    _gather(body, whole)
    whole.reverse()
    return _walk(whole)


def _walk(pending: list[ir.Expr]) -> Iterator[ir.Expr]:
    """Yield the expressions and all below them, the last one first."""
    while pending:
        node = pending.pop()
        yield node
        pending += node.operands[::-1]


def _gather(body: tuple[ir.Stmt, ...], whole: list[ir.Expr]) -> None:
    """Add the expressions that stand in the statements, in the order of the text."""
    for stmt in body:
        match stmt:
            case ir.Let(_, value) | ir.Var(_, value) | ir.Assign(_, value) | ir.Accumulate(_, value):
                whole.append(value)
            case ir.Write(_, value, quick):
                whole.append(value)
                if quick is not None:
                    whole.append(quick.value)
                    whole += () if quick.holds is None else (quick.holds,)
            case ir.Return(value):
                whole += () if value is None else (value,)
            case ir.Require(condition):
                whole.append(condition)
            case ir.If(condition, then, otherwise):
                whole.append(condition)
                _gather(then, whole)
                _gather(otherwise, whole)
            case ir.Store(_, index, value) | ir.StoreVector(_, index, value) | ir.AtomicMax(_, index, value):
                whole += (index, value)
            case ir.For(_, start, stop, step, inner):
                whole += (start, stop, step)
                _gather(inner, whole)
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


@kept
def callees(function: Function) -> tuple[str, ...]:
    """Return what a function calls."""
    return called_functions(function.body)


def reachable_functions(bodies: Iterable[tuple[ir.Stmt, ...]], table: Mapping[str, Function]) -> tuple[Function, ...]:
    """Return the functions of `table` that the bodies call, directly or not, callers first, each once."""
    order: dict[str, Function] = {}

    def visit(name: str) -> None:
        if name not in order:
            for callee in callees(table[name]):
                visit(callee)
            order[name] = table[name]

    names = [name for body in bodies for name in called_functions(body)]
    for name in reversed(dict.fromkeys(names)):
        visit(name)
    return tuple(reversed(order.values()))
