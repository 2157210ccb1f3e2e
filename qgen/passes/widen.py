"""REALISED to LEGAL, for functions: the version of a function that works on four elements side by side.

Before:

    fn scale_product(v: i32, s: u32) -> u32 {
        return if v == 0 then s & 0x80000000u else bitcast<u32>(f32(v) * bitcast<f32>(s))
    }

After, where `v` differs from element to element and `s` does not:

    fn scale_product_4(v: vec4<i32>, s: u32) -> vec4<u32> {
        return if v == vec4<i32>(0) then vec4<u32>(s & 0x80000000u) else bitcast<vec4<u32>>(vec4<f32>(v) * vec4<f32>(bitcast<f32>(s)))
    }

What all four share stays a scalar. An early return becomes a selection: all of it is computed for every element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from qgen.ir import nodes as ir
from qgen.ir.names import free_name
from qgen.ir.program import Function, Param, kept
from qgen.ir.rewrite import callees, walk_body, walk_expr, with_children
from qgen.ir.types import Machine, Scalar, Struct, Vector

_LOGIC: Final = {"&&": "&", "||": "|"}


class NotWidenableError(Exception):
    """The function works on structs, which have no four-lane form."""


@dataclass(slots=True)
class _Memo:
    """What widening a function gave: the functions made, by name, and the scalar ones it was made from."""

    wide: dict[str, Function] = field(default_factory=dict)
    sources: dict[str, Function] = field(default_factory=dict)

    def holds_for(self, table: Mapping[str, Function]) -> bool:
        """Whether the program has the very functions that this was made from."""
        return bool(self.wide) and all(table.get(name) is source for name, source in self.sources.items())


@kept
def _memos(_function: Function) -> dict[tuple[bool, ...], _Memo]:
    """Return where the versions of a function are kept, by what differs between elements."""
    return {}


class Widener:
    """Makes four-lane versions of functions as they are called; `functions` has those made, by name."""

    def __init__(self, table: Mapping[str, Function]) -> None:
        """Widen functions of `table`."""
        self._table = table
        self.functions: dict[str, Function] = {}
        self._making: list[_Memo] = []

    def expr(self, expr: ir.Expr, leaf: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr:
        """Return the expression with `leaf` in place of what differs between elements: vectors where they come in, scalars elsewhere."""
        found = leaf(expr)
        if found is not None:
            return found
        below = tuple(self.expr(child, leaf) for child in expr.operands)
        if not any(isinstance(child.type, Vector) for child in below):
            return with_children(expr, below) if below else expr
        match expr:
            case ir.Call(name, _, _):
                function = self.function(name, tuple(isinstance(child.type, Vector) for child in below))
                return ir.Call(function.name, below, function.result)
            case ir.Binary(op, _, _, type_):
                lhs, rhs = (spread(child) for child in below)
                return ir.Binary(_LOGIC.get(op, op), lhs, rhs, _wide(type_))
            case ir.Select(_, _, _, type_):
                condition, then, otherwise = below
                return ir.Select(condition, spread(then), spread(otherwise), _wide(type_))
            case ir.Unary() | ir.Convert() | ir.Bitcast():
                return replace(expr, operand=below[0], type=_wide(expr.type))
            case ir.Builtin(name, _, type_):
                return ir.Builtin(name, tuple(spread(child) for child in below), _wide(type_))
            case _:
                raise NotWidenableError(type(expr).__name__)

    def function(self, name: str, varies: tuple[bool, ...]) -> Function:
        """Return the version of a function whose parameters differ from element to element where `varies` says so."""
        function = self._table[name]
        mask = "" if varies[0] and not any(varies[1:]) else "_" + "".join("v" if each else "s" for each in varies)
        wide_name = f"{name}_4{mask}"
        memo = _memos(function).setdefault(varies, _Memo())
        if not memo.holds_for(self._table):
            memo.wide, memo.sources = {}, {name: function}
            self._making.append(memo)
            params = tuple(
                Param(param.name, _wide(param.type) if each else param.type, param.of)
                for param, each in zip(function.params, varies, strict=True)
            )
            body = self._body(function.body, {param.name: ir.Name(param.name, param.type) for param in params})
            self._making.pop()
            memo.wide[wide_name] = Function(wide_name, params, _wide(function.result), body, function.of, function.doc)
        self.functions |= memo.wide
        for caller in self._making[-1:]:
            caller.wide |= memo.wide
            caller.sources |= memo.sources
        return memo.wide[wide_name]

    def _body(self, body: tuple[ir.Stmt, ...], names: dict[str, ir.Name]) -> tuple[ir.Stmt, ...]:
        lets, value = self._value(body, names, set(names))
        return (*lets, ir.Return(spread(value)))

    def _value(self, body: tuple[ir.Stmt, ...], names: dict[str, ir.Name], taken: set[str]) -> tuple[list[ir.Stmt], ir.Expr]:
        """Return the names that a body defines, none of them `taken`, and what it returns, as one expression."""
        lets: list[ir.Stmt] = []

        def leaf(expr: ir.Expr) -> ir.Expr | None:
            return names[expr.name] if isinstance(expr, ir.Name) else None

        for position, stmt in enumerate(body):
            match stmt:
                case ir.Let(name, value):
                    wide = self.expr(value, leaf)
                    if isinstance(wide.type, Struct):
                        raise NotWidenableError(name)
                    names[name] = ir.Name(_fresh(name, taken), _machine(wide))
                    lets.append(ir.Let(names[name].name, wide))
                case ir.Return(value) if value is not None:
                    return lets, self.expr(value, leaf)
                case ir.If(condition, then, otherwise):
                    test, rest = self.expr(condition, leaf), body[position + 1 :]
                    then_lets, first = self._value((*then, *rest), dict(names), taken)
                    else_lets, second = self._value((*otherwise, *rest), dict(names), taken)
                    lets += [*then_lets, *else_lets]
                    return lets, _choose(test, first, second)
                case _:
                    raise NotWidenableError(type(stmt).__name__)
        raise NotWidenableError("a path without a return")


def is_widenable(exprs: Iterable[ir.Expr], table: Mapping[str, Function]) -> bool:
    """Whether expressions have a four-lane form: no function that they reach works on structs."""
    called = dict.fromkeys(node.function for expr in exprs for node in walk_expr(expr) if isinstance(node, ir.Call))
    pending, seen = list(called), set(called)
    while pending:
        function = table[pending.pop()]
        if _uses_structs(function):
            return False
        fresh = set(callees(function)) - seen
        pending += sorted(fresh)
        seen |= fresh
    return True


@kept
def _uses_structs(function: Function) -> bool:
    return any(isinstance(node.type, Struct) for node in walk_body(function.body))


def spread(expr: ir.Expr) -> ir.Expr:
    """Return a vector as it is, and a scalar as a vector of four times itself."""
    if isinstance(expr.type, Vector):
        return expr
    if not isinstance(expr.type, Scalar):
        raise NotWidenableError(type(expr).__name__)
    return ir.Compose((expr,), Vector(expr.type))


def all_lanes(tests: Sequence[ir.Expr]) -> ir.Expr:
    """Return whether conditions, which are vectors, hold of all elements; there is one at least."""
    result = tests[0]
    for test in tests[1:]:
        result = ir.Binary("&", result, test, Vector(Scalar.BOOL))
    return ir.Builtin("all", (result,), Scalar.BOOL)


def _fresh(stem: str, taken: set[str]) -> str:
    """Return a name for what one branch calls `stem`: the other's may have that name too."""
    found = free_name(stem, taken)
    taken.add(found)
    return found


def _choose(condition: ir.Expr, then: ir.Expr, otherwise: ir.Expr) -> ir.Expr:
    if not any(isinstance(part.type, Vector) for part in (condition, then, otherwise)):
        return ir.Select(condition, then, otherwise, _machine(then))
    first, second = spread(then), spread(otherwise)
    return ir.Select(condition, first, second, _machine(first))


def _machine(expr: ir.Expr) -> Machine:
    if not isinstance(expr.type, Scalar | Vector | Struct):
        raise NotWidenableError(type(expr).__name__)
    return expr.type


def _wide(type_: object) -> Vector:
    if isinstance(type_, Scalar):
        return Vector(type_)
    raise NotWidenableError("a struct")
