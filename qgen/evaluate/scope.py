"""What a compiler knows of the text around a node: the names in scope, and what the text needs from outside."""

from __future__ import annotations

from dataclasses import dataclass, field

from qgen.evaluate.machine import EvaluationError
from qgen.ir.types import Machine, Scalar, Struct, Type, Vector, print_type


@dataclass(frozen=True, slots=True)
class Slot:
    """Where the value of a name is kept."""

    number: int
    type: Machine
    is_variable: bool = False


@dataclass(slots=True)
class Needs:
    """What the text of a kernel or function refers to, gathered while it is compiled; `weight` counts its nodes."""

    owner: str
    is_kernel: bool
    slots: int = 0
    weight: int = 0
    loads: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    atomics: set[str] = field(default_factory=set)
    uniforms: set[str] = field(default_factory=set)
    calls: set[tuple[str, tuple[Type, ...], Type]] = field(default_factory=set)
    """Each call's function, types of arguments and type of result."""


@dataclass(slots=True)
class Scope:
    """The names that a block sees."""

    needs: Needs
    parent: Scope | None = None
    names: dict[str, Slot] = field(default_factory=dict)
    assigned: set[int] = field(default_factory=set)

    def fail(self, message: str) -> EvaluationError:
        """Return the error to raise where the text cannot be LEGAL."""
        return EvaluationError(message, kernel=self.needs.owner)

    def require(self, holds: bool, message: str) -> None:  # noqa: FBT001 - it reads like an assert
        """Raise an error unless the condition holds."""
        if not holds:
            raise self.fail(message)

    def declare(self, name: str, type_: Type, *, is_variable: bool = False) -> int:
        """Return the number of a new slot."""
        self.require(name not in self.names, f"{name} is declared twice in a block")
        slot = Slot(self.needs.slots, self.machine(type_), is_variable)
        self.needs.slots += 1
        self.names[name] = slot
        return slot.number

    def find(self, name: str) -> Slot:
        """Return the slot of a name."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise self.fail(f"{name} is not declared")

    def scalar(self, type_: Scalar | Vector) -> Scalar:
        """Return the type if it is no vector: those are made scalars before a text is compiled."""
        if isinstance(type_, Vector):
            raise self.fail(f"{print_type(type_)} was not made scalar")
        return type_

    def machine(self, type_: Type) -> Machine:
        """Return the type if a machine has it."""
        if not isinstance(type_, Scalar | Struct):
            raise self.fail(f"{print_type(type_)} is not a machine type")
        return type_
