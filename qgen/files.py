"""Files out: those that belong together appear all of them, each whole, or none."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from qgen.errors import QgenError

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})


def save_files(folder: str | os.PathLike[str], files: Mapping[str, str | bytes]) -> tuple[Path, ...]:
    """Write files by their names into `folder` (made where it is not there), texts as UTF-8, and return their paths.

    All are written beside where they belong before the first is put there. A link stays, and the file that it leads to is written; a device
    or a pipe is written to as it is. Raises `QgenError` QG110 where that is not possible.
    """
    written: list[tuple[Path, Path, Path]] = []
    devices: list[tuple[Path, Path, bytes]] = []
    try:
        for name, content in files.items():
            path, data = Path(folder) / name, content.encode("utf-8") if isinstance(content, str) else content
            with _explained(path):
                target = Path(os.path.realpath(path))  # `resolve` raises a class of its own where links go round in a circle
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir():
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
                if target.exists() and not target.is_file():
                    devices.append((path, target, data))
                    continue
                temporary = target.parent / f".qgen-{secrets.token_hex(8)}"
                written.append((path, target, temporary))  # before it is there: an interruption at any point can remove it
                with temporary.open("xb") as file:
                    file.write(data)
        for path, target, temporary in written:
            with _explained(path):
                temporary.replace(target)
        for path, target, data in devices:
            with _explained(path):
                target.write_bytes(data)
    finally:
        for _, _, temporary in written:
            temporary.unlink(missing_ok=True)
    return tuple(Path(folder) / name for name in files)


def write_text(path: Path, text: str) -> None:
    """Write one text, as `save_files` does."""
    save_files(path.parent, {path.name: text})


def write_bytes(path: Path, data: bytes) -> None:
    """Write one file, as `save_files` does."""
    save_files(path.parent, {path.name: data})


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise what goes wrong with a file as an error of qgen's."""
    try:
        yield
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        is_file = isinstance(error, FileExistsError | NotADirectoryError)  # what mkdir says of a path that leads through a file
        reason = f"{path.parent} is no folder" if is_file else error.strerror if isinstance(error, OSError) else str(error)
        is_full = isinstance(error, OSError) and error.errno in _NO_ROOM
        hint = "make room there, or name another folder" if is_full else "name a folder that can be written"
        raise QgenError("QG110", f"cannot write {path}: {reason}", hint=hint) from error
