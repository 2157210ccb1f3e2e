"""Expressions, each with its type. The span of a `Typed` takes no part in equality."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qgen.dtypes import DType
from qgen.errors import Span
from qgen.ir.operations import Op
from qgen.ir.types import Int, Machine, Scalar, Struct, Type, Value, Vector


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; of an exact integer type at CHECKED, else of a machine type. A f32 literal is finite."""

    value: int | float | bool
    type: Scalar | Int
    operands: ClassVar[tuple[Expr, ...]] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter, or what a `Let`, `Var` or `For` of an enclosing block named."""

    name: str
    type: Type
    operands: ClassVar[tuple[Expr, ...]] = ()


@dataclass(frozen=True, slots=True)
class Unary:
    """`-`, `~` (integers) or `!` (bool)."""

    op: str
    operand: Expr
    type: Scalar | Vector

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Binary:
    """A WGSL binary operator on machine values; both operands of a shift but the count (u32) have the result's type."""

    op: str
    lhs: Expr
    rhs: Expr
    type: Scalar | Vector

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.lhs, self.rhs)


@dataclass(frozen=True, slots=True)
class Select:
    """`if condition then then else otherwise`; both are evaluated."""

    condition: Expr
    then: Expr
    otherwise: Expr
    type: Type

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.condition, self.then, self.otherwise)


@dataclass(frozen=True, slots=True)
class Builtin:
    """A WGSL built-in function, by its WGSL name (min, max, clamp, abs, countLeadingZeros, round)."""

    name: str
    args: tuple[Expr, ...]
    type: Scalar | Vector

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Convert:
    """A value conversion `u32(x)`, `i32(x)`, `f32(x)`; between u32 and i32 modulo 2^32."""

    operand: Expr
    type: Scalar | Vector

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The same bits as another machine type."""

    operand: Expr
    type: Scalar | Vector

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the program."""

    function: str
    args: tuple[Expr, ...]
    type: Machine

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct value."""

    operand: Expr
    name: str
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Construct:
    """A struct value, one argument a field."""

    args: tuple[Expr, ...]
    type: Struct

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Typed:
    """CHECKED: an arithmetic operation of the formula language on dtypes, exact integers and exact rationals."""

    op: Op
    args: tuple[Expr, ...]
    type: Value | Scalar
    """A condition (`equal`, `is_nan`) has the machine type bool."""
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Read:
    """CHECKED and REALISED: the element of an operand that belongs to the one computed; of its dtype, from REALISED on the code's bits."""

    operand: str
    type: DType | Scalar
    operands: ClassVar[tuple[Expr, ...]] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """CHECKED: the greatest or least value (NaN where one is NaN) of all elements of a quantization group; of float32."""

    op: Op
    value: Expr
    type: DType

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.value,)


@dataclass(frozen=True, slots=True)
class Load:
    """LEGAL: word `index` of a buffer."""

    buffer: str
    index: Expr
    type: ClassVar[Scalar] = Scalar.U32

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.index,)


@dataclass(frozen=True, slots=True)
class LoadVector:
    """LEGAL: words `4 * index` to `4 * index + 3` of a buffer of vectors."""

    buffer: str
    index: Expr
    type: ClassVar[Vector] = Vector(Scalar.U32)

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Compose:
    """LEGAL: a vector of four values; a single argument is each of them."""

    args: tuple[Expr, ...]
    type: Vector

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Component:
    """LEGAL: an element of a vector, by its number."""

    operand: Expr
    number: int
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Uniform:
    """LEGAL: a field of the kernel's uniform parameters."""

    name: str
    type: ClassVar[Scalar] = Scalar.U32
    operands: ClassVar[tuple[Expr, ...]] = ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """LEGAL, in the entry point: a component (`x`, `y`) of the global invocation id."""

    component: str
    type: ClassVar[Scalar] = Scalar.U32
    operands: ClassVar[tuple[Expr, ...]] = ()


Expr = (
    Literal
    | Name
    | Unary
    | Binary
    | Select
    | Builtin
    | Convert
    | Bitcast
    | Call
    | Field
    | Construct
    | Typed
    | Read
    | Reduce
    | Load
    | LoadVector
    | Compose
    | Component
    | Uniform
    | Invocation
)
