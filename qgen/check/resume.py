"""A file of what a long run has done, one line of JSON for each entry, so that the run can be stopped and gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from qgen.errors import QgenError


class Entry(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


T = TypeVar("T", bound=Entry)


class ResumeFile(Generic[T]):
    """The file at a path, made where it is not there; `entries` are those that it had when it was opened."""

    def __init__(self, path: Path, parse: Callable[[dict[str, Any]], T]) -> None:
        """Read the file; `parse` makes an entry of a line's object.

        Raises `QgenError` QG851 where a line is none, or the file cannot be read.
        """
        self._path = path
        text = self._read()
        whole, _, part = text.rpartition("\n")
        lines = whole.splitlines()
        if part and not _is_torn(part):
            lines.append(part)
        self.entries = [self._parse(line, number, parse) for number, line in enumerate(lines, 1)]
        if part:  # not before the file is known to be one of these
            self._write("".join(f"{line}\n" for line in lines), "w")

    def add(self, entry: T) -> None:
        """Write one more line. Raises `QgenError` QG852 where that is not possible."""
        self._write(json.dumps(asdict(entry)) + "\n", "a")

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise QgenError("QG851", f"cannot read {self._path}: {error}", hint="name a file that a sweep wrote, or a new one") from error

    def _write(self, text: str, mode: str) -> None:
        try:
            with self._path.open(mode, encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise QgenError("QG852", f"cannot write {self._path}: {error.strerror}", hint="name a file that can be written") from error

    def _parse(self, line: str, number: int, parse: Callable[[dict[str, Any]], T]) -> T:
        try:
            return parse(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            message = f"line {number} of {self._path} is not the outcome of a check"
            raise QgenError(
                "QG851", message, hint="name a file that a sweep wrote, or a new one", place=f"{self._path}:{number}"
            ) from error


def _is_torn(part: str) -> bool:
    """Whether this is the beginning of a line: what a run that was killed leaves at the end, of something that is not done."""
    try:
        json.loads(part)
    except ValueError:
        return '{"'.startswith(part[:2])
    return False
