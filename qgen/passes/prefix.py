"""LEGAL to LEGAL: gives every name that a fragment has at the top of a module one prefix, so that several stand in one text.

Before: `fn bits(i: u32) -> u32 { return dequantize_linear(x[i], x_scale[0u]) }`; after, with the prefix `w`:
`fn w_bits(i: u32) -> u32 { return w_dequantize_linear(w_x[i], w_scale[0u]) }`. Parameters and what a function names stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qgen.errors import QgenError
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Program
from qgen.ir.rewrite import map_body, map_expr, walk_stmts
from qgen.ir.types import Machine, Struct


def prefix_names(program: Program, prefix: str) -> Program:
    """Return the program with prefixed functions, structs and buffers.

    Raises `QgenError` QG962 where a function's own names would hide what it calls.
    """
    first = program.operands[0].name
    buffers = {operand.name: f"{prefix}_{operand.name.removeprefix(f'{first}_')}" for operand in program.operands}

    def machine(type_: Machine) -> Machine:
        return replace(type_, name=f"{prefix}_{type_.name}") if isinstance(type_, Struct) else type_

    def rename(expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Call(name, args, type_):
                return ir.Call(f"{prefix}_{name}", args, machine(type_))
            case ir.Load(buffer, index):
                return ir.Load(buffers[buffer], index)
            case ir.Construct(args, struct):
                return ir.Construct(args, replace(struct, name=f"{prefix}_{struct.name}"))
            case ir.Name(name, Struct() as struct):
                return ir.Name(name, machine(struct))
            case ir.Select(condition, then, otherwise, Struct() as struct):
                return ir.Select(condition, then, otherwise, machine(struct))
            case _:
                return expr

    functions = tuple(_prefix_function(function, prefix, machine, rename) for function in program.functions)
    operands = tuple(replace(operand, name=buffers[operand.name]) for operand in program.operands)
    renamed = replace(program, operands=operands, functions=functions)
    _hold_apart(renamed, prefix)
    return renamed


def _prefix_function(
    function: Function, prefix: str, machine: Callable[[Machine], Machine], rename: Callable[[ir.Expr], ir.Expr]
) -> Function:
    params = tuple(replace(param, type=machine(param.type)) for param in function.params)
    body = map_body(function.body, lambda expr: map_expr(expr, rename))
    return replace(function, name=f"{prefix}_{function.name}", params=params, result=machine(function.result), body=body)


def _hold_apart(program: Program, prefix: str) -> None:
    taken = {operand.name for operand in program.operands} | {function.name for function in program.functions}
    taken |= {function.result.name for function in program.functions if isinstance(function.result, Struct)}
    inner = {param.name for function in program.functions for param in function.params}
    inner |= {stmt.name for function in program.functions for stmt in walk_stmts(function.body) if isinstance(stmt, ir.Let)}
    hidden = sorted(taken & inner)
    if hidden:
        raise QgenError("QG962", f"with the prefix `{prefix}`, `{hidden[0]}` names two things", hint="choose another prefix")
