"""Parses the built-in sources anew and writes what ships beside them; `make parsed` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qgen import formulas
from qgen.frontend.parse import parse_source
from qgen.frontend.stored import print_stored
from qgen.numerics import library

_ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = tuple(
    f"{package.replace('.', '/')}/{name}"
    for package, names in (("qgen.formulas", formulas.FILES), (library.PACKAGE, library.FILES))
    for name in names
)
"""Every built-in source, from the root of the checkout."""


def stored_path(source: str) -> Path:
    """Return where the parsed form of a source lies."""
    return _ROOT / f"{source}.json"


def parse_anew(source: str) -> str:
    """Return what is to be stored for a source."""
    return print_stored(parse_source((_ROOT / source).read_text(encoding="utf-8"), source))


if __name__ == "__main__":
    for name in SOURCES:
        stored_path(name).write_text(parse_anew(name), encoding="utf-8")
