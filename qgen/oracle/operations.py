"""What each operation of the formula language does to exact values: compute, then round once into the node's type.

An exact integer is an element of Z with -infinity and +infinity. `round_even` of NaN is -infinity, the lowest of all, which is what
SEMANTICS 2.1, row 4, makes of it. The interval of an `Int` is what a machine keeps and what the checker proves enough; it is not applied
here, so a result that depends on it shows as a difference between oracle and kernel.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from qgen.dtypes import DType, Exact
from qgen.errors import InternalError
from qgen.ir.nodes import Op, Typed
from qgen.ir.types import Scalar, print_type
from qgen.ir.types import Value as ValueType
from qgen.oracle import exact
from qgen.oracle.exact import Values
from qgen.oracle.formats import round_to_float


def apply_operation(node: Typed, args: tuple[Values, ...]) -> Values:
    """Return the values of `node` for those of its arguments."""
    match node.op:
        case Op.ADD:
            return _round_into(exact.add(*_two(node, args)), node.type)
        case Op.SUB:
            return _round_into(exact.sub(*_two(node, args)), node.type)
        case Op.MUL:
            return _round_into(exact.mul(*_two(node, args)), node.type)
        case Op.DIV:
            return _round_into(exact.div(*_two(node, args)), node.type)
        case Op.MIN:
            return _round_into(_minimum(*_two(node, args)), node.type)
        case Op.MAX:
            a, b = _two(node, args)
            return _round_into(np.negative(_minimum(np.negative(a), np.negative(b))), node.type)
        case Op.ABS:
            return _round_into(np.abs(_one(node, args)), node.type)
        case Op.NEG:
            return _round_into(np.negative(_one(node, args)), node.type)
        case Op.CONVERT:
            return _round_into(_one(node, args), node.type)
        case Op.ROUND_EVEN:
            return _round_into(_to_integer(_one(node, args)), node.type)
        case Op.SATURATE:
            return _saturate(_one(node, args), node.type)
        case Op.EQUAL | Op.IS_NAN:
            raise InternalError(f"{node.op.value} is a condition, not a number")
        case Op.WRAP:
            return _wrap(_one(node, args), node.type)
        case _:
            assert_never(node.op)


def _one(node: Typed, args: tuple[Values, ...]) -> Values:
    if len(args) != 1:
        raise InternalError(f"{node.op.value} takes one argument, has {len(args)}")
    return args[0]


def _two(node: Typed, args: tuple[Values, ...]) -> tuple[Values, Values]:
    if len(args) != 2:
        raise InternalError(f"{node.op.value} takes two arguments, has {len(args)}")
    return args[0], args[1]


def _to_integer(values: Values) -> Values:
    return np.where(np.isnan(values), -np.inf, _rint(values))


def _rint(values: Values) -> Values:
    """Return the nearest integers, half to even; integers have one zero, so -0 + 0 makes the other of -0."""
    return np.add(np.rint(values), 0.0)


def _round_into(values: Values, type_: ValueType | Scalar) -> Values:
    if isinstance(type_, Exact):
        return values
    if isinstance(type_, Scalar):
        raise InternalError("a condition is no number")
    if isinstance(type_, DType) and type_.is_float:
        return round_to_float(values, type_)
    integers = _rint(values)
    if bool(np.any(np.isnan(integers))):
        raise InternalError(f"a NaN is no {print_type(type_)}")
    if isinstance(type_, DType) and bool(np.any((integers < type_.min) | (integers > type_.max))):
        raise InternalError(f"a value does not fit {type_.name}, and neither saturates nor wraps")
    return integers


def _minimum(a: Values, b: Values) -> Values:
    """Return minimum of IEEE 754-2019: NaN where either is, and -0 below +0."""
    zeros = np.where(np.signbit(a), a, b)
    return np.where((a == 0) & (b == 0), zeros, np.minimum(a, b))


def _saturate(values: Values, type_: ValueType | Scalar) -> Values:
    if isinstance(type_, Exact | Scalar):
        raise InternalError(f"{print_type(type_)} does not saturate")
    if isinstance(type_, DType):
        if type_.is_float:
            return round_to_float(values, type_, saturate=True)
        return np.clip(_to_integer(values), type_.min, type_.max)
    return np.clip(_to_integer(values), type_.lo, type_.hi)


def _wrap(values: Values, type_: ValueType | Scalar) -> Values:
    """Return integers modulo 2^bits, in the range of the type, which must be that of so many bits."""
    if isinstance(type_, Exact | Scalar):
        raise InternalError(f"{print_type(type_)} does not wrap")
    low, high = (type_.min, type_.max) if isinstance(type_, DType) else (type_.lo, type_.hi)
    count = high - low + 1
    if count & (count - 1) or not bool(np.all(np.abs(values) <= 2.0**53)):
        raise InternalError(f"wrapping into {print_type(type_)} needs finite integers and a range of 2^n values")
    integers = _to_integer(values).astype(np.int64)
    return ((integers - low) % count + low).astype(np.float64)
