"""The abstract syntax tree of the formula language; each node knows its place, which takes no part in equality."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgen.errors import Span

NOWHERE = Span("<built in>", 1, 1, 2)


@dataclass(frozen=True, slots=True)
class Number:
    """An integer literal."""

    value: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FloatNumber:
    """A literal with a decimal point, in library functions only."""

    value: float
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name:
    """A name."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unary:
    """`-`, `~` or `!`."""

    op: str
    operand: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator."""

    op: str
    lhs: Expr
    rhs: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`if condition then a else b`."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """`operand as target`, with `saturating`, `wrapping` or neither."""

    operand: Expr
    target: str
    overflow: str | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class KindTest:
    """`T is class`, decided when the formula is checked."""

    name: str
    kind: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function, a built-in or a struct's constructor."""

    function: str
    args: tuple[Expr, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Field:
    """`operand.name`: a field of a struct, or a property of a generic's format."""

    operand: Expr
    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """`reduce op over group (value)`: one value of all elements of a quantization group."""

    op: str
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Expr = Number | FloatNumber | Truth | Name | Unary | Binary | Conditional | Cast | KindTest | Call | Field | Reduce


@dataclass(frozen=True, slots=True)
class Let:
    """`let name = value;`."""

    name: str
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """`result = value;`, in an op."""

    name: str
    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Return:
    """`return value;`, in a fn."""

    value: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Require:
    """`require condition;`, in a fn whose clause has a condition."""

    condition: Expr
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """`if condition { … } else { … }`."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Stmt = Let | Assign | Return | Require | Branch


@dataclass(frozen=True, slots=True)
class OperandDecl:
    """`name: T per group = 0`; with a default an operand may be absent, and a result is this where x has no elements."""

    name: str
    type_name: str
    per_group: bool
    default: int | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AttributeDecl:
    """`attr name: kind = default`; the kind is `dtype` or `bool`."""

    name: str
    kind: str
    default: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OpDecl:
    """An operator: what is computed for one element."""

    name: str
    operands: tuple[OperandDecl, ...]
    results: tuple[OperandDecl, ...]
    attributes: tuple[AttributeDecl, ...]
    body: tuple[Stmt, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type by name; `int<n>` has its bits."""

    name: str
    bits: int | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """`name: type`."""

    name: str
    type: TypeRef
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """`is expr when condition`: what a fn computes."""

    value: Expr
    condition: str | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FnDecl:
    """A library function; `generic` is (parameter, class of formats)."""

    name: str
    generic: tuple[str, str] | None
    params: tuple[ParamDecl, ...]
    result: TypeRef
    clauses: tuple[Clause, ...]
    body: tuple[Stmt, ...]
    doc: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StructDecl:
    """A record."""

    name: str
    fields: tuple[ParamDecl, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A parsed text."""

    name: str
    text: str
    ops: tuple[OpDecl, ...]
    fns: tuple[FnDecl, ...]
    structs: tuple[StructDecl, ...]
