"""Many values by a few variables, written as the choices that tell them apart.

    TQ     TF       value            if TQ is int4: 8
    int4   float32  8          ->    else if TF is float16: 2
    uint8  float32  4                else: 4
    uint8  float16  2

A row is what the variables are and the value that goes with it. Values that are equal are written once wherever one choice tells them from
the others, and a variable that makes no difference is not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from qgen.errors import InternalError

Value = TypeVar("Value")
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Branch(Generic[Value]):
    """One side of a choice: the rows whose variable is one of `values`."""

    values: tuple[str, ...]
    rows: Mapping[Key, Value]


@dataclass(frozen=True, slots=True)
class Choice(Generic[Value]):
    """A variable, by its place in the keys, and its sides; those that take most words are last."""

    at: int
    branches: tuple[Branch[Value], ...]


def drop_variables(rows: Mapping[Key, Value]) -> dict[Key, Value]:
    """Return the rows with "" for each variable that makes no difference, which leaves fewer rows."""
    numbers: dict[Value, int] = {}  # values are long, and are compared for each variable
    kept = {key: numbers.setdefault(value, len(numbers)) for key, value in rows.items()}
    for at in range(len(next(iter(kept)))):
        fewer: dict[Key, int] = {}
        for key, number in kept.items():
            if fewer.setdefault((*key[:at], "", *key[at + 1 :]), number) != number:
                break
        else:
            kept = fewer
    values = list(numbers)
    return {key: values[number] for key, number in kept.items()}


def choose(rows: Mapping[Key, Value]) -> Choice[Value]:
    """Return the choice that leaves the fewest different values on its sides.

    Raises `InternalError` where no variable tells the values apart.
    """
    found: list[tuple[tuple[int, int, int], Choice[Value]]] = []
    for at in range(len(next(iter(rows)))):
        branches = _branches(rows, at)
        if len(branches) > 1:
            left = sum(len(set(branch.rows.values())) for branch in branches)
            found.append(((left, len(branches), at), Choice(at, branches)))
    if not found:
        raise InternalError(f"no variable tells these apart: {list(rows.items())[:2]}")
    return min(found, key=lambda pair: pair[0])[1]


def _branches(rows: Mapping[Key, Value], at: int) -> tuple[Branch[Value], ...]:
    """Return the sides of the choice of one variable: its values with equal rows are one side."""
    sides: dict[str, dict[Key, Value]] = {}
    for key, value in rows.items():
        sides.setdefault(key[at], {})[(*key[:at], "", *key[at + 1 :])] = value
    merged: dict[frozenset[tuple[Key, Value]], list[str]] = {}
    for name, side in sides.items():
        merged.setdefault(frozenset(side.items()), []).append(name)
    ordered = sorted(merged.values(), key=lambda names: (len(names), names))
    return tuple(Branch(tuple(names), sides[names[0]]) for names in ordered)


def write_test(variable: str, values: Sequence[str]) -> str:
    """Return the Jinja test that a variable is one of `values`; `yes` and `no` are those of a variable that is true or false."""
    match values:
        case ["yes"]:
            return variable
        case ["no"]:
            return f"not {variable}"
        case [value]:
            return f'{variable} == "{value}"'
        case _:
            names = ", ".join(f'"{value}"' for value in values)
            return f"{variable} in [{names}]"


def write_expression(rows: Mapping[Key, str], variables: Sequence[str]) -> str:
    """Return the Jinja expression whose value is that of the row; values are expressions."""
    rows = drop_variables(rows)
    if len(set(rows.values())) == 1:
        return next(iter(rows.values()))
    choice = choose(rows)
    *sides, last = (
        (write_test(variables[choice.at], branch.values), write_expression(branch.rows, variables)) for branch in choice.branches
    )
    text = last[1]
    for test, value in reversed(sides):
        nested = f"({value})" if " else " in value else value
        text = f"{nested} if {test} else {text}"
    return text
