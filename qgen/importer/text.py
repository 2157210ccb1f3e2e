"""Names in a model are anyone's bytes: what may stand in a message or a path, and what is refused."""

from __future__ import annotations

from typing import Final

from qgen.errors import QgenError

_LONGEST: Final = 200


def read_text(value: object, place: str) -> str:
    """Return a string of the model; raises `QgenError` QG417 where its bytes are not UTF-8, which protobuf hands over as bytes."""
    if isinstance(value, str):
        return value
    message = f"a name or text in the model is not UTF-8: {value!r:.80}"
    raise QgenError("QG417", message, hint="the file is damaged, or its exporter is at fault: export the model again", place=place)


def printable(text: str) -> str:
    """Return `text` with everything that does not print, control characters above all, as Python escapes; long texts are cut."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
