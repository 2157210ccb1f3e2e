"""The types of values: machine types, structs, exact integers with an interval, and (at CHECKED) dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from qgen.dtypes import DType, Exact


class Scalar(Enum):
    """A machine type, spelt as WGSL spells it."""

    BOOL = "bool"
    U32 = "u32"
    I32 = "i32"
    F32 = "f32"

    __hash__ = object.__hash__  # members are singletons; Enum hashes the name at each look-up


@dataclass(frozen=True, slots=True)
class Struct:
    """A record of machine values."""

    name: str
    fields: tuple[tuple[str, Scalar], ...]

    def field_type(self, name: str) -> Scalar | None:
        """Return the type of field `name`, or None where there is none."""
        return dict(self.fields).get(name)


@dataclass(frozen=True, slots=True)
class Vector:
    """Four machine values, one for each of four elements that lie side by side."""

    element: Scalar


LANES: Final = 4
"""The elements of a vector."""


@dataclass(frozen=True, slots=True)
class Int:
    """An exact integer that is known to lie in [lo, hi]; a machine holds it in an i32."""

    lo: int
    hi: int

    @classmethod
    def of_bits(cls, bits: int) -> Int:
        """Return the two's-complement interval of `bits` bits, as `int<bits>` means it."""
        return cls(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def within(self, other: Int) -> bool:
        """Whether every value of this type is one of `other`."""
        return other.lo <= self.lo and self.hi <= other.hi


Machine = Scalar | Vector | Struct
Value = DType | Int | Exact
Type = Scalar | Vector | Struct | DType | Int | Exact


def machine_type(type_: Type) -> Machine:
    """Return the machine type that holds a value: u32 for the bits of a dtype, i32 for an exact integer."""
    match type_:
        case DType():
            return Scalar.U32
        case Int():
            return Scalar.I32
        case Exact():
            raise TypeError("no machine type holds an exact rational")
        case _:
            return type_


def print_type(type_: Type) -> str:
    """Return the type as the printer and the formula language spell it."""
    match type_:
        case Vector(element):
            return f"vec4<{element.value}>"
        case Scalar() | Exact():
            return str(type_.value)
        case Struct() | DType():
            return type_.name
        case Int():
            return f"int[{type_.lo}, {type_.hi}]"


def element_of(type_: Type) -> Type:
    """Return the type of a vector's elements, and any other type itself."""
    return type_.element if isinstance(type_, Vector) else type_
