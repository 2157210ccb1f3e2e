"""The operations of the formula language."""

from __future__ import annotations

from enum import Enum


class Op(Enum):
    """What a `Typed` node does; the result is exact, then rounded once, half to even, into the node's type."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    CONVERT = "convert"
    SATURATE = "saturate"
    WRAP = "wrap"
    ROUND_EVEN = "round_even"
    MIN = "min"
    MAX = "max"
    ABS = "abs"
    NEG = "neg"
    EQUAL = "equal"
    IS_NAN = "is_nan"

    __hash__ = object.__hash__
