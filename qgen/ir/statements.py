"""Statements."""

from __future__ import annotations

from dataclasses import dataclass

from qgen.ir.expressions import Expr


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
class StoreVector:
    """LEGAL: writes words `4 * index` to `4 * index + 3` of a buffer of vectors."""

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
    """LEGAL, in the entry point: `for (var name = start; name < stop; name += step)`, u32; `stop` is evaluated before each round.

    So is `step`, after it: it may be the name of a variable.
    """

    name: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]


Stmt = Let | Return | If | Require | Write | Accumulate | Store | StoreVector | AtomicMax | Var | Assign | For
