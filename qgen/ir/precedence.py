"""Which operands need parentheses: one table for the IR printer and the WGSL emitter.

Only `+ - * / %` have a precedence; every other operator takes its operands in parentheses, since naga and Tint disagree on mixed operators.
The right operand of an arithmetic operator of equal precedence keeps its parentheses: float arithmetic does not associate.
"""

from __future__ import annotations

from typing import Final

ATOM: Final = 10
UNARY: Final = 8
_ARITHMETIC: Final = {"*": 6, "/": 6, "%": 6, "+": 5, "-": 5}


_OPERANDS: Final = {op: (own, own + 1) for op, own in _ARITHMETIC.items()}


def precedence(op: str) -> int:
    """Return how tightly a binary operator binds."""
    return _ARITHMETIC.get(op, 0)


def operand_precedences(op: str) -> tuple[int, int]:
    """Return the least precedence that the left and the right operand of `op` may have without parentheses."""
    return _OPERANDS.get(op, (UNARY, UNARY))


def parenthesise(text: str, own: int, least: int) -> str:
    """Return `text`, in parentheses where its precedence is below `least`."""
    return f"({text})" if own < least else text
