"""What an engine says about one text: `Report` and its `Diagnostic`s, read from the words of naga and of Dawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
Stage = Literal["parse", "validation", "pipeline"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of an engine; line and column count from 1 as the engine counts them, `end_column` is one past the mark.

    The place is absent where the engine names none (limits that are checked when a pipeline is made); `end_column` also where it marks
    nothing on that line.
    """

    path: str
    line: int | None
    column: int | None
    end_column: int | None
    severity: Severity
    message: str
    engine: str


@dataclass(frozen=True, slots=True)
class Report:
    """One engine's verdict on one text.

    `rejected_at` is None for an accepted text. `raw` is the engine's own wording; the naga engines name the file `wgsl` in it.
    """

    label: str
    engine: str
    version: str
    ok: bool
    diagnostics: tuple[Diagnostic, ...]
    raw: str
    rejected_at: Stage | None


_SPAN = re.compile(r"^ *┌─ .*:(\d+):(\d+)$")
_MARK = re.compile(r"^ *│ (?P<before>[ │]*)(?P<mark>\^+)")
_NOTE = re.compile(r"^ *= (.*)$")
_DAWN_HEAD = re.compile(r"^(?:Error while parsing WGSL: )?(?:[^\s:]*):(\d+):(\d+) (error|warning|note): (.*)$")
_LINE_END = re.compile(r"\r\n|[\n\v\f\r\x85\u2028\u2029]")
_DAWN_MARK = re.compile(r"^ *(\^+) *$")


def read_naga(text: str, path: str, engine: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a codespan report: its head, the place of its first label, its closing notes joined to the head."""
    severity, _, head = text.partition(": ")
    message = [line.strip() for line in head.split("\n  ┌─ ", 1)[0].split("\n\n", 1)[0].splitlines() if not _SPAN.match(line)]
    line = column = end_column = None
    for row in text.splitlines():
        if line is None and (span := _SPAN.match(row)):
            line, column = int(span[1]), int(span[2])
        elif line is not None and column is not None and end_column is None and (mark := _MARK.match(row)):
            end_column = column + len(mark["mark"])
        elif line is not None and (note := _NOTE.match(row)):
            message.append(note[1])
    kind: Severity = "warning" if severity == "warning" else "error"
    return (Diagnostic(path, line, column, end_column, kind, ": ".join(message), engine),)


def read_dawn(text: str, path: str, engine: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of a Dawn error; a text without places (a limit) becomes one diagnostic of its first line."""
    lines = text.splitlines()
    found = tuple(_dawn_diagnostics(lines, path, engine))
    if any(one.severity == "error" for one in found):
        return found
    first = next((line for line in lines if line.strip()), "rejected without a message")
    return (Diagnostic(path, None, None, None, "error", first, engine), *found)


def _dawn_diagnostics(lines: list[str], path: str, engine: str) -> Iterator[Diagnostic]:
    for index, row in enumerate(lines):
        if (head := _DAWN_HEAD.match(row)) is None:
            continue
        line, column = int(head[1]), int(head[2])
        mark = _DAWN_MARK.match(lines[index + 2]) if index + 2 < len(lines) else None
        severity: Severity = "error" if head[3] == "error" else "warning" if head[3] == "warning" else "note"
        yield Diagnostic(path, line, column, column + len(mark[1]) if mark else None, severity, head[4], engine)


def relabel(raw: str, path: str) -> str:
    """Return a naga report with the file named `path` instead of `wgsl`."""
    return re.sub(r"^( *┌─ )wgsl:", lambda match: f"{match[1]}{path}:", raw, count=1, flags=re.MULTILINE)


def render(diagnostic: Diagnostic, path: str, wgsl: str) -> str:
    """Return a diagnostic in naga's shape (head, place, marked line, blank line), for engines that word theirs otherwise."""
    head = f"{diagnostic.severity}: {diagnostic.message}\n"
    if diagnostic.line is None or diagnostic.column is None:
        return head + "\n"
    lines = _LINE_END.split(wgsl)
    source = lines[diagnostic.line - 1] if diagnostic.line <= len(lines) else ""
    number = str(diagnostic.line)
    gutter = " " * len(number)
    before = source.encode()[: diagnostic.column - 1].decode(errors="ignore")  # Tint counts bytes
    indent = "".join("\t" if character == "\t" else " " for character in before)
    width = max(1, (diagnostic.end_column or diagnostic.column) - diagnostic.column)
    return (
        f"{head}{gutter} ┌─ {path}:{diagnostic.line}:{diagnostic.column}\n"
        f"{gutter} │\n"
        f"{number} │ {source}\n"
        f"{gutter} │ {indent}{'^' * width}\n\n"
    )
