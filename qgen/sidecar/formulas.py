"""Formulas of a sidecar: JSON prefix arrays over a closed set of operations on integers, so that any host evaluates them in a few lines.

A formula is an integer, a string (a name in `let`, whose value is a formula) or an array `[operation, operand, ...]`. `add`, `mul`, `min`,
`max`, `and` and `or` take two operands or more, the others of `_BINARY` exactly two. `["numel", tensor]`, `["rank", tensor]`,
`["dim", tensor, index]` and `["prod_dims", tensor, from, to]` read a shape: a negative index counts from the last axis, and `from` and `to`
clamp as the ends of a Python slice do. `["same_dims_except", tensor, tensor, index]` is whether two tensors have the same rank and the same
dimensions, all but the one at the index; an index of no dimension leaves none out. Comparisons give 0 or 1; `and` and `or` take what is not
0 as true. No value is beyond 2^53, so a host may compute in doubles; division takes no negative operand, so it does not matter which way a
language rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Final, TypeAlias

from qgen.errors import QgenError

Formula: TypeAlias = "int | str | Sequence[Formula]"

GREATEST: Final = 1 << 53
"""No value of a formula is greater in magnitude."""

_DEEPEST: Final = 128

_DIVISIONS: Final = frozenset({"floor_div", "ceil_div", "mod"})

_VARIADIC: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
    "and": lambda a, b: int(a != 0 and b != 0),
    "or": lambda a, b: int(a != 0 or b != 0),
}

_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "sub": lambda a, b: a - b,
    "floor_div": lambda a, b: a // b,
    "ceil_div": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "eq": lambda a, b: int(a == b),
    "le": lambda a, b: int(a <= b),
}

_ON_SHAPES: Final[dict[str, tuple[int, int]]] = {
    "numel": (1, 0),
    "rank": (1, 0),
    "dim": (1, 1),
    "prod_dims": (1, 2),
    "same_dims_except": (2, 1),
}
"""How many names of tensors an operation takes, and how many integers follow them."""

OPERATIONS: Final = (*_VARIADIC, *_BINARY, *_ON_SHAPES)
"""The closed set."""


class Scope:
    """The shapes and names that formulas are evaluated in; the value of a name is computed when it is first asked for."""

    def __init__(self, shapes: Mapping[str, Sequence[int]], let: Mapping[str, Formula]) -> None:
        """Keep the shapes of the tensors by name, and the formulas of the names."""
        self._shapes = shapes
        self._let = let
        self._values: dict[str, int | None] = {}

    def value(self, formula: Formula, depth: int = 0) -> int:
        """Return the value of `formula`; raises `QgenError` QG600 where it has none, QG603 where a shape is missing."""
        if depth > _DEEPEST:
            raise _fault(formula, f"it is nested deeper than {_DEEPEST}")
        match formula:
            case bool():
                raise _fault(formula, "a boolean is not an integer")
            case int():
                value = formula
            case str():
                value = self._named(formula, depth)
            case [str(operation), *operands]:
                value = self._applied(formula, operation, operands, depth)
            case _:
                raise _fault(formula, "it is neither an integer, a name nor an array that starts with an operation")
        if abs(value) > GREATEST:
            raise _fault(formula, "its value is beyond 2^53")
        return value

    def _named(self, name: str, depth: int) -> int:
        if name not in self._let:
            raise _fault(name, "`let` has no such name")
        if name not in self._values:
            self._values[name] = None
            self._values[name] = self.value(self._let[name], depth + 1)
        value = self._values[name]
        if value is None:
            raise _fault(name, "it is defined by itself")
        return value

    def _applied(self, formula: Formula, operation: str, operands: Sequence[Formula], depth: int) -> int:
        if operation in _ON_SHAPES:
            return self._of_shape(formula, operation, operands, depth)
        values = [self.value(operand, depth + 1) for operand in operands]
        if operation in _VARIADIC and len(values) > 1:
            return reduce(_VARIADIC[operation], values)
        if operation in _BINARY and len(values) == 2:
            if operation in _DIVISIONS and (values[0] < 0 or values[1] <= 0):
                raise _fault(formula, f"it divides {values[0]} by {values[1]}")
            return _BINARY[operation](*values)
        raise _unknown(formula, operation, known=operation in _VARIADIC or operation in _BINARY)

    def _of_shape(self, formula: Formula, operation: str, operands: Sequence[Formula], depth: int) -> int:
        tensors, integers = _ON_SHAPES[operation]
        names = [operand for operand in operands[:tensors] if isinstance(operand, str)]
        if len(names) != tensors or len(operands) != tensors + integers:
            raise _unknown(formula, operation, known=True)
        shape, *others = [self._shape(name) for name in names]
        at = [self.value(operand, depth + 1) for operand in operands[tensors:]]
        match operation:
            case "numel":
                return prod(shape)
            case "rank":
                return len(shape)
            case "dim" if -len(shape) <= at[0] < len(shape):
                return shape[at[0]]
            case "dim":
                raise _fault(formula, f"`{names[0]}` has rank {len(shape)}")
            case "same_dims_except":
                return int(_same_dims_except(shape, others[0], at[0]))
            case _:
                return prod(shape[at[0] : at[1]])

    def _shape(self, tensor: str) -> Sequence[int]:
        if tensor not in self._shapes:
            raise QgenError("QG603", f"the shape of `{tensor}` is missing", hint=f"give a shape for `{tensor}`")
        return self._shapes[tensor]


def _same_dims_except(shape: Sequence[int], other: Sequence[int], index: int) -> bool:
    left_out = index, index + len(shape)
    return len(shape) == len(other) and all(place in left_out or dim == other[place] for place, dim in enumerate(shape))


def evaluate_formula(formula: Formula, shapes: Mapping[str, Sequence[int]], let: Mapping[str, Formula]) -> int:
    """Return the value of one formula; raises `QgenError` QG600 where it has none, QG603 where a shape is missing."""
    return Scope(shapes, let).value(formula)


def print_formula(formula: Formula) -> str:
    """Return a formula as one writes it, `le(N, 4294967295)`; a long one is cut off."""
    text = _print(formula, 4)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _print(formula: Formula, depth: int) -> str:
    match formula:
        case [str(operation), *operands] if depth:
            return f"{operation}({', '.join(_print(operand, depth - 1) for operand in operands)})"
        case [*_]:
            return "[...]" if formula else "[]"
        case _:
            return str(formula)


def _fault(formula: Formula, reason: str) -> QgenError:
    shown = print_formula(formula)
    return QgenError("QG600", f"the formula `{shown}` has no value: {reason}", hint="write the sidecar anew with `qgen emit`")


def _unknown(formula: Formula, operation: str, *, known: bool) -> QgenError:
    return _fault(formula, f"`{operation}` takes another number of operands" if known else f"there is no operation `{operation}`")
