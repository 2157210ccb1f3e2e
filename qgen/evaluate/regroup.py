"""Rewrites functions and kernels as WGSL lets a compiler: multiplications and additions fused, sums distributed, operations reordered.

Before:

    let p: f32 = a * b
    return p + c

After, where it is fused:

    let p: f32 = a * b
    return fma(a, b, c)

Names are seen through, for a compiler does not keep them. A `bitcast` ends an expression, and so does a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from qgen.evaluate.model import Text
from qgen.ir import nodes as ir
from qgen.ir.rewrite import children, map_stmt, walk_expr, with_children
from qgen.ir.types import Scalar


class Regrouping(Enum):
    """One way to compute the same, were it computed exactly."""

    FUSE = "a * b + c as fma(a, b, c)"
    DISTRIBUTE = "(a - b) * s as a * s - b * s"
    REASSOCIATE = "(a + b) + c as a + (b + c), (a * b) * c as a * (b * c), (a * b) / c as (a / c) * b"


Decision = Callable[[Regrouping, int], bool]
"""Whether to regroup at the site with this number, counted in the order of the text."""
_SUMS: Final = frozenset({"+", "-"})


def regroup(text: Text, decide: Decision) -> Text:
    """Return the function or kernel with operations regrouped where `decide` says so; the same object where there are none."""
    variables = frozenset(_variables(text.body))
    body = _Regrouper(decide, variables).block(text.body, {})
    return text if body is text.body else replace(text, body=body)


def _variables(body: tuple[ir.Stmt, ...]) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case ir.Var(name, _):
                yield name
            case ir.If(_, then, otherwise):
                yield from _variables(then)
                yield from _variables(otherwise)
            case ir.For(name, _, _, _, inner):
                yield name
                yield from _variables(inner)
            case _:
                pass


@dataclass(slots=True)
class _Regrouper:
    decide: Decision
    variables: frozenset[str]
    site: int = 0

    def block(self, body: tuple[ir.Stmt, ...], outer: dict[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
        """Return the statements; the same tuple where nothing changed. `outer` has the operations that names stand for."""
        known = dict(outer)
        new = tuple(self._stmt(stmt, known) for stmt in body)
        return body if all(a is b for a, b in zip(body, new, strict=True)) else new

    def _stmt(self, stmt: ir.Stmt, known: dict[str, ir.Expr]) -> ir.Stmt:
        match stmt:
            case ir.Let(name, value):
                new = self._expr(value, known)
                if isinstance(new, ir.Binary) and new.type is Scalar.F32 and not self._mentions_variables(new):
                    known[name] = new
                return stmt if new is value else ir.Let(name, new)
            case ir.If(condition, then, otherwise):
                parts = self._expr(condition, known), self.block(then, known), self.block(otherwise, known)
                return stmt if parts[0] is condition and parts[1] is then and parts[2] is otherwise else ir.If(*parts)
            case ir.For(name, start, stop, step, inner):
                begin, end, body = self._expr(start, known), self._expr(stop, known), self.block(inner, known)
                return stmt if begin is start and end is stop and body is inner else ir.For(name, begin, end, step, body)
            case _:
                changed = False

                def change(expr: ir.Expr) -> ir.Expr:
                    nonlocal changed
                    new = self._expr(expr, known)
                    changed = changed or new is not expr
                    return new

                mapped = map_stmt(stmt, change)
                return mapped if changed else stmt

    def _mentions_variables(self, expr: ir.Expr) -> bool:
        return any(isinstance(node, ir.Name) and node.name in self.variables for node in walk_expr(expr))

    def _expr(self, expr: ir.Expr, known: dict[str, ir.Expr]) -> ir.Expr:
        new = with_children(expr, tuple(self._expr(child, known) for child in children(expr)))
        if not isinstance(new, ir.Binary) or new.type is not Scalar.F32:
            return new
        lhs, rhs = (known.get(side.name, side) if isinstance(side, ir.Name) else side for side in (new.lhs, new.rhs))
        for kind, rule in ((Regrouping.DISTRIBUTE, _distribute), (Regrouping.REASSOCIATE, _reassociate), (Regrouping.FUSE, _fuse)):
            found = rule(new.op, lhs, rhs)
            if found is None:
                continue
            self.site += 1
            if self.decide(kind, self.site):
                return self._fused(found) if kind is Regrouping.DISTRIBUTE else found
        return new

    def _fused(self, expr: ir.Expr) -> ir.Expr:
        """Return the sum of two products that a distribution made, perhaps fused in its turn."""
        found = _fuse(expr.op, expr.lhs, expr.rhs) if isinstance(expr, ir.Binary) else None
        self.site += 1
        return found if found is not None and self.decide(Regrouping.FUSE, self.site) else expr


def _fuse(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr | None:
    if op not in _SUMS:
        return None
    match lhs, rhs:
        case ir.Binary("*", a, b, Scalar.F32), _:
            return ir.Builtin("fma", (a, b, rhs if op == "+" else _negative(rhs)), Scalar.F32)
        case _, ir.Binary("*", a, b, Scalar.F32):
            return ir.Builtin("fma", (a if op == "+" else _negative(a), b, lhs), Scalar.F32)
        case _:
            return None


def _distribute(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr | None:
    if op != "*":
        return None
    match lhs, rhs:
        case ir.Binary("+" | "-" as inner, a, b, Scalar.F32), factor:
            return _f32(inner, _f32("*", a, factor), _f32("*", b, factor))
        case factor, ir.Binary("+" | "-" as inner, a, b, Scalar.F32):
            return _f32(inner, _f32("*", factor, a), _f32("*", factor, b))
        case _:
            return None


def _reassociate(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr | None:
    """Return a ± (b ± c) for (a ± b) ± c and the other way about; products alike; (a / c) * b for (a * b) / c."""
    match op, lhs, rhs:
        case "+" | "-", ir.Binary("+" | "-" as inner, a, b, Scalar.F32), c:
            return _f32(inner, a, _f32("+" if inner == op else "-", b, c))
        case "+" | "-", a, ir.Binary("+" | "-" as inner, b, c, Scalar.F32):
            return _f32("+" if inner == op else "-", _f32(op, a, b), c)
        case "*", ir.Binary("*", a, b, Scalar.F32), c:
            return _f32("*", a, _f32("*", b, c))
        case "*", a, ir.Binary("*", b, c, Scalar.F32):
            return _f32("*", _f32("*", a, b), c)
        case "/", ir.Binary("*", a, b, Scalar.F32), c:
            return _f32("*", _f32("/", a, c), b)
        case _:
            return None


def _f32(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    return ir.Binary(op, lhs, rhs, Scalar.F32)


def _negative(expr: ir.Expr) -> ir.Expr:
    return ir.Unary("-", expr, Scalar.F32)
