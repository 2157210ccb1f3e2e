"""LEGAL to LEGAL: gives every identifier that WGSL reserves, or that emitted text uses itself, another name.

Before: `let target: u32 = x[0u]`; after: `let target_: u32 = x[0u]`. Operands are renamed with their buffers; the sidecar keeps the
formula's names. The same object where nothing is reserved.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, assert_never

from qgen.errors import QgenError
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Program, kept
from qgen.ir.rewrite import map_body, map_expr
from qgen.ir.types import Struct

_WORDS: Final = """
    NULL Self abstract active alias alignas alignof array as asm asm_fragment async attribute auto await become binding_array bitcast
    bool break case cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment concept const
    const_assert const_cast consteval constexpr constinit continue continuing crate debugger decltype default delete demote
    demote_to_helper diagnostic discard do dynamic_cast else enable enum explicit export extends extern external f16 f32 fallthrough
    false filter final finally fn for friend from fxgroup get goto groupshared highp i32 id if impl implements import inline instanceof
    interface layout let loop lowp macro macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline
    nointerpolation non_coherent noncoherent noperspective null nullptr of operator override package packoffset params partial pass
    patch pixelfragment precise precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require
    requires resource restrict return self set shared sizeof smooth snorm static static_assert static_cast std struct subroutine super
    switch target template this thread_local throw trait true try type typedef typeid typename typeof u32 union unless unorm unsafe
    unsized use using var varying vec2u vec3u vec4u virtual volatile wgsl where while with writeonly yield abs clamp countLeadingZeros
    max min round select Params
"""
RESERVED: Final = frozenset(_WORDS.split())
"""Keywords and reserved words of WGSL ([Keyword Summary], [Reserved Words]), and the predeclared names that emitted text uses."""

_BEGINS_BADLY: Final = re.compile("u*(?:__|_$)")


def is_reserved(name: str) -> bool:
    """Whether emitted text cannot declare `name`."""
    return name in RESERVED or name.startswith("__") or name == "_"


def rename_reserved(program: Program) -> Program:
    """Return the program without reserved identifiers; functions of the library have none, and are left alone.

    Entry points keep the names that were asked for. Raises `QgenError` QG105 where one is also the name of something in the text.
    """
    operands = {operand.name: _safe(operand.name) for operand in program.operands}
    if all(name == new for name, new in operands.items()) and not _has_reserved_inside(program):
        _hold_entry_points(program)
        return program
    functions = tuple(_rename_function(function) for function in program.functions)
    kernels = tuple(_rename_kernel(kernel, operands) for kernel in program.kernels)
    named = tuple(replace(operand, name=operands[operand.name]) for operand in program.operands)
    wide = frozenset(operands[name] for name in program.wide)
    program = replace(program, operands=named, functions=functions, kernels=kernels, wide=wide)
    _hold_entry_points(program)
    return program


def _hold_entry_points(program: Program) -> None:
    taken = {operand.name for operand in program.operands}
    for function in program.functions:
        taken.add(function.name)
        taken.update(type_.name for type_ in (function.result, *(param.type for param in function.params)) if isinstance(type_, Struct))
    for kernel in program.kernels:
        if kernel.name in taken:
            hint = "choose another name: `main` is always free"
            raise QgenError("QG105", f"`{kernel.name}` cannot name an entry point: it names something else in the text", hint=hint)


def _safe(name: str) -> str:
    """Return a name that is not reserved; different names stay different, for what another is renamed to is itself renamed."""
    if _BEGINS_BADLY.match(name):
        return f"u{name}"
    return f"{name}_" if name.rstrip("_") in RESERVED else name


def _rename_function(function: Function) -> Function:
    if not _has_reserved(function):
        return function
    params = tuple(replace(param, name=_safe(param.name)) for param in function.params)
    return replace(function, name=_safe(function.name), params=params, body=_rename_body(function.body, {}))


def _has_reserved_inside(program: Program) -> bool:
    in_functions = any(_has_reserved(function) for function in program.functions)
    return in_functions or any(_declares_reserved(kernel.body) for kernel in program.kernels)


@kept
def _has_reserved(found: Function) -> bool:
    """Whether a function has a reserved identifier."""
    return _is_renamed(found.name) or any(_is_renamed(param.name) for param in found.params) or _declares_reserved(found.body)


def _is_renamed(name: str) -> bool:
    return _safe(name) != name


def _declares_reserved(body: tuple[ir.Stmt, ...]) -> bool:
    for stmt in body:
        match stmt:
            case ir.Let(name, _) | ir.Var(name, _):
                if _is_renamed(name):
                    return True
            case ir.For(name, _, _, _, inner):
                if _is_renamed(name) or _declares_reserved(inner):
                    return True
            case ir.If(_, then, otherwise):
                if _declares_reserved(then) or _declares_reserved(otherwise):
                    return True
            case ir.Return() | ir.Require() | ir.Write() | ir.Accumulate() | ir.Store() | ir.StoreVector() | ir.AtomicMax() | ir.Assign():
                pass
            case _:
                assert_never(stmt)
    return False


def _rename_kernel(kernel: Kernel, buffers: dict[str, str]) -> Kernel:
    return replace(kernel, body=_rename_body(kernel.body, buffers))


def _rename_body(body: tuple[ir.Stmt, ...], buffers: dict[str, str]) -> tuple[ir.Stmt, ...]:
    def rename(expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Name(name, type_):
                return ir.Name(_safe(name), type_)
            case ir.Call(name, args, type_):
                return ir.Call(_safe(name), args, type_)
            case ir.Load() | ir.LoadVector():
                return replace(expr, buffer=buffers.get(expr.buffer, expr.buffer))
            case _:
                return expr

    return tuple(_rename_stmt(stmt, buffers) for stmt in map_body(body, lambda expr: map_expr(expr, rename)))


def _rename_stmt(stmt: ir.Stmt, buffers: dict[str, str]) -> ir.Stmt:
    match stmt:
        case ir.Let() | ir.Var() | ir.Assign():
            return replace(stmt, name=_safe(stmt.name))
        case ir.For():
            return replace(stmt, name=_safe(stmt.name), body=tuple(_rename_stmt(inner, buffers) for inner in stmt.body))
        case ir.If():
            then = tuple(_rename_stmt(inner, buffers) for inner in stmt.then)
            return replace(stmt, then=then, otherwise=tuple(_rename_stmt(inner, buffers) for inner in stmt.otherwise))
        case ir.Store() | ir.StoreVector() | ir.AtomicMax():
            return replace(stmt, buffer=buffers.get(stmt.buffer, stmt.buffer))
        case ir.Return() | ir.Require() | ir.Write() | ir.Accumulate():
            return stmt
        case _:
            assert_never(stmt)
