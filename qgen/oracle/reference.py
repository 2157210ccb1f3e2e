"""The walk over a CHECKED program: an operand is an array of exact values of x's shape, a statement is done for all elements at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes
from qgen.errors import InternalError, QgenError
from qgen.ir.nodes import (
    Accumulate,
    Assign,
    AtomicMax,
    Binary,
    Bitcast,
    Builtin,
    Call,
    Component,
    Compose,
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
    LoadVector,
    Name,
    Op,
    Read,
    Reduce,
    Require,
    Return,
    Select,
    Stmt,
    Store,
    StoreVector,
    Typed,
    Unary,
    Uniform,
    Var,
    Write,
)
from qgen.ir.program import Operand, Program, Stage
from qgen.ir.types import Scalar
from qgen.oracle.exact import Values
from qgen.oracle.formats import decode, encode
from qgen.oracle.groups import expand_groups, gather_groups, reduce_groups
from qgen.oracle.operations import apply_operation
from qgen.shapes import Granularity, PerTensor, scale_shape

Array = NDArray[Any]


def evaluate_reference(program: Program, granularity: Granularity, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a CHECKED `program` by name, each of the shape of x, or of the scale, and bit for bit right.

    `inputs` are logical numpy or ml_dtypes arrays: x of any shape, per-group operands of the shape that `granularity` gives them
    (SEMANTICS 1.5). Raises `QgenError` QG800 where an input is missing, QG240 where its type is not the operand's, QG801 where its shape
    does not fit x's, QG220 to QG222 where the granularity does not.
    """
    if program.stage is not Stage.CHECKED:
        raise InternalError(f"the oracle evaluates CHECKED programs, and `{program.name}` is {program.stage.value}")
    shape, values = _read_inputs(program, granularity, inputs)
    reductions = {operand.name: operand.reduction for operand in program.operands if operand.reduction is not None}
    results: dict[str, Array] = {}
    # Division by zero, overflow and NaN have results; they are no cause for numpy's warnings.
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            written = _Evaluation(shape, granularity, values).run(kernel.body, reductions)
            results |= {
                name: _result(program.operand(name), value, shape, granularity) for name, value in written.items() if name not in reductions
            }
            values |= written  # a later kernel reads it
    return {operand.name: results[operand.name] for operand in program.outputs}


def _result(operand: Operand, value: Values, shape: tuple[int, ...], granularity: Granularity) -> Array:
    """Return a result as an array, an element for each of x or for each group; where x is empty, groups have what the formula declares."""
    if not operand.per_group:
        return encode(np.broadcast_to(value, shape), operand.dtype)
    if operand.on_empty is not None and 0 in shape:
        groups = scale_shape(granularity, shape)
        return from_codes(np.full(groups, operand.on_empty), operand.dtype, groups)
    return encode(gather_groups(value, shape, granularity), operand.dtype)


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


def evaluate_expr(expr: Expr, names: Mapping[str, Values]) -> Values | NDArray[np.bool_]:
    """Return the exact values of one CHECKED expression over named values, or where it is a condition, on which it holds."""
    evaluation = _Evaluation((), PerTensor(), {})
    evaluation.names.update(names)
    is_condition = expr.type is Scalar.BOOL
    return evaluation.decide(expr) if is_condition else evaluation.evaluate(expr)


class _Evaluation:
    """One walk: the operands, each spread over the shape of x, and the names defined so far."""

    def __init__(self, shape: tuple[int, ...], granularity: Granularity, operands: Mapping[str, Values]) -> None:
        self._shape = shape
        self._granularity = granularity
        self._operands = operands
        self.names: dict[str, Values] = {}

    def run(self, body: tuple[Stmt, ...], reductions: Mapping[str, Op]) -> dict[str, Values]:
        """Return what `body` writes, by operand; `reductions` are those of the scratch operands."""
        written: dict[str, Values] = {}
        for statement in body:
            match statement:
                case Let(name, value):
                    self.names[name] = self.evaluate(value)
                case Write(operand, value):
                    written[operand] = self.evaluate(value)
                case Accumulate(operand, value):
                    written[operand] = self._reduce(value, reductions[operand])
                case Return() | If() | Require() | Store() | StoreVector() | AtomicMax() | Var() | Assign() | For():
                    raise InternalError(f"no statement of CHECKED: {statement}")
                case _:
                    assert_never(statement)
        return written

    def evaluate(self, expr: Expr) -> Values:
        """Return the exact values of an expression."""
        match expr:
            case Typed(Op.EQUAL | Op.IS_NAN) | Unary() | Binary():
                raise InternalError(f"a condition where a number is wanted: {expr}")
            case Typed(_, args):
                return apply_operation(expr, tuple(self.evaluate(arg) for arg in args))
            case Read(operand):
                return self._operands[operand]
            case Name(name):
                return self.names[name]
            case Literal(value):
                return np.asarray(value, dtype=np.float64)
            case Select(condition, then, otherwise):
                return np.where(self.decide(condition), self.evaluate(then), self.evaluate(otherwise))
            case Reduce(op, value):
                return self._reduce(value, op)
            case Builtin() | Convert() | Bitcast() | Call() | Field() | Construct():
                raise InternalError(f"no expression of CHECKED: {expr}")
            case Load() | LoadVector() | Compose() | Component() | Uniform() | Invocation():
                raise InternalError(f"no expression of CHECKED: {expr}")
            case _:
                assert_never(expr)

    def _reduce(self, value: Expr, op: Op) -> Values:
        return reduce_groups(np.broadcast_to(self.evaluate(value), self._shape), op, self._granularity)

    def decide(self, expr: Expr) -> NDArray[np.bool_]:
        """Return on which elements a condition holds."""
        match expr:
            case Typed(Op.EQUAL, (lhs, rhs)):
                return np.equal(self.evaluate(lhs), self.evaluate(rhs))
            case Typed(Op.IS_NAN, (operand,)):
                return np.isnan(self.evaluate(operand))
            case Unary("!", operand):
                return np.logical_not(self.decide(operand))
            case Binary("&&", lhs, rhs):
                return np.logical_and(self.decide(lhs), self.decide(rhs))
            case Binary("||", lhs, rhs):
                return np.logical_or(self.decide(lhs), self.decide(rhs))
            case _:
                raise InternalError(f"no condition of CHECKED: {expr}")
