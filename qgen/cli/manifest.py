"""The list of kernels that a project keeps: TOML, one `[[kernel]]` table a kernel, with the options of `qgen emit` in snake case."""

from __future__ import annotations

import argparse
import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from qgen.cli.arguments import PLAIN, parse_blocked
from qgen.cli.files import read_text
from qgen.errors import QgenError, Span
from qgen.kernel import Kernel, compile_request
from qgen.request import Request, make_request
from qgen.shapes import Granularity, blocked, per_axis, per_tensor

_T = TypeVar("_T")

_KEYS: Final[dict[str, type]] = {
    **dict.fromkeys(("op", *PLAIN, "blocked"), str),
    **dict.fromkeys(("zero_point", "saturate", "plain_scale"), bool),
    **dict.fromkeys(("per_axis", "opset", "group"), int),
    "shape": list,
}
"""Every key of a table, and the type of its value."""

_WORDS: Final = {str: "a string", bool: "true or false", int: "a whole number", list: "an array of whole numbers"}
_NEEDED: Final = ("op", "x")
_TABLE: Final = "kernel"
_HEADER: Final = re.compile(rf"\s*\[\[\s*(?:{_TABLE}|\"{_TABLE}\"|'{_TABLE}')\s*\]\]")
_KEY: Final = re.compile(r"\s*([\"']?)([\w-]+)\1\s*=")
_POSITION: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One table of the list: its keys, and the lines where they stand as far as these are known."""

    file: str
    source: str
    number: int
    """The number of the table, from 1."""
    keys: Mapping[str, Any]
    places: Mapping[str, Span]
    """Where each key stands, and under `kernel` the table's first line; empty where the tables are not written as `[[kernel]]`."""

    def error(self, code: str, message: str, hint: str, key: str = _TABLE) -> QgenError:
        """Return an error at the key, else at the table."""
        place = self.places.get(key) or self.places.get(_TABLE) or f"{self.file}, {_TABLE} {self.number}"
        return QgenError(code, message, hint=hint, place=place, source=self.source)

    def compile(self) -> Kernel:
        """Return the kernel; raises what `compile_request` does, at this table."""
        return self._locate(lambda: compile_request(self.request()))

    def request(self) -> Request:
        """Return the request that the table means; raises what `make_request` does, at this table."""
        words = {key: value for key, value in self.keys.items() if key in PLAIN}
        if "shape" in words:
            words["shape"] = tuple(words["shape"])
        saturate = self.keys.get("saturate", True)
        return self._locate(lambda: make_request(self.keys["op"], granularity=self._granularity(), saturate=saturate, **words))

    def _granularity(self) -> Granularity:
        if "per_axis" in self.keys:
            return per_axis(self.keys["per_axis"])
        return blocked(*parse_blocked(self.keys["blocked"])) if "blocked" in self.keys else per_tensor()

    def _locate(self, make: Callable[[], _T]) -> _T:
        try:
            return make()
        except QgenError as error:
            if isinstance(error.place, Span):
                raise
            raise self.error(error.code, error.message, error.hint) from error


def load_manifest(path: str) -> tuple[Entry, ...]:
    """Return the tables of the list at `path`, each with known keys of the right types.

    Raises `QgenError`: QG902 for a file that cannot be read, QG909 for one that is not TOML, QG910 for what is no list of kernels.
    """
    source = read_text(path)
    try:
        content = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, source, str(error)) from error
    tables = content.pop(_TABLE, None)
    if content:
        raise QgenError(
            "QG910", f"a list of kernels has no `{next(iter(content))}`", hint="it has [[kernel]] tables and nothing else", place=path
        )
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise QgenError("QG910", "there is no list of kernels in this file", hint="begin each kernel with a line [[kernel]]", place=path)
    places = _find_places(path, source, len(tables))
    entries = tuple(Entry(path, source, number, table, places[number - 1]) for number, table in enumerate(tables, 1))
    for entry in entries:
        _check_keys(entry)
    return entries


def _check_keys(entry: Entry) -> None:
    for key, value in entry.keys.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key.replace("-", "_"), list(_KEYS), n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"keys are {', '.join(_KEYS)}"
            raise entry.error("QG910", f"a kernel has no key `{key}`", hint, key)
        wanted = _KEYS[key]
        if type(value) is not wanted or (isinstance(value, list) and any(type(dim) is not int for dim in value)):
            raise entry.error("QG910", f"`{key}` is {_WORDS[wanted]}, not {value!r}", f"write `{key} = {_example(key, wanted)}`", key)
    missing = [key for key in _NEEDED if key not in entry.keys]
    if missing:
        raise entry.error("QG910", f"a kernel needs `{missing[0]}`", f"write `{missing[0]} = {_example(missing[0], str)}`")
    if "blocked" in entry.keys:
        try:
            parse_blocked(entry.keys["blocked"])
        except argparse.ArgumentTypeError as error:
            raise entry.error("QG910", str(error), 'write `blocked = "-1:32"`', "blocked") from error
        if "per_axis" in entry.keys:
            raise entry.error("QG910", "a kernel is per-axis or blocked, not both", "leave out `per_axis` or `blocked`", "per_axis")


def _example(key: str, wanted: type) -> str:
    examples = {"op": '"QuantizeLinear"', "blocked": '"-1:32"', "name": '"quantize_weights"', "opset": "21", "entry_point": '"main"'}
    return examples.get(key) or {str: '"float32"', bool: "true", int: "0", list: "[2, 3]"}[wanted]


def _find_places(path: str, source: str, count: int) -> list[dict[str, Span]]:
    """Return the lines of each table's keys; nothing is known where the headers in the text are not as many as the tables."""
    found: list[dict[str, Span]] = []
    inside = False
    for number, line in enumerate(source.splitlines(), 1):
        if match := _HEADER.match(line):
            found.append({_TABLE: _span(path, line, number, match)})
            inside = True
        elif line.lstrip().startswith("["):
            inside = False
        elif inside and (match := _KEY.match(line)):
            found[-1].setdefault(match[2], _span(path, line, number, match))
    return found if len(found) == count else [{} for _ in range(count)]


def _span(path: str, line: str, number: int, match: re.Match[str]) -> Span:
    start = len(line) - len(line.lstrip())
    end = len(match.group().rstrip(" ="))
    return Span(path, number, start + 1, end + 1)


def _syntax_error(path: str, source: str, reason: str) -> QgenError:
    position = _POSITION.search(reason)
    message = f"this is not TOML: {_POSITION.sub('', reason).removesuffix(' (at end of document)')}"
    hint = "strings are in quotes, and a value stands on its key's line"
    if position is None:
        return QgenError("QG909", message, hint=hint, place=path)
    line, column = int(position[1]), int(position[2])
    return QgenError("QG909", message, hint=hint, place=Span(path, line, column, column + 1), source=source)
