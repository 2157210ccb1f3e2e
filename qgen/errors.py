"""The two kinds of failure: `QgenError` is the input's fault and says how to mend it, `InternalError` is ours and prints the IR.

The codes and the paragraph behind each stand in `qgen/codes/*.toml`; `qgen explain CODE` prints from them, and a test holds that each
code raised in the source has its table and its golden `.err`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: lines and columns count from 1; `end_column` is one past the last character marked."""

    file: str
    line: int
    column: int
    end_column: int


class QgenError(Exception):
    """The input is at fault: `code` (`QG…`), what is wrong, `hint` how to mend it, `place` where (a span or a node's name)."""

    def __init__(self, code: str, message: str, *, hint: str, place: Span | str | None = None, source: str | None = None) -> None:
        """Keep the parts; `source` is the text that a span points into, to print the line under it."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.place = place
        self.source = source

    def __str__(self) -> str:
        """Return the error as one prints it: `error[CODE]: message`, place with the marked line, hint."""
        lines = [f"error[{self.code}]: {self.message}"]
        if isinstance(self.place, Span):
            span = self.place
            lines.append(f"  --> {span.file}:{span.line}:{span.column}")
            if self.source is not None:
                lines_of_source = self.source.split("\n")
                text = lines_of_source[span.line - 1] if span.line <= len(lines_of_source) else ""
                gutter = " " * len(str(span.line))
                width = max(1, span.end_column - span.column)
                lines += [f"{gutter} |", f"{span.line} | {text}", f"{gutter} | {' ' * (span.column - 1)}{'^' * width}"]
        elif self.place:
            lines.append(f"  --> {self.place}")
        lines.append(f"  = hint: {self.hint}")
        return "\n".join(lines)


class UnavailableError(QgenError):
    """Nothing on this machine can do what was asked (no adapter, no engine): exit code 3, and the hint says what to install."""


class InternalError(Exception):
    """A bug in qgen: the message carries the IR at the point where it was found."""
