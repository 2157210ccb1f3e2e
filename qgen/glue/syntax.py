"""How the hosts' languages write a formula: one table of operators a language, and one printer for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qgen.glue.formula import Tree

_OR, _AND, _COMPARISON, _SUM, _PRODUCT, _ATOM = range(1, 7)

_INFIX: Final = {
    "or": (_OR, _AND + 1),
    "and": (_AND, _AND + 1),
    "eq": (_COMPARISON, _SUM),
    "le": (_COMPARISON, _SUM),
    "add": (_SUM, _SUM),
    "sub": (_SUM, _SUM),
    "mul": (_PRODUCT, _PRODUCT),
}
"""The precedence of an operator that stands between its operands, and the least that a first operand has."""

_TRUTHS: Final = frozenset({"or", "and", "eq", "le", "same_dims_except"})


@dataclass(frozen=True, slots=True)
class Syntax:
    """A language's way to write formulas. Names of `let` and shapes of tensors go through `name` and `shape`."""

    infix: dict[str, str]
    calls: dict[str, str]
    """An operation of two operands as a format of them; one whose operands stand bare is an atom."""
    number: Callable[[int], str]
    name: Callable[[str], str]
    shape: Callable[[str], str]
    numel: Callable[[str], str]
    rank: Callable[[str], str]
    dim: Callable[[str, Tree, str], str]
    """The shape's text, the index, and the index as it is written."""
    part: Callable[[str, Tree, Tree, str, str], str]
    """The product of some dimensions: the shape's text, where they begin and end, and both as they are written."""
    same_dims_except: str
    """A truth, as a format of two shapes and the index."""
    as_number: str
    """The format of a truth as a number."""

    def value(self, formula: Tree) -> str:
        """Return the text of a number."""
        return self._value(formula, 0)

    def condition(self, formula: Tree) -> str:
        """Return the text of a truth."""
        return self._condition(formula, 0)

    def _condition(self, formula: Tree, least: int) -> str:
        match formula:
            case ("le", int(low), high) if isinstance(high, str | tuple):
                return _enclose(f"{self._value(high, _SUM)} >= {self.number(low)}", _COMPARISON, least)
            case ("eq" | "le" as operation, a, b):
                return self._joined(str(operation), (self._value(_tree(a), _SUM), self._value(_tree(b), _SUM)), least)
            case ("same_dims_except", str(tensor), str(other), index):
                return self.same_dims_except.format(self.shape(tensor), self.shape(other), self._value(_tree(index), 0))
            case ("and" | "or" as operation, *operands):
                inner = _INFIX[str(operation)][1]
                return self._joined(str(operation), tuple(self._condition(_tree(operand), inner) for operand in operands), least)
            case _:
                return _enclose(f"{self._value(formula, _SUM)} != 0", _COMPARISON, least)

    def _value(self, formula: Tree, least: int) -> str:
        match formula:
            case int():
                return self.number(formula)
            case str():
                return self.name(formula)
            case (str(operation), *_) if operation in _TRUTHS:
                return self.as_number.format(self._condition(formula, 0))
            case ("numel", str(tensor)):
                return self.numel(self.shape(tensor))
            case ("rank", str(tensor)):
                return self.rank(self.shape(tensor))
            case ("dim", str(tensor), index):
                return self.dim(self.shape(tensor), _tree(index), self._value(_tree(index), 0))
            case ("prod_dims", str(tensor), start, end):
                ends = _tree(start), _tree(end)
                return self.part(self.shape(tensor), *ends, *(self._value(each, 0) for each in ends))
            case ("add", *terms, int(last)) if last < 0:
                first = self._value(_tree(terms[0]) if len(terms) == 1 else ("add", *map(_tree, terms)), _SUM)
                return _enclose(f"{first} - {self.number(-last)}", _SUM, least)
            case ("add" | "sub" | "mul" as operation, first, *rest):
                own, inner = _INFIX[str(operation)]
                texts = (self._value(_tree(first), inner), *(self._value(_tree(operand), own + 1) for operand in rest))
                return self._joined(str(operation), texts, least)
            case (str(operation), first, second, *rest):
                if rest:
                    return self._value((operation, (operation, _tree(first), _tree(second)), *map(_tree, rest)), least)
                form = self.calls[operation]
                own = _ATOM if form.endswith(")") else _PRODUCT
                left = self._value(_tree(first), _PRODUCT if "{0} /" in form or "{0} %" in form else 0)
                right = self._value(_tree(second), _ATOM if "/ {1}" in form or "% {1}" in form or "// {1}" in form else 0)
                return _enclose(form.format(left, right), own, least)
            case _:
                raise TypeError(formula)

    def _joined(self, operation: str, texts: tuple[str, ...], least: int) -> str:
        return _enclose(f" {self.infix[operation]} ".join(texts), _INFIX[operation][0], least)


def _enclose(text: str, own: int, least: int) -> str:
    return f"({text})" if own < least else text


def _tree(value: object) -> Tree:
    if isinstance(value, int | str | tuple):
        return value
    raise TypeError(value)


def _is_rank(formula: Tree) -> bool:
    return isinstance(formula, tuple) and formula[0] == "rank"


def _from_end(formula: Tree) -> str:
    """Return a place that is counted from the end, `rank - k`, as the negative number that slices take for it; empty for any other."""
    match formula:
        case ("add", ("rank", _), int(offset)) if offset < 0:
            return str(offset)
        case _:
            return ""


def _c_like(*, equal: str = "==") -> dict[str, str]:
    return {"or": "||", "and": "&&", "eq": equal, "le": "<=", "add": "+", "sub": "-", "mul": "*"}


def camel(name: str) -> str:
    """Return a snake-case name in camel case."""
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


JAVASCRIPT: Final = Syntax(
    infix=_c_like(equal="==="),
    calls={
        "ceil_div": "Math.ceil({0} / {1})",
        "floor_div": "Math.floor({0} / {1})",
        "mod": "{0} % {1}",
        "min": "Math.min({0}, {1})",
        "max": "Math.max({0}, {1})",
    },
    number=str,
    name=camel,
    shape=lambda tensor: f"shapes.{tensor}",
    numel=lambda shape: f"product({shape})",
    rank=lambda shape: f"{shape}.length",
    dim=lambda shape, index, text: f"{shape}.at({text})" if isinstance(index, int) and index < 0 else f"{shape}[{text}]",
    part=lambda shape, start, end, start_text, end_text: (
        f"product({shape}.slice({_from_end(start) or start_text}{'' if _is_rank(end) else f', {_from_end(end) or end_text}'}))"
    ),
    same_dims_except="sameDimsExcept({0}, {1}, {2})",
    as_number="Number({0})",
)

PYTHON: Final = Syntax(
    infix=_c_like() | {"or": "or", "and": "and"},
    calls={
        "ceil_div": "_ceil_div({0}, {1})",
        "floor_div": "{0} // {1}",
        "mod": "{0} % {1}",
        "min": "min({0}, {1})",
        "max": "max({0}, {1})",
    },
    number=str,
    name=str,
    shape=lambda tensor: f'shapes["{tensor}"]',
    numel=lambda shape: f"prod({shape})",
    rank=lambda shape: f"len({shape})",
    dim=lambda shape, _, text: f"{shape}[{text}]",
    part=lambda shape, start, end, start_text, end_text: (
        f"prod({shape}[{'' if start == 0 else _from_end(start) or start_text}:{'' if _is_rank(end) else _from_end(end) or end_text}])"
    ),
    same_dims_except="_same_dims_except({0}, {1}, {2})",
    as_number="int({0})",
)

C: Final = Syntax(
    infix=_c_like(),
    calls={
        "ceil_div": "qgen_ceil_div({0}, {1})",
        "floor_div": "{0} / {1}",
        "mod": "{0} % {1}",
        "min": "qgen_min({0}, {1})",
        "max": "qgen_max({0}, {1})",
    },
    number=lambda number: str(number) if abs(number) < 1 << 31 else f"INT64_C({number})",
    name=str,
    shape=lambda tensor: f"shapes->{tensor}",
    numel=lambda shape: f"qgen_product({shape}, 0, {shape}.rank)",
    rank=lambda shape: f"{shape}.rank",
    dim=lambda shape, index, text: (
        f"{shape}.dims[{shape}.rank - {-index}]" if isinstance(index, int) and index < 0 else f"{shape}.dims[{text}]"
    ),
    part=lambda shape, _start, _end, start_text, end_text: f"qgen_product({shape}, {start_text}, {end_text})",
    same_dims_except="qgen_same_dims_except({0}, {1}, {2})",
    as_number="(int64_t)({0})",
)

RUST: Final = Syntax(
    infix=_c_like(),
    calls={
        "ceil_div": "ceil_div({0}, {1})",
        "floor_div": "{0} / {1}",
        "mod": "{0} % {1}",
        "min": "least({0}, {1})",
        "max": "greatest({0}, {1})",
    },
    number=str,
    name=str,
    shape=lambda tensor: f"shapes.{tensor}",
    numel=lambda shape: f"product({shape}, 0, rank({shape}))",
    rank=lambda shape: f"rank({shape})",
    dim=lambda shape, _, text: f"dim({shape}, {text})",
    part=lambda shape, _start, _end, start_text, end_text: f"product({shape}, {start_text}, {end_text})",
    same_dims_except="same_dims_except({0}, {1}, {2})",
    as_number="({0}) as i64",
)

WORDS: Final = Syntax(
    infix=_c_like(equal="=") | {"or": "or", "and": "and"},
    calls={
        "ceil_div": "ceil({0} / {1})",
        "floor_div": "floor({0} / {1})",
        "mod": "{0} mod {1}",
        "min": "min({0}, {1})",
        "max": "max({0}, {1})",
    },
    number=str,
    name=str,
    shape=str,
    numel=lambda shape: f"numel({shape})",
    rank=lambda shape: f"rank({shape})",
    dim=lambda shape, _, text: f"{shape}.shape[{text}]",
    part=lambda shape, _start, _end, start_text, end_text: f"product({shape}.shape[{start_text}:{end_text}])",
    same_dims_except="{0}.shape = {1}.shape except dimension {2}",
    as_number="({0})",
)
"""How a message to a person writes a formula."""
