"""The library's functions, checked once each, and the selection of one for an operation by its `is` clause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from qgen.dtypes import DTYPES, DType
from qgen.errors import InternalError
from qgen.frontend import ast
from qgen.frontend.check_fn import Declarations, Pattern, check_clause, check_fn, split_instance, struct_of
from qgen.frontend.kinds import KINDS
from qgen.frontend.stored import load_builtin
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_expr
from qgen.ir.program import Function
from qgen.ir.rewrite import called_functions, map_body
from qgen.ir.types import Int
from qgen.numerics.normalise import normalise

PACKAGE: Final = "qgen.numerics"
FILES: Final = ("float32.qg", "narrow.qg", "convert.qg", "exact.qg", "quick.qg")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A function that computes `pattern`, for one format of its generic parameter."""

    name: str
    format: DType | None
    pattern: Pattern
    size: int
    """Operations in the pattern: a quick function is selected before one that is always right, the larger pattern before the smaller."""


@lru_cache(maxsize=1)
def sources() -> tuple[ast.SourceFile, ...]:
    """Return the parsed texts of the library."""
    return tuple(load_builtin(PACKAGE, name) for name in FILES)


@lru_cache(maxsize=1)
def declarations() -> Declarations:
    """Return every function and struct of the library by name."""
    return Declarations(
        {fn.name: fn for source in sources() for fn in source.fns},
        {struct.name: struct_of(struct) for source in sources() for struct in source.structs},
    )


@lru_cache(maxsize=512)
def function(name: str, format_: DType | None) -> Function:
    """Return the library function for the format of its generic parameter (None where it has none), its constants folded."""
    for source in sources():
        for fn in source.fns:
            if fn.name == name:
                checked = check_fn(source, fn, declarations(), format_)
                return replace(checked, body=map_body(checked.body, fold_expr))
    raise InternalError(f"the numerics library has no `{name}`")


@lru_cache(maxsize=4096)
def is_library_name(name: str) -> bool:
    """Whether emitted text may declare `name` for the library: a function, its conditions, or a struct."""
    known = declarations()
    return name in known.structs or any(name == stem or name.startswith(f"{stem}_") for stem in known.fns)


@lru_cache(maxsize=4096)
def is_conditional(name: str) -> bool:
    """Whether a function of a program comes from one that computes something in some numerics modes only."""
    stems = _conditional_stems()
    return any(name == stem or name.startswith(f"{stem}_") for stem in stems)


@lru_cache(maxsize=1)
def _conditional_stems() -> tuple[str, ...]:
    return tuple(fn.name for fn in declarations().fns.values() if any(clause.condition for clause in fn.clauses))


def formats(fn: ast.FnDecl) -> tuple[DType | None, ...]:
    """Return the formats a function can be checked for: those of its generic's class, or None alone."""
    if fn.generic is None:
        return (None,)
    return tuple(dtype for dtype in DTYPES.values() if KINDS[fn.generic[1]](dtype))


@lru_cache(maxsize=512)
def closure(name: str, format_: DType | None) -> tuple[Function, ...]:
    """Return the function and those it needs, callers first, each once."""
    seen: dict[str, Function] = {}
    order: list[Function] = []

    def visit(found: Function) -> None:
        seen[found.name] = found
        for callee in called_functions(found.body):
            if callee not in seen:
                visit(_by_instance(callee))
        order.append(found)

    visit(function(name, format_))
    return tuple(reversed(order))


def _by_instance(instance: str) -> Function:
    found = split_instance(instance, declarations().fns)
    if found is None:
        raise InternalError(f"the numerics library has no `{instance}`")
    return function(*found)


@lru_cache(maxsize=1)
def candidates() -> dict[tuple[ir.Op, DType | None], tuple[Candidate, ...]]:
    """Return the clauses by the operation and result type at their root (None for an integer), largest and narrowest first."""
    table: dict[tuple[ir.Op, DType | None], list[Candidate]] = {}
    for candidate in _clauses():
        root = candidate.pattern.expr
        if not isinstance(root, ir.Typed):
            continue  # A conversion of a format to itself: nothing to compute, so nothing to select.
        table.setdefault((root.op, root.type if isinstance(root.type, DType) else None), []).append(candidate)
    return {key: tuple(sorted(found, key=_preference)) for key, found in table.items()}


def _clauses() -> Iterator[Candidate]:
    for source in sources():
        for fn in source.fns:
            for format_ in formats(fn) if fn.clauses else ():
                for clause in fn.clauses:
                    pattern = check_clause(source, fn, clause, format_)
                    pattern = replace(pattern, expr=normalise(pattern.expr))
                    yield Candidate(fn.name, format_, pattern, _size(pattern.expr))


def _size(expr: ir.Expr) -> int:
    return 1 + sum(_size(arg) for arg in expr.args) if isinstance(expr, ir.Typed) else 0


def _preference(candidate: Candidate) -> tuple[int, bool, int]:
    width = sum(of.hi - of.lo for _, of in candidate.pattern.params if isinstance(of, Int))
    return -candidate.size, candidate.pattern.condition is None, width
