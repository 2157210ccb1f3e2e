"""The library's `is` clauses as pairs of computations: what the oracle says of a clause, and what the evaluator makes of its function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes, to_codes
from qgen.dtypes import DType
from qgen.evaluate import IEEE, ArithmeticModel, evaluate_function
from qgen.frontend import ast
from qgen.frontend.check_fn import Declarations, Pattern, check_clause, check_fn, split_instance, struct_of
from qgen.frontend.parse import parse_source
from qgen.ir.nodes import If, Require, Stmt
from qgen.ir.program import Function
from qgen.ir.rewrite import called_functions
from qgen.ir.types import Int, Scalar, Value
from qgen.numerics import library
from qgen.oracle.formats import decode, encode
from qgen.oracle.reference import evaluate_expr

Codes = NDArray[Any]
"""One element a lane: uint32 codes of a dtype, or int32."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, the function that has it (for one format), and the functions that it may call."""

    name: str
    pattern: Pattern
    function: Function
    functions: Mapping[str, Function]

    @property
    def is_partial(self) -> bool:
        """Whether the function has a `require`, and so is right only where it holds."""
        return _requires(self.functions.values())

    def __str__(self) -> str:
        """Return the function's name, as the emitted text has it."""
        return self.function.name

    def actual(self, args: tuple[Codes, ...], model: ArithmeticModel = IEEE) -> tuple[Codes, NDArray[np.bool_]]:
        """Return what the function computes, and on which lanes every `require` held; without one, it has to be all."""
        result = evaluate_function(self.function, self.functions, args, model)
        assert isinstance(result.value, np.ndarray)
        assert self.is_partial or result.held.all()
        return result.value, result.held

    def expected(self, args: tuple[Codes, ...]) -> Codes:
        """Return what the clause says, computed exactly by the oracle.

        `round_even` is clamped to its interval, to which the front end holds every formula (QG017, QG018).
        """
        values = {name: _values(of, arg) for (name, of), arg in zip(self.pattern.params, args, strict=True)}
        type_ = self.pattern.expr.type
        with np.errstate(all="ignore"):
            result: NDArray[Any] = evaluate_expr(self.pattern.expr, values)
        if isinstance(type_, DType):
            return to_codes(encode(result, type_), type_)
        if isinstance(type_, Int):
            clamped: Codes = np.clip(result, type_.lo, type_.hi).astype(np.int32)
            return clamped
        assert type_ is Scalar.BOOL
        return result


def _values(of: Value, arg: Codes) -> NDArray[np.float64]:
    return decode(from_codes(arg, of, arg.shape), of) if isinstance(of, DType) else arg.astype(np.float64)


def _requires(functions: Iterable[Function]) -> bool:
    return any(_has_require(function.body) for function in functions)


def _has_require(body: tuple[Stmt, ...]) -> bool:
    return any(
        isinstance(stmt, Require) or (isinstance(stmt, If) and (_has_require(stmt.then) or _has_require(stmt.otherwise))) for stmt in body
    )


def mismatches(
    clause: Clause, args: tuple[Codes, ...], model: ArithmeticModel = IEEE, deciding: ArithmeticModel | None = None
) -> list[str]:
    """Return up to five lanes on which the result may be used and is not the clause's: arguments, found and wanted code.

    `deciding` is the model of the computation that decides where a result may be used: a kernel computes value and decision in two places.
    """
    (found, held), wanted = clause.actual(args, model), clause.expected(args)
    held = held if deciding is None else clause.actual(args, deciding)[1]
    assert found.shape == wanted.shape
    lanes = np.flatnonzero(held & (found.astype(np.int64) != wanted.astype(np.int64)))[:5]
    return [
        f"{clause}({', '.join(hex(arg[lane]) for arg in args)}) = {hex(int(found[lane]))}, wanted {hex(int(wanted[lane]))}"
        for lane in lanes
    ]


@lru_cache(maxsize=1)
def library_clauses() -> tuple[Clause, ...]:
    """Return every clause of the library as the compiler uses it, generic functions once for each format of their class."""
    return tuple(
        Clause(
            candidate.name,
            candidate.pattern,
            library.function(candidate.name, candidate.format),
            {found.name: found for found in library.closure(candidate.name, candidate.format)},
        )
        for found in library.candidates().values()
        for candidate in found
    )


def library_texts() -> dict[str, str]:
    """Return the texts of the library by file name."""
    return {name: files("qgen.numerics").joinpath(name).read_text(encoding="utf-8") for name in library.FILES}


_parsed = lru_cache(maxsize=16)(parse_source)


def clause_of(texts: Mapping[str, str], instance: str) -> Clause:
    """Return the first clause of a function of other texts, checked here from the front end up; the compiler's library stays as it is."""
    sources = [_parsed(text, name) for name, text in texts.items()]
    fns = {fn.name: (source, fn) for source in sources for fn in source.fns}
    declared = {name: fn for name, (_, fn) in fns.items()}
    known = Declarations(declared, {struct.name: struct_of(struct) for source in sources for struct in source.structs})
    functions: dict[str, Function] = {}

    def visit(called: str) -> tuple[ast.SourceFile, ast.FnDecl, DType | None]:
        found = split_instance(called, declared)
        assert found is not None
        name, format_ = found
        source, fn = fns[name]
        functions[called] = check_fn(source, fn, known, format_)
        for callee in called_functions(functions[called].body):
            if callee not in functions:
                visit(callee)
        return source, fn, format_

    source, fn, format_ = visit(instance)
    return Clause(fn.name, check_clause(source, fn, fn.clauses[0], format_), functions[instance], functions)
