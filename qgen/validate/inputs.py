"""The inputs of the command line, read as naga reads them: its order of checks, its words, the system's for an unreadable file."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qgen.errors import QgenError
from qgen.validate.arguments import Arguments

InputKind = Literal["bin", "glsl", "spv", "wgsl"]


class InputError(Exception):
    """An input cannot be judged: naga's message, and the cause that it prints on a line of its own outside bulk mode."""

    def __init__(self, message: str, cause: str | None = None) -> None:
        """Keep both parts."""
        super().__init__(message)
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        """Return the message as naga prints it when it ends with it."""
        return self.message if self.cause is None else f"{self.message}: \n\t{self.cause}"


@dataclass(frozen=True, slots=True)
class Input:
    """One text under the path that the user gave."""

    path: str
    wgsl: str


def read_single(read: Arguments) -> tuple[Input, list[str]]:
    """Return the one input, and the files that naga would write: standard input under its given name, else the first file."""
    if "--stdin-file-path" in read.naga_options:
        path = read.naga_options["--stdin-file-path"]
        return decode(path, sys.stdin.buffer.read(), read), read.files
    if not read.files:
        raise InputError("Input file path is not specified")
    return decode(read.files[0], read_bytes(read.files[0]), read), read.files[1:]


def read_bytes(path: str) -> bytes:
    """Return a file's bytes; raises InputError with the system's words."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{os.strerror(error.errno or 0)} (os error {error.errno})") from error


def decode(path: str, data: bytes, read: Arguments) -> Input:
    """Return the input as text; raises InputError for an unknown kind or bytes that are no UTF-8, QG706 for a kind that is not WGSL."""
    kind = read.naga_options.get("--input-kind", "").lower() or _kind_of(path)
    if kind != "wgsl":
        message = f"the input is of the kind `{kind}`, and qgen validate judges WGSL"
        raise QgenError("QG706", message, hint="put gfx-rs/naga on PATH: it is then handed the arguments", place=path)
    try:
        return Input(path, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise InputError(f"incomplete utf-8 byte sequence from index {error.start}") from error
        count = error.end - error.start
        raise InputError(f"invalid utf-8 sequence of {count} bytes from index {error.start}") from error


def _kind_of(path: str) -> str:
    extension = extension_of(path)
    if extension is None:
        raise InputError("Input filename has no extension")
    if extension.lower() not in {"bin", "glsl", "spv", "wgsl"}:
        raise InputError("Unable to determine --input-kind from filename", f"Invalid value for --input-kind: {extension}")
    return extension.lower()


def file_name_of(path: str) -> str:
    """Return the last part of a path."""
    return re.split(r"[/\\]" if os.sep == "\\" else "/", path.rstrip("/"))[-1]


def extension_of(path: str) -> str | None:
    """Return what follows the last dot of a file's name (it may be empty), or None for `name`, `.name` and `..`."""
    stem, dot, extension = file_name_of(path).rpartition(".")
    return extension if dot and stem and file_name_of(path) != ".." else None
