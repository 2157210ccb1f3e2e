"""The nodes: expressions, each with its type, and statements. A node is a value; the span of a `Typed` takes no part in equality.

Which node may stand in which stage is `verify`'s table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from qgen.dtypes import DType
from qgen.errors import Span
from qgen.ir.types import Int, Machine, Scalar, Struct, Type, Value


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


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; of an exact integer type at CHECKED, else of a machine type. A f32 literal is finite."""

    value: int | float | bool
    type: Scalar | Int

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return ()


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter, or what a `Let`, `Var` or `For` of an enclosing block named."""

    name: str
    type: Type

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return ()


@dataclass(frozen=True, slots=True)
class Unary:
    """`-`, `~` (integers) or `!` (bool)."""

    op: str
    operand: Expr
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Binary:
    """A WGSL binary operator on machine values; both operands of a shift but the count (u32) have the result's type."""

    op: str
    lhs: Expr
    rhs: Expr
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
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
        """The expressions below this one, in order."""
        return (self.condition, self.then, self.otherwise)


@dataclass(frozen=True, slots=True)
class Builtin:
    """A WGSL built-in function, by its WGSL name (min, max, clamp, abs, countLeadingZeros, round)."""

    name: str
    args: tuple[Expr, ...]
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Convert:
    """A value conversion `u32(x)`, `i32(x)`, `f32(x)`; between u32 and i32 modulo 2^32."""

    operand: Expr
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The same bits as another machine type."""

    operand: Expr
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of the program."""

    function: str
    args: tuple[Expr, ...]
    type: Machine

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct value."""

    operand: Expr
    name: str
    type: Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Construct:
    """A struct value, one argument a field."""

    args: tuple[Expr, ...]
    type: Struct

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
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
        """The expressions below this one, in order."""
        return self.args


@dataclass(frozen=True, slots=True)
class Read:
    """CHECKED and REALISED: the element of an operand that belongs to the one computed; of its dtype, from REALISED on the code's bits."""

    operand: str
    type: DType | Scalar

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """CHECKED: the greatest or least value (NaN where one is NaN) of all elements of a quantization group; of float32."""

    op: Op
    value: Expr
    type: DType

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return (self.value,)


@dataclass(frozen=True, slots=True)
class Load:
    """LEGAL: word `index` of a buffer."""

    buffer: str
    index: Expr
    type: ClassVar[Scalar] = Scalar.U32

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Uniform:
    """LEGAL: a field of the kernel's uniform parameters."""

    name: str
    type: ClassVar[Scalar] = Scalar.U32

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return ()


@dataclass(frozen=True, slots=True)
class Invocation:
    """LEGAL, in the entry point: a component (`x`, `y`) of the global invocation id."""

    component: str
    type: ClassVar[Scalar] = Scalar.U32

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions below this one, in order."""
        return ()


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
    | Uniform
    | Invocation
)


@dataclass(frozen=True, slots=True)
class Let:
    """Names a value; never assigned again."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Return:
    """Ends a function with a value, or the invocation (entry point: None)."""

    value: Expr | None


@dataclass(frozen=True, slots=True)
class If:
    """A branch."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Require:
    """Library functions at REALISED: where the condition is false, the function's result is not to be used."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Quick:
    """Another way to a value, right where `holds` (None: where every `Require` of the functions it calls)."""

    value: Expr
    holds: Expr | None


@dataclass(frozen=True, slots=True)
class Write:
    """CHECKED and REALISED: the element of a result; from REALISED on perhaps with a quick way to the same value."""

    operand: str
    value: Expr
    quick: Quick | None = None


@dataclass(frozen=True, slots=True)
class Accumulate:
    """CHECKED and REALISED: takes a value of each element into the scratch operand that reduces them."""

    operand: str
    value: Expr


@dataclass(frozen=True, slots=True)
class AtomicMax:
    """LEGAL, in the entry point: word `index` of a scratch buffer becomes the greater of itself and `value`, in one step."""

    buffer: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Store:
    """LEGAL: writes word `index` of a buffer."""

    buffer: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Var:
    """LEGAL, in the entry point: a variable with its first value."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Assign:
    """LEGAL, in the entry point: sets a `Var`."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class For:
    """LEGAL, in the entry point: `for (var name = start; name < stop; name += step)`, u32; `stop` is evaluated before each round."""

    name: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]


Stmt = Let | Return | If | Require | Write | Accumulate | Store | AtomicMax | Var | Assign | For
