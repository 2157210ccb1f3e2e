"""The straight pieces of a host's program as lines of its language."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from qgen.glue.formula import Tree, names_in, walk
from qgen.glue.host import Check, Chunks, Host, Let
from qgen.glue.syntax import WORDS, Syntax


@dataclass(frozen=True, slots=True)
class Lines:
    """How a language writes the two kinds of statement: a name or a check, with the text of its formula (and of the message)."""

    syntax: Syntax
    let: Callable[[str, str], str]
    check: Callable[[str, str], list[str]]

    def place(self, statements: Iterable[Let | Check]) -> list[str]:
        """Return the lines of all statements."""
        return [line for statement in statements for line in self._lines(statement)]

    def _lines(self, statement: Let | Check) -> list[str]:
        match statement:
            case Let(name, value):
                return [self.let(self.syntax.name(name), self.syntax.value(value))]
            case Check(condition):
                return self.check(self.syntax.condition(condition), WORDS.condition(condition))


def used_names(names: Iterable[str], statements: Iterable[Let | Check], formulas: Iterable[Tree]) -> list[str]:
    """Return those of `names` that a piece of the program uses itself, in their order."""
    used: set[str] = set()
    for statement in statements:
        used |= names_in(statement.value if isinstance(statement, Let) else statement.condition)
    for formula in formulas:
        used |= names_in(formula)
    return [name for name in names if name in used]


def measured(host: Host) -> list[Tree]:
    """Return the formulas that the piece `measure` gives."""
    return [formula for tensor in host.tensors for formula in (tensor.count, tensor.size)]


def dispatched(host: Host) -> list[Tree]:
    """Return the formulas that the piece `dispatch` gives."""
    fields = [value for uniform in host.uniforms for _, _, value in uniform.fields]
    return [*fields, *(count for step in host.passes for count in step.dispatch)]


def bound(chunks: Chunks) -> list[Tree]:
    """Return the formulas that the piece `bind` gives."""
    return [formula for each in chunks.bind for formula in (each.offset, each.size)]


def operations(host: Host) -> set[str]:
    """Return the operations that the program has."""
    statements = [*host.read_shapes, *host.measure, *host.dispatch]
    formulas = [*measured(host), *dispatched(host)]
    if host.chunks is not None:
        statements += [*host.chunks.length_lets, *host.chunks.bind_lets]
        formulas += [host.chunks.length, *bound(host.chunks)]
    formulas += [statement.value if isinstance(statement, Let) else statement.condition for statement in statements]
    return {str(part[0]) for formula in formulas for part in walk(formula) if isinstance(part, tuple)}


def describe(host: Host) -> list[str]:
    """Return the lines that say what the tensors are, for the head of a file."""
    rows = [(tensor.name, tensor.role, tensor.dtype) for tensor in host.tensors]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
