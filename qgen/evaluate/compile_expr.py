"""Expressions into closures: each takes the frame and returns the value on every lane, traps meant for active lanes only.

What a type or a name can decide is decided here, once; a closure does nothing but call NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never, cast

import numpy as np

from qgen.evaluate import operators
from qgen.evaluate.machine import NUMPY, Frame, Value, choose
from qgen.evaluate.model import Array
from qgen.evaluate.scope import Scope
from qgen.ir.nodes import (
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
    Invocation,
    Literal,
    Load,
    LoadVector,
    Name,
    Read,
    Reduce,
    Select,
    Typed,
    Unary,
    Uniform,
)
from qgen.ir.types import Scalar, Struct, print_type

Code = Callable[[Frame], Array]
ValueCode = Callable[[Frame], Value]
WORD_BITS: Final = 32
F32_OVERFLOW: Final = 2.0**128 - 2.0**103
"""The least magnitude that rounds to infinity."""


def compile_expr(expr: Expr, scope: Scope) -> ValueCode:
    """Return the closure that evaluates an expression of the LEGAL stage; raises `EvaluationError` where it cannot be LEGAL."""
    scope.needs.weight += 1
    match expr:
        case Literal():
            return _literal(expr, scope)
        case Name():
            return _name(expr, scope)
        case Unary():
            return _adjusted(expr, _unary(expr, scope), scope, expr.operand)
        case Binary(op=("<<" | ">>")):
            return _shift(expr, scope)
        case Binary(op=("/" | "%")) if expr.type in (Scalar.U32, Scalar.I32):
            return _integer_division(expr, scope)
        case Binary():
            return _adjusted(expr, _binary(expr, scope), scope, expr.lhs, expr.rhs)
        case Select():
            return _select(expr, scope)
        case Builtin():
            return _adjusted(expr, _builtin(expr, scope), scope, *expr.args)
        case Convert():
            scope.require(isinstance(expr.operand.type, Scalar), "a conversion of a struct")
            return _adjusted(expr, operators.converter(cast("Scalar", expr.operand.type), scope.scalar(expr.type)), scope, expr.operand)
        case Bitcast():
            return _bitcast(expr, scope)
        case Call():
            return _call(expr, scope)
        case Field():
            return _field(expr, scope)
        case Construct():
            return _construct(expr, scope)
        case Load():
            return _load(expr, scope)
        case Uniform():
            return _uniform(expr.name, scope)
        case Invocation():
            scope.require(scope.needs.is_kernel and expr.component in ("x", "y"), f"invocation id .{expr.component} is not to be had")
            return _slot({"x": 0, "y": 1}[expr.component])
        case Typed() | Read() | Reduce() | LoadVector() | Compose() | Component():
            raise scope.fail(f"{type(expr).__name__} is not a node of the LEGAL stage")
        case _:
            assert_never(expr)


def _literal(expr: Literal, scope: Scope) -> Code:
    value = expr.value
    type_ = expr.type
    match type_:
        case Scalar.BOOL:
            fits = isinstance(value, bool)
        case Scalar.U32:
            fits = type(value) is int and 0 <= value < 1 << 32
        case Scalar.I32:
            fits = type(value) is int and -(1 << 31) <= value < 1 << 31
        case Scalar.F32:
            fits = type(value) in (int, float) and abs(value) < F32_OVERFLOW
        case _:
            raise scope.fail(f"{print_type(type_)} is not a machine type")
    scope.require(fits, f"the literal {value} is not a value of {type_.value}")
    array = np.array([value], NUMPY[type_])
    if type_ is Scalar.F32:
        return lambda frame: frame.model.adjust(expr, (), array)
    return lambda _: array


def _slot(number: int) -> ValueCode:
    def run(frame: Frame) -> Value:
        value = frame.slots[number]
        return frame.slot(number) if value is None else value

    return run


def _name(expr: Name, scope: Scope) -> ValueCode:
    slot = scope.find(expr.name)
    scope.require(expr.type == slot.type, f"{expr.name} is {print_type(slot.type)}, not {print_type(expr.type)}")
    return _slot(slot.number)


def _adjusted(node: Unary | Binary | Builtin | Convert | Bitcast, operation: operators.Operation, scope: Scope, *args: Expr) -> Code:
    """Return the operation on the arguments, and where an f32 is among them or the result, what the model makes of it."""
    codes = tuple(compile_scalar(arg, scope, cast("Scalar", arg.type)) for arg in args)
    if Scalar.F32 in (node.type, *(arg.type for arg in args)):

        def adjusted(frame: Frame) -> Array:
            operands = tuple([code(frame) for code in codes])
            return frame.model.adjust(node, operands, operation(*operands))

        return adjusted
    match codes:
        case (only,):
            return lambda frame: operation(only(frame))
        case (lhs, rhs):
            return lambda frame: operation(lhs(frame), rhs(frame))
        case _:
            return lambda frame: operation(*[code(frame) for code in codes])


def _unary(expr: Unary, scope: Scope) -> operators.Operation:
    kind = scope.scalar(expr.type)
    operation = operators.UNARY[kind].get(expr.op)
    if operation is None or expr.operand.type is not kind:
        raise scope.fail(f"there is no {expr.op}{print_type(expr.operand.type)} -> {kind.value}")
    return operation


def _binary(expr: Binary, scope: Scope) -> operators.Operation:
    kind = scope.scalar(expr.type)
    type_ = expr.lhs.type
    operation = operators.BINARY[type_].get(expr.op) if isinstance(type_, Scalar) else None
    result = Scalar.BOOL if expr.op in operators.COMPARISONS else type_
    if operation is None or expr.rhs.type is not type_ or kind is not result:
        raise scope.fail(f"there is no {print_type(type_)} {expr.op} {print_type(expr.rhs.type)} -> {kind.value}")
    return operation


def _builtin(expr: Builtin, scope: Scope) -> operators.Operation:
    kind = scope.scalar(expr.type)
    count, operation = operators.BUILTINS[kind].get(expr.name, (0, None))
    if operation is None or len(expr.args) != count or any(arg.type is not kind for arg in expr.args):
        types = ", ".join(print_type(arg.type) for arg in expr.args)
        raise scope.fail(f"there is no {expr.name}({types}) -> {kind.value}")
    return operation


def _shift(expr: Binary, scope: Scope) -> Code:
    kind = scope.scalar(expr.type)
    value = compile_scalar(expr.lhs, scope, kind)
    scope.require(kind in (Scalar.U32, Scalar.I32), f"there is no shift of {kind.value}")
    operation = np.left_shift if expr.op == "<<" else np.right_shift
    if isinstance(expr.rhs, Literal):
        scope.require(expr.rhs.type is Scalar.U32 and 0 <= expr.rhs.value < WORD_BITS, f"a shift by {expr.rhs.value}")
        constant = np.array([expr.rhs.value], NUMPY[kind])
        return lambda frame: operation(value(frame), constant)
    count = compile_scalar(expr.rhs, scope, Scalar.U32)
    mask = np.array([WORD_BITS - 1], np.uint32)

    def run(frame: Frame) -> Array:
        by = count(frame)
        excess = by > mask
        if excess.any():
            frame.trap(f"a shift by {WORD_BITS} or more", excess)
            by = by & mask
        shifted = value(frame)
        return operation(shifted, by.view(shifted.dtype))

    return run


def _integer_division(expr: Binary, scope: Scope) -> Code:
    kind = scope.scalar(expr.type)
    lhs, rhs = compile_scalar(expr.lhs, scope, kind), compile_scalar(expr.rhs, scope, kind)
    op = expr.op

    def run(frame: Frame) -> Array:
        dividend, divisor = lhs(frame), rhs(frame)
        zero = divisor == 0
        if zero.any():
            frame.trap("an integer division by zero", zero)
            divisor = divisor + zero
        return operators.divide_integers(op, dividend, divisor)

    return run


def _select(expr: Select, scope: Scope) -> ValueCode:
    scope.require(expr.then.type == expr.type == expr.otherwise.type, "the sides of a select differ in type")
    condition = compile_scalar(expr.condition, scope, Scalar.BOOL)
    then, otherwise = compile_expr(expr.then, scope), compile_expr(expr.otherwise, scope)
    return lambda frame: choose(condition(frame), then(frame), otherwise(frame))


def _bitcast(expr: Bitcast, scope: Scope) -> Code:
    kind = scope.scalar(expr.type)
    source, numpy_kind = expr.operand.type, NUMPY[kind]
    numeric = (Scalar.U32, Scalar.I32, Scalar.F32)
    scope.require(kind in numeric and source in numeric, f"there is no bitcast of {print_type(source)} to {kind.value}")
    return _adjusted(expr, lambda value: value.view(numpy_kind), scope, expr.operand)


def _call(expr: Call, scope: Scope) -> ValueCode:
    scope.needs.calls.add((expr.function, tuple(arg.type for arg in expr.args), expr.type))
    scope.machine(expr.type)
    codes = [compile_expr(arg, scope) for arg in expr.args]
    name = expr.function
    return lambda frame: frame.machine.functions[name](frame, [code(frame) for code in codes])


def _field(expr: Field, scope: Scope) -> Code:
    struct = expr.operand.type
    fits = isinstance(struct, Struct) and struct.field_type(expr.name) is expr.type
    scope.require(fits, f"{print_type(struct)} has no field {expr.name} of type {expr.type.value}")
    number = [name for name, _ in cast("Struct", struct).fields].index(expr.name)
    operand = compile_expr(expr.operand, scope)
    return lambda frame: cast("Array", operand(frame)[number])


def _construct(expr: Construct, scope: Scope) -> ValueCode:
    fits = tuple(arg.type for arg in expr.args) == tuple(type_ for _, type_ in expr.type.fields)
    scope.require(fits, f"the arguments are not the fields of {expr.type.name}")
    codes = [cast("Code", compile_expr(arg, scope)) for arg in expr.args]
    return lambda frame: tuple([code(frame) for code in codes])


def _uniform(name: str, scope: Scope) -> Code:
    scope.needs.uniforms.add(name)
    return lambda frame: frame.machine.uniforms[name]


def _load(expr: Load, scope: Scope) -> Code:
    name = expr.buffer
    scope.needs.loads.add(name)
    at = compile_scalar(expr.index, scope, Scalar.U32)

    def run(frame: Frame) -> Array:
        return frame.load(name, at(frame))

    return run


def compile_scalar(expr: Expr, scope: Scope, *types: Scalar) -> Code:
    """Return the closure that evaluates an expression of one of these types."""
    found = ", ".join(type_.value for type_ in types)
    scope.require(expr.type in types, f"{type(expr).__name__} of type {print_type(expr.type)} where {found} is expected")
    return cast("Code", compile_expr(expr, scope))
