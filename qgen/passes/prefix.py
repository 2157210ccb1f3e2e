"""LEGAL to LEGAL: gives every name that a fragment has at the top of a module one prefix, so that several stand in one text.

Before: `fn bits(i: u32) -> u32 { return dequantize_linear(x[i], x_scale[0u]) }`; after, with the prefix `w`:
`fn w_bits(i: u32) -> u32 { return w__dequantize_linear(w_x[i], w_scale[0u]) }`. Parameters and what a function names stay as they are.

What is not the caller's has two underscores after the prefix, which has none side by side nor at its end: so no name of one fragment is
another's, even where one's prefix begins with the other's (`w__scale_product` and `w_scale__product`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from qgen.errors import QgenError
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Program
from qgen.ir.rewrite import map_body, map_expr, walk_stmts
from qgen.ir.types import Machine, Struct
from qgen.passes.functions import BITS, FOUR, ONE


def prefix_names(program: Program, prefix: str) -> Program:
    """Return the program with prefixed functions, structs and buffers.

    Raises `QgenError` QG962 where a function's own names would hide what it calls.
    """
    names = {function.name: _prefixed(function.name, prefix) for function in program.functions}
    first = program.operands[0].name
    buffers = {operand.name: f"{prefix}_{operand.name.removeprefix(f'{first}_')}" for operand in program.operands}

    def machine(type_: Machine) -> Machine:
        return replace(type_, name=_prefixed(type_.name, prefix)) if isinstance(type_, Struct) else type_

    def rename(expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Call(name, args, type_):
                return ir.Call(names[name], args, machine(type_))
            case ir.Load(buffer, index):
                return ir.Load(buffers[buffer], index)
            case ir.Construct(args, struct):
                return ir.Construct(args, replace(struct, name=_prefixed(struct.name, prefix)))
            case ir.Name(name, Struct() as struct):
                return ir.Name(name, machine(struct))
            case ir.Select(condition, then, otherwise, Struct() as struct):
                return ir.Select(condition, then, otherwise, machine(struct))
            case _:
                return expr

    functions = tuple(_prefix_function(function, names, machine, rename) for function in program.functions)
    operands = tuple(replace(operand, name=buffers[operand.name]) for operand in program.operands)
    renamed = replace(program, operands=operands, functions=functions)
    _hold_apart(renamed, prefix)
    return renamed


def _prefixed(name: str, prefix: str) -> str:
    return f"{prefix}_{name}" if name in {FOUR, ONE, BITS} else f"{prefix}__{name}"


def _prefix_function(
    function: Function, names: Mapping[str, str], machine: Callable[[Machine], Machine], rename: Callable[[ir.Expr], ir.Expr]
) -> Function:
    params = tuple(replace(param, type=machine(param.type)) for param in function.params)
    body = map_body(function.body, lambda expr: map_expr(expr, rename))
    return replace(function, name=names[function.name], params=params, result=machine(function.result), body=body)


def _hold_apart(program: Program, prefix: str) -> None:
    taken = {operand.name for operand in program.operands} | {function.name for function in program.functions}
    taken |= {function.result.name for function in program.functions if isinstance(function.result, Struct)}
    inner = {param.name for function in program.functions for param in function.params}
    inner |= {stmt.name for function in program.functions for stmt in walk_stmts(function.body) if isinstance(stmt, ir.Let)}
    hidden = sorted(taken & inner)
    if hidden:
        raise QgenError("QG962", f"with the prefix `{prefix}`, `{hidden[0]}` names two things", hint="choose another prefix")
