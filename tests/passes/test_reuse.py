"""What kernels share is worked out once a process, and what a kernel needed is gone with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from qgen.compiler import compile_kernel
from qgen.dtypes import DTYPES
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir import verify as verify_module
from qgen.ir.fold import fold_expr
from qgen.ir.program import Function, Kernel, Operand, Program, Stage, kept
from qgen.ir.rewrite import map_body, map_expr
from qgen.ir.types import Scalar
from qgen.ir.verify import Verifier
from qgen.numerics import library
from qgen.passes import pipeline
from qgen.passes.fold import fold_constants
from qgen.request import Request, make_request
from qgen.shapes import Blocked
from tests.ir.every_node import LEGAL

ROOT = Path(__file__).parents[2]
U32 = Scalar.U32


def request(columns: int) -> Request:
    return make_request("QuantizeLinear", x="float32", y="uint8", zero_point=True, granularity=Blocked(-1, 32), shape=(3, columns))


PROBE = """
import gc
from collections import Counter
from qgen.compiler import compile_kernel
from tests.passes.test_reuse import request

def live():
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each).__module__.startswith("qgen."))

for columns in range(64, 72):
    _ = compile_kernel(request(columns)).sidecar
before = live()
for columns in range(100, 180):
    _ = compile_kernel(request(columns)).sidecar
print(dict(live() - before))
"""


def test_memory_does_not_grow_with_the_number_of_kernels() -> None:
    """In a process of its own: what other tests keep alive comes and goes."""
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"


def test_a_library_function_is_verified_and_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_kernel(request(64))
    pipeline._hoist_kept.cache_clear()
    verified: list[str] = []
    whole: Callable[..., None] = verify_module._Scope.function

    def count(scope: verify_module._Scope, function: Function) -> None:
        verified.append(function.name)
        whole(scope, function)

    monkeypatch.setattr(verify_module._Scope, "function", count)
    monkeypatch.setattr("qgen.frontend.check_fn.check_fn", lambda *_: pytest.fail("a library function is lowered again"))
    compiled = compile_kernel(replace(request(96), signature=make_request("QuantizeLinear", x="float32", y="uint8").signature))
    own = {"quantize_linear", "quantize_linear_quick"}
    assert {name for name in verified if library.is_library_name(name)} == set()
    assert own <= set(verified)
    printed = [function for function in compiled.legal.functions if library.is_library_name(function.name)]
    assert printed
    assert all("qgen.emit.wgsl.emit_function" in function.memo for function in printed)


def test_shapes_of_a_signature_share_what_comes_before_them() -> None:
    first, second = compile_kernel(request(64)), compile_kernel(request(128))
    assert first.checked is second.checked
    names = {function.name: function for function in first.legal.functions}
    assert all(names[function.name] is function for function in second.legal.functions if function.name in names)


def test_what_is_kept_of_a_function_is_worked_out_once() -> None:
    calls: list[str] = []

    @kept
    def name_of(function: Function) -> str:
        calls.append(function.name)
        return function.name

    function = Function("f", (), U32, (ir.Return(ir.Literal(1, U32)),))
    assert (name_of(function), name_of(function), calls) == ("f", "f", ["f"])
    other = replace(function, name="g")
    assert (name_of(other), calls) == ("g", ["f", "g"])
    assert function == replace(function)


def body_of(*stmts: ir.Stmt) -> Program:
    return Program("Test", Stage.LEGAL, (Operand("y", DTYPES["uint8"], is_output=True),), (Kernel("main", stmts, 64),))


def test_an_expression_that_a_pass_left_alone_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ir.Expr] = []
    agrees: Callable[..., bool] = verify_module._Scope._agrees

    def count(scope: verify_module._Scope, expr: ir.Expr, types: list[object]) -> bool:
        seen.append(expr)
        return agrees(scope, expr, types)

    monkeypatch.setattr(verify_module._Scope, "_agrees", count)
    value = ir.Builtin("min", (ir.Name("a", U32), ir.Literal(3, U32)), U32)
    let, store = ir.Let("a", ir.Literal(7, U32)), ir.Store("y", ir.Literal(0, U32), value)
    verifier = Verifier()
    program = body_of(let, store)
    verifier.verify(program, "one")
    first = len(seen)
    other = ir.Let("b", ir.Literal(8, U32))
    verifier.verify(replace(program, kernels=(replace(program.kernels[0], body=(let, other, store)),)), "another")
    assert seen[first:] == [ir.Literal(8, U32)]


def test_an_expression_seen_before_is_refused_where_its_name_is_gone() -> None:
    let = ir.Let("a", ir.Literal(7, U32))
    store = ir.Store("y", ir.Literal(0, U32), ir.Name("a", U32))
    program, verifier = body_of(let, store), Verifier()
    verifier.verify(program, "one")
    (kernel,) = program.kernels
    with pytest.raises(InternalError, match="types do not agree: a"):
        verifier.verify(replace(program, kernels=(replace(kernel, body=(store,)),)), "another")
    typed = ir.Let("a", ir.Literal(7, Scalar.I32))
    with pytest.raises(InternalError, match="types do not agree: a"):
        verifier.verify(replace(program, kernels=(replace(kernel, body=(typed, store)),)), "another")


def test_an_expression_seen_in_another_scope_is_verified_anew() -> None:
    store = ir.Store("y", ir.Uniform("n"), ir.Literal(1, U32))
    program, verifier = body_of(store), Verifier()
    verifier.verify(replace(program, uniforms=("n",)), "one")
    with pytest.raises(InternalError, match="types do not agree"):
        verifier.verify(program, "another")


def test_what_changes_nothing_returns_the_same_object() -> None:
    for kernel in LEGAL.kernels:
        assert map_body(kernel.body, lambda expr: map_expr(expr, lambda node: node)) is kernel.body
    folded = fold_constants(LEGAL)
    assert fold_constants(folded) is folded
    literal = ir.Literal(1, U32)
    changed = ir.Binary("+", ir.Name("a", U32), ir.Binary("*", literal, literal, U32), U32)
    assert fold_expr(changed) == ir.Binary("+", ir.Name("a", U32), literal, U32)
    assert fold_expr(fold_expr(changed)) == fold_expr(changed)
