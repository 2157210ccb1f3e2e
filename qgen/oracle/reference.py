"""The walk over a CHECKED program: an operand is an array of exact values of x's shape, a statement is done for all elements at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from qgen.errors import InternalError, QgenError
from qgen.ir.nodes import (
    Assign,
    Binary,
    Bitcast,
    Builtin,
    Call,
    Construct,
    Convert,
    Expr,
    Field,
    For,
    If,
    Invocation,
    Let,
    Literal,
    Load,
    Name,
    Read,
    Require,
    Return,
    Select,
    Stmt,
    Store,
    Typed,
    Unary,
    Uniform,
    Var,
    Write,
)
from qgen.ir.program import Operand, Program, Stage
from qgen.oracle.exact import Values
from qgen.oracle.formats import decode, encode
from qgen.oracle.groups import expand_groups
from qgen.oracle.operations import apply_operation
from qgen.shapes import Granularity

Array = NDArray[Any]


def evaluate_reference(program: Program, granularity: Granularity, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a CHECKED `program` by name, each of the shape of x and bit for bit what the semantics ask for.

    `inputs` are logical numpy or ml_dtypes arrays: x of any shape, per-group operands of the shape that `granularity` gives them
    (SEMANTICS 1.5). Raises `QgenError` QG800 where an input is missing, QG240 where its type is not the operand's, QG801 where its shape
    does not fit x's, QG220 to QG222 where the granularity does not.
    """
    if program.stage is not Stage.CHECKED:
        raise InternalError(f"the oracle evaluates CHECKED programs, and `{program.name}` is {program.stage.value}")
    shape, values = _read_inputs(program, granularity, inputs)
    results: dict[str, Array] = {}
    # Division by zero, overflow and NaN have results; they are no cause for numpy's warnings.
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            for name, value in _run(kernel.body, values).items():
                element = np.broadcast_to(value, shape)
                values[name] = element
                results[name] = encode(element, program.operand(name).dtype)
    return results


def _read_inputs(program: Program, granularity: Granularity, inputs: Mapping[str, Array]) -> tuple[tuple[int, ...], dict[str, Values]]:
    operands = [operand for operand in program.operands if not operand.is_output]
    elements = {operand.name: _read_input(operand, inputs) for operand in operands}
    whole = [operand.name for operand in operands if not operand.per_group]
    if not whole:
        raise InternalError(f"`{program.name}` has no operand that gives the shape")
    shape = elements[whole[0]].shape
    for operand in operands:
        if operand.per_group:
            elements[operand.name] = expand_groups(operand.name, elements[operand.name], shape, granularity)
        elif elements[operand.name].shape != shape:
            message = f"`{operand.name}` has shape {elements[operand.name].shape}, and `{whole[0]}` has {shape}"
            raise QgenError("QG801", message, hint="give both the same shape", place=operand.name)
    return shape, elements


def _read_input(operand: Operand, inputs: Mapping[str, Array]) -> Values:
    if operand.name not in inputs:
        raise QgenError(
            "QG800", f"the input `{operand.name}` is missing", hint=f"give an array of {operand.dtype.name}", place=operand.name
        )
    return decode(inputs[operand.name], operand.dtype)


def _run(body: tuple[Stmt, ...], operands: Mapping[str, Values]) -> dict[str, Values]:
    """Return what `body` writes, by operand."""
    names: dict[str, Values] = {}
    written: dict[str, Values] = {}
    for statement in body:
        match statement:
            case Let(name, value):
                names[name] = _evaluate(value, names, operands)
            case Write(operand, value):
                written[operand] = _evaluate(value, names, operands)
            case Return() | If() | Require() | Store() | Var() | Assign() | For():
                raise InternalError(f"no statement of CHECKED: {statement}")
            case _:
                assert_never(statement)
    return written


def _evaluate(expr: Expr, names: Mapping[str, Values], operands: Mapping[str, Values]) -> Values:
    match expr:
        case Typed(_, args):
            return apply_operation(expr, tuple(_evaluate(arg, names, operands) for arg in args))
        case Read(operand):
            return operands[operand]
        case Name(name):
            return names[name]
        case Literal(value):
            return np.asarray(value, dtype=np.float64)
        case (
            Unary()
            | Binary()
            | Select()
            | Builtin()
            | Convert()
            | Bitcast()
            | Call()
            | Field()
            | Construct()
            | Load()
            | Uniform()
            | Invocation()
        ):
            raise InternalError(f"no expression of CHECKED: {expr}")
        case _:
            assert_never(expr)
