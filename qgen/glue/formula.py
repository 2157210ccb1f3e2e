"""Formulas of a sidecar on their way into a host's language: simplified, and taken apart into what each place needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

Tree: TypeAlias = "int | str | tuple[str | int | Tree, ...]"
"""A formula whose arrays are tuples, so that it can be a key."""

SHAPE_OPERATIONS: Final = {"numel": 1, "rank": 1, "dim": 1, "prod_dims": 1, "same_dims_except": 2}
"""The operations that read shapes, and how many of their operands, the first ones, are names of tensors."""


def tree(formula: object) -> Tree:
    """Return a formula of a sidecar with tuples for its arrays."""
    match formula:
        case int() | str():
            return formula
        case [str(operation), *operands]:
            return (operation, *(tree(operand) for operand in operands))
        case _:
            raise TypeError(formula)


def operands_of(formula: Tree) -> tuple[Tree, ...]:
    """Return the operands that are formulas: a tensor's name is none."""
    return formula[_kept(formula) :] if isinstance(formula, tuple) else ()


def _kept(formula: tuple[Tree, ...]) -> int:
    """Return how many parts of an array come before its operands: the operation, and the names of tensors."""
    return 1 + SHAPE_OPERATIONS.get(str(formula[0]), 0)


def rebuild(formula: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """Return `formula` with `change` applied to its operands."""
    if not isinstance(formula, tuple):
        return formula
    kept = _kept(formula)
    return (*formula[:kept], *(change(operand) for operand in formula[kept:]))


def walk(formula: Tree) -> Iterator[Tree]:
    """Yield a formula and all that it is made of."""
    yield formula
    for operand in operands_of(formula):
        yield from walk(operand)


def names_in(formula: Tree) -> set[str]:
    """Return the names of `let` that a formula uses itself."""
    return {part for part in walk(formula) if isinstance(part, str)}


def tensors_in(formula: Tree) -> set[str]:
    """Return the tensors whose shapes a formula reads itself."""
    return {str(name) for part in walk(formula) if isinstance(part, tuple) for name in part[1 : _kept(part)]}


def substitute(formula: Tree, values: Mapping[str, Tree]) -> Tree:
    """Return the formula with each name in `values` replaced."""
    if isinstance(formula, str):
        return values.get(formula, formula)
    return rebuild(formula, lambda operand: substitute(operand, values))


def simplify(formula: Tree) -> Tree:
    """Return a formula of the same value for every shape, shorter where it can be."""
    formula = rebuild(formula, simplify)
    match formula:
        case ("mul", *factors):
            return _associative("mul", factors, 1, math.prod)
        case ("add", *terms):
            return _associative("add", terms, 0, sum)
        case ("prod_dims", _, start, end) if start == end:
            return 1
        case ("same_dims_except", tensor, other, _) if tensor == other:
            return 1
        case ("eq", int(a), int(b)):
            return int(a == b)
        case ("le", int(a), int(b)):
            return int(a <= b)
        case ("and", *operands) if 0 in operands:
            return 0
        case ("mod", _, 1):
            return 0
        case ("max" | "min" as operation, int(a), int(b)):
            return max(a, b) if operation == "max" else min(a, b)
        case ("sub", int(a), int(b)):
            return a - b
        case ("ceil_div" | "floor_div", dividend, 1):
            return _tree(dividend)
        case ("ceil_div", int(dividend), int(divisor)) if dividend >= 0:
            return -(-dividend // divisor)
        case ("floor_div", int(dividend), int(divisor)) if dividend >= 0:
            return dividend // divisor
        case ("floor_div", ("mul", int(factor), *rest), int(divisor)) if factor % divisor == 0:
            return simplify(("mul", factor // divisor, *map(_tree, rest)))
        case ("ceil_div" | "floor_div" as operation, ("mul", int(factor), *rest), int(divisor)) if divisor % factor == 0:
            return simplify((operation, ("mul", *map(_tree, rest)), divisor // factor))
        case _:
            return formula


def _associative(operation: str, operands: Sequence[object], unit: int, combine: Callable[[Sequence[int]], int]) -> Tree:
    """Return a sum or product with its literals in one: a factor first, a term last."""
    flat: list[Tree] = []
    for operand in map(_tree, operands):
        flat += operand[1:] if isinstance(operand, tuple) and operand[0] == operation else (operand,)
    literal = combine([operand for operand in flat if isinstance(operand, int)])
    rest = [operand for operand in flat if not isinstance(operand, int)]
    if not rest or (operation == "mul" and literal == 0):
        return literal
    if literal == unit:
        return rest[0] if len(rest) == 1 else (operation, *rest)
    return (operation, literal, *rest) if operation == "mul" else (operation, *rest, literal)


def _tree(value: object) -> Tree:
    if isinstance(value, int | str | tuple):
        return value
    raise TypeError(value)
