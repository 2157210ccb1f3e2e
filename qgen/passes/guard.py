"""REALISED to REALISED: splits every partial function into a total one and the conditions under which it is right.

Before:

    write y = dequantize(…)
        quick = scale_product(zero_extend_uint8(read x), read x_scale) where its requires hold

    fn scale_product(v, s) { let es = s & …; require es > … && es < …; return … }

After:

    write y = …
        quick = scale_product(zero_extend_uint8(read x), read x_scale) where scale_product_takes_s(read x_scale)

    fn scale_product(v, s) { return … }
    fn scale_product_takes_s(s) -> bool { let es = s & …; return es > … && es < … }

A require that depends on one parameter alone is a function of its own, `…_takes_<parameter>`: where that parameter is shared by a group, so
is the condition. The others are `…_holds`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Param, Program, kept
from qgen.ir.rewrite import drop_unused_lets, walk_expr
from qgen.ir.types import Scalar

_TRUE = ir.Literal(value=True, type=Scalar.BOOL)


@dataclass(frozen=True, slots=True)
class _Split:
    """A partial function without its requires, and the functions that say whether they hold, with the parameters each takes."""

    total: Function
    conditions: tuple[tuple[Function, tuple[int, ...]], ...]


def guard_quick(program: Program) -> Program:
    """Return the program with requires as conditions of the quick values; the same object where no function has one."""
    partial = {function.name: function for function in program.functions if _has_require(function)}
    quick = [stmt.quick for kernel in program.kernels for stmt in kernel.body if isinstance(stmt, ir.Write) and stmt.quick is not None]
    if not partial and all(each.holds is not None for each in quick):
        return program
    splits = {name: _split(function) for name, function in partial.items()}
    functions: list[Function] = []
    used: dict[str, Function] = {}
    kernels = tuple(_guard_kernel(kernel, splits, used) for kernel in program.kernels)
    for function in program.functions:
        functions.append(splits[function.name].total if function.name in splits else function)
        if function.name in splits:
            functions += [condition for condition, _ in splits[function.name].conditions if condition.name in used]
    return replace(program, kernels=kernels, functions=tuple(functions))


def _guard_kernel(kernel: Kernel, splits: dict[str, _Split], used: dict[str, Function]) -> Kernel:
    body: list[ir.Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, ir.Write) and stmt.quick is not None and stmt.quick.holds is None:
            holds = _conditions(stmt.quick.value, splits, used)
            body.append(replace(stmt, quick=ir.Quick(stmt.quick.value, holds)))
        else:
            body.append(stmt)
    return replace(kernel, body=tuple(body))


def _conditions(expr: ir.Expr, splits: dict[str, _Split], used: dict[str, Function]) -> ir.Expr:
    """Return whether every require met by `expr` holds; what one parameter decides comes first."""
    terms: list[ir.Expr] = []
    for node in walk_expr(expr):
        if isinstance(node, ir.Call) and node.function in splits:
            for condition, params in splits[node.function].conditions:
                used[condition.name] = condition
                terms.append(ir.Call(condition.name, tuple(node.args[number] for number in params), Scalar.BOOL))
    terms.sort(key=lambda term: len(term.args) if isinstance(term, ir.Call) else 0)
    if not terms:
        return ir.Literal(value=True, type=Scalar.BOOL)
    result = terms[0]
    for term in terms[1:]:
        result = ir.Binary("&&", result, term, Scalar.BOOL)
    return result


@kept
def _has_require(function: Function) -> bool:
    return _any_require(function.body)


def _any_require(body: tuple[ir.Stmt, ...]) -> bool:
    return any(
        isinstance(stmt, ir.Require) or (isinstance(stmt, ir.If) and (_any_require(stmt.then) or _any_require(stmt.otherwise)))
        for stmt in body
    )


@kept
def _split(found: Function) -> _Split:
    total = replace(found, body=drop_unused_lets(_without_requires(found.body)))
    alone: dict[int, list[ir.Expr]] = {}
    rest: list[ir.Stmt] = []
    lets: dict[str, ir.Expr] = {}
    names = [param.name for param in found.params]
    straight = True
    for stmt in found.body:
        straight = straight and not isinstance(stmt, ir.If)
        if isinstance(stmt, ir.Let):
            lets[stmt.name] = stmt.value
        if isinstance(stmt, ir.Require) and straight:
            params = _params_of(stmt.condition, lets, names)
            if len(params) == 1 < len(names):
                alone.setdefault(params[0], []).append(stmt.condition)
                continue
        rest.append(stmt)
    conditions: list[tuple[Function, tuple[int, ...]]] = [
        (_predicate(found, f"takes_{names[number]}", (found.params[number],), _taking(tests, lets)), (number,))
        for number, tests in sorted(alone.items())
    ]
    if _any_require(tuple(rest)):
        body = drop_unused_lets(_answering(tuple(rest)))
        conditions.append((_predicate(found, "holds", found.params, body), tuple(range(len(names)))))
    return _Split(total, tuple(conditions))


def _predicate(function: Function, what: str, params: tuple[Param, ...], body: tuple[ir.Stmt, ...]) -> Function:
    return Function(f"{function.name}_{what}", params, Scalar.BOOL, body)


def _params_of(expr: ir.Expr, lets: dict[str, ir.Expr], params: list[str]) -> list[int]:
    found: set[str] = set()
    pending = [expr]
    while pending:
        for node in walk_expr(pending.pop()):
            if isinstance(node, ir.Name):
                if node.name in lets:
                    pending.append(lets[node.name])
                else:
                    found.add(node.name)
    return [number for number, name in enumerate(params) if name in found]


def _taking(tests: list[ir.Expr], lets: dict[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
    test = tests[0]
    for other in tests[1:]:
        test = ir.Binary("&&", test, other, Scalar.BOOL)
    return drop_unused_lets((*(ir.Let(name, value) for name, value in lets.items()), ir.Return(test)))


def _without_requires(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    kept: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Require():
                pass
            case ir.If(condition, then, otherwise):
                kept.append(ir.If(condition, _without_requires(then), _without_requires(otherwise)))
            case _:
                kept.append(stmt)
    return tuple(kept)


def _answering(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Return the body as one that answers whether all its requires hold."""
    answer: list[ir.Stmt] = []
    for position, stmt in enumerate(body):
        match stmt:
            case ir.Require(condition) if not _any_require(body[position + 1 :]):
                return (*answer, ir.Return(condition))
            case ir.Require(condition):
                answer.append(ir.If(_negate(condition), (ir.Return(ir.Literal(value=False, type=Scalar.BOOL)),)))
            case ir.If(condition, then, otherwise):
                answer.append(ir.If(condition, _answering(then), _answering(otherwise)))
            case ir.Return():
                answer.append(ir.Return(_TRUE))
            case ir.Let():
                answer.append(stmt)
            case ir.Write() | ir.Accumulate() | ir.Store() | ir.StoreVector() | ir.AtomicMax() | ir.Var() | ir.Assign() | ir.For():
                raise InternalError("a library function has no such statement")
            case _:
                assert_never(stmt)
    return tuple(answer)


def _negate(condition: ir.Expr) -> ir.Expr:
    """Return the opposite of a condition; a comparison of floats is not turned round, for neither way holds of a NaN."""
    opposite = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    match condition:
        case ir.Binary(op, lhs, rhs, type_) if op in opposite and lhs.type is not Scalar.F32:
            return ir.Binary(opposite[op], lhs, rhs, type_)
        case ir.Binary("&&", lhs, rhs, type_):
            return ir.Binary("||", _negate(lhs), _negate(rhs), type_)
        case _:
            return ir.Unary("!", condition, Scalar.BOOL)
