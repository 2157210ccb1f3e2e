"""A program: operands, kernels and the functions they call; and the stage it is in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Any, Generic, TypeVar

from qgen.dtypes import DType
from qgen.ir.nodes import Op, Stmt
from qgen.ir.types import Machine, Value

R = TypeVar("R")
T = TypeVar("T")


class Stage(Enum):
    """How far a program is lowered."""

    CHECKED = "checked"
    REALISED = "realised"
    LEGAL = "legal"

    __hash__ = object.__hash__  # members are singletons; Enum hashes the name at each look-up


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of the operator; `per_group` where a quantization group shares one element."""

    name: str
    dtype: DType
    is_output: bool = False
    per_group: bool = False
    reduction: Op | None = None
    """What a scratch operand gathers of its group (`MAX` or `MIN`), as a key; one kernel writes it, a later one of the program reads it."""
    on_empty: int | None = None
    """The code of a group's result where x has no elements and nothing is dispatched."""
    is_ignored: bool = False
    """Accepted, never read, and so never bound (float8 zero points: SEMANTICS 2.1, rows 11 and 13)."""

    @property
    def is_scratch(self) -> bool:
        """Whether this is the program's own, an output and an input of its kernels alone."""
        return self.reduction is not None


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a function; `of` says which values the machine type holds (a dtype's bits, an integer's interval)."""

    name: str
    type: Machine
    of: Value | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A function on machine values; one that the entry points call, or that a function called by them calls.

    `of` says which values the result holds. `doc` is one line for a reader of the emitted text.
    """

    name: str
    params: tuple[Param, ...]
    result: Machine
    body: tuple[Stmt, ...]
    of: Value | None = None
    doc: str = ""
    memo: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """What `kept` knows of this very object."""

    def __hash__(self) -> int:
        """Hash by name: caches keyed by functions find the identical object first and compare deeply only where two share a name."""
        return hash(self.name)


def kept(compute: Callable[[Function], R]) -> Callable[[Function], R]:
    """Return `compute` with its result kept in the function that it is of, for as long as that lives.

    Programs share the functions of the library, and so what is known of them; that of a kernel's own goes with the kernel.
    """
    key = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def get(function: Function) -> R:
        memo = function.memo
        if key not in memo:
            memo[key] = compute(function)
        found: R = memo[key]
        return found

    return get


class Domain(Enum):
    """What a kernel computes one of: an element of x, or a quantization group."""

    ELEMENTS = "elements"
    GROUPS = "groups"


@dataclass(frozen=True, slots=True)
class Kernel:
    """One dispatch. Before LEGAL the body computes one element or group; at LEGAL it is the entry point, with its workgroup size."""

    name: str
    body: tuple[Stmt, ...]
    workgroup_size: int = 0
    domain: Domain = Domain.ELEMENTS


@dataclass(frozen=True, slots=True)
class Program:
    """What is compiled: at CHECKED without functions, later with those used, callers first.

    `uniforms` names the u32 fields of the uniform parameters, in order; empty where everything is baked.

    """

    name: str
    stage: Stage
    operands: tuple[Operand, ...]
    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...] = ()
    uniforms: tuple[str, ...] = ()
    wide: frozenset[str] = frozenset()
    """The operands whose buffers are vectors of four words; their bytes are a multiple of 16."""

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The results."""
        return tuple(operand for operand in self.operands if operand.is_output and not operand.is_scratch)

    @property
    def bound(self) -> tuple[Operand, ...]:
        """The operands that kernels read or write, in the order of their bindings."""
        return tuple(operand for operand in self.operands if not operand.is_ignored)

    def operand(self, name: str) -> Operand:
        """Return the operand called `name`; raises KeyError where there is none."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        raise KeyError(name)

    def function(self, name: str) -> Function:
        """Return the function called `name`; raises KeyError where there is none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


def is_fragment(program: Program) -> bool:
    """Whether a program is functions alone, for someone else's entry point: these load words of buffers themselves."""
    return program.stage is Stage.LEGAL and not program.kernels


class ById(Generic[T]):
    """A cache key that equals only a key of the same object: to compare functions deeply would cost more than what is cached."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        """Hold the object, so that its identity is not used again while the key lives."""
        self.value = value

    def __eq__(self, other: object) -> bool:
        """Whether both keys hold the same object."""
        return isinstance(other, ById) and other.value is self.value

    def __hash__(self) -> int:
        """Hash the identity."""
        return id(self.value)
