"""Kernels with a deliberate fault: the compiler run on a changed text of the library or of a formula, or its LEGAL program rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from qgen import compiler, formulas
from qgen.arrays import from_codes
from qgen.frontend.parse import parse_source
from qgen.ir import nodes as ir
from qgen.ir.program import Program
from qgen.ir.rewrite import map_body, map_expr
from qgen.kernel import Kernel, compile_request
from qgen.numerics import library
from qgen.passes.pipeline import lower_program
from qgen.request import Request
from qgen.shapes import scale_shape


@dataclass(frozen=True, slots=True)
class Text:
    """`old` becomes `new` in a file of the numerics library or of the formulas."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The entry point is changed: each expression, operands first, and where each word is stored."""

    change: Callable[[ir.Expr], ir.Expr] = lambda expr: expr
    stored_at: Callable[[ir.Expr], ir.Expr] = lambda index: index


def compile_broken(request: Request, fault: Text | Rewrite) -> Kernel:
    """Return the kernel that a compiler with the fault makes of `request`; it is still to compute what a right one computes."""
    right = compile_request(request)
    with _library(fault) if isinstance(fault, Text) else _lowering(fault):
        broken = compile_request(request)
    assert broken.wgsl != right.wgsl
    return Kernel(replace(broken.compiled, checked=right.compiled.checked))


@contextmanager
def _library(fault: Text) -> Iterator[None]:
    is_formula = fault.file in formulas.FILES
    names = formulas.FILES if is_formula else library.FILES
    text = files("qgen.formulas" if is_formula else "qgen.numerics").joinpath(fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1, f"{text.count(fault.old)} times {fault.old}"
    changed = parse_source(text.replace(fault.old, fault.new), fault.file)
    known = formulas.builtin_formulas() if is_formula else library.sources()
    sources = tuple(changed if name == fault.file else source for name, source in zip(names, known, strict=True))
    with ExitStack() as stack:
        stack.enter_context(
            patch.object(formulas, "builtin_formulas", lambda: sources) if is_formula else patch.object(library, "sources", lambda: sources)
        )
        _forget()
        stack.callback(_forget)
        yield


def _forget() -> None:
    for cached in (library.declarations, library.function, library.closure, library.candidates, compiler.check_signature):
        cached.cache_clear()


@contextmanager
def _lowering(fault: Rewrite) -> Iterator[None]:
    def lower(*args: Any) -> tuple[Program, Any]:  # noqa: ANN401 - what the pipeline takes and returns
        legal, plan = lower_program(*args)

        def walk(expr: ir.Expr) -> ir.Expr:
            return map_expr(expr, fault.change)

        kernels = tuple(replace(kernel, body=_stored_at(map_body(kernel.body, walk), fault)) for kernel in legal.kernels)
        return replace(legal, kernels=kernels), plan

    with patch.object(compiler, "lower_program", lower):
        yield


def _stored_at(body: tuple[ir.Stmt, ...], fault: Rewrite) -> tuple[ir.Stmt, ...]:
    def change(stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Store(_, index, _):
                return replace(stmt, index=fault.stored_at(index))
            case ir.For():
                return replace(stmt, body=_stored_at(stmt.body, fault))
            case _:
                return stmt

    return tuple(change(stmt) for stmt in body)


def uniform_inputs(kernel: Kernel, shape: tuple[int, ...], seed: int) -> Mapping[str, NDArray[Any]]:
    """Return inputs of which every bit is random."""
    rng = np.random.default_rng(seed)
    shared = scale_shape(kernel.request.granularity, shape)
    found = {}
    for operand in kernel.compiled.checked.operands:
        if not operand.is_output:
            dims = shared if operand.per_group else shape
            found[operand.name] = from_codes(
                rng.integers(0, 1 << operand.dtype.bits, int(np.prod(dims)), dtype=np.uint32), operand.dtype, dims
            )
    return found
