"""What differs between a terminal and a file: colour in diagnostics, and a progress bar."""

from __future__ import annotations

import os
import re
import sys
from types import TracebackType
from typing import Final, Self, TextIO

_BOLD: Final = "\x1b[1m"
_RED: Final = "\x1b[1;31m"
_YELLOW: Final = "\x1b[1;33m"
_BLUE: Final = "\x1b[1;34m"
_CYAN: Final = "\x1b[36m"
_RESET: Final = "\x1b[0m"

_RULES: Final = (
    (re.compile(r"^(?:internal )?error(?:\[\w+\])?(?=:)"), _RED),
    (re.compile(r"^warning(?=:)"), _YELLOW),
    (re.compile(r"^ +-->"), _BLUE),
    (re.compile(r"^ *\d* \|(?: +\^+)?"), _BLUE),
    (re.compile(r"^ += hint(?=:)"), _CYAN),
)
_CELLS: Final = 30


def wants_color(mode: str, stream: TextIO) -> bool:
    """Whether diagnostics on `stream` are coloured: `mode` is `auto` (a terminal, and NO_COLOR is not set), `always` or `never`."""
    return mode == "always" or (mode == "auto" and stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")


def paint_diagnostic(text: str) -> str:
    """Return the text of an error with its head, place, marks and hint coloured, and no other character changed."""
    return "\n".join(_paint_line(line) for line in text.split("\n"))


def _paint_line(line: str) -> str:
    for pattern, color in _RULES:
        if match := pattern.match(line):
            rest = line[match.end() :]
            return f"{color}{match.group()}{_RESET}{_BOLD + rest + _RESET if color in {_RED, _YELLOW} else rest}"
    return line


def count(number: int, noun: str) -> str:
    """Return `1 kernel`, `1,782 kernels`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def warn(text: str, mode: str) -> None:
    """Print a warning."""
    line = f"warning: {text}"
    print(paint_diagnostic(line) if wants_color(mode, sys.stderr) else line, file=sys.stderr)


class Progress:
    """A bar on standard error where that is a terminal, and nothing where it is not; a context manager that leaves a clean line."""

    def __init__(self, what: str, *, is_quiet: bool = False) -> None:
        """Make a bar; `what` is the plural of what is counted."""
        self._what = what
        self._percent = -1
        self._shows = sys.stderr.isatty() and not is_quiet

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Clear the line."""
        self.clear()

    def clear(self) -> None:
        """Make room for a line of output; the bar comes back with the next percent."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def show(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done; writes once a percent."""
        percent = 100 * done // total
        if self._shows and percent != self._percent:
            self._percent = percent
            cells = _CELLS * done // total
            sys.stderr.write(f"\r[{'#' * cells}{'.' * (_CELLS - cells)}] {percent:3}%  {done}/{total} {self._what}")
            sys.stderr.flush()
