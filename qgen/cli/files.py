"""Files in and out: a read that fails is an error with a place, a write appears whole or not at all and only where something changed."""

from __future__ import annotations

import os
from pathlib import Path

from qgen.errors import QgenError


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the file's bytes; raises `QgenError` QG902."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise QgenError(
            "QG902", f"cannot read {os.fspath(path)}: {reason}", hint="name a file that is there and that you may read"
        ) from error


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the file's text with line ends as they are; raises `QgenError` QG902, for what is no UTF-8 too."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"cannot read {os.fspath(path)}: byte {error.start} is not UTF-8"
        raise QgenError("QG902", message, hint="name a text file in UTF-8") from error


def is_current(path: Path, text: str) -> bool:
    """Whether the file holds exactly `text` already."""
    try:
        return path.read_bytes() == text.encode("utf-8")
    except OSError:
        return False


def write_if_changed(path: Path, text: str) -> bool:
    """Write `text` unless the file holds it already, and tell whether it was written. Raises `QgenError` QG110."""
    from qgen.files import write_text  # start-up time

    if is_current(path, text):
        return False
    write_text(path, text)
    return True
