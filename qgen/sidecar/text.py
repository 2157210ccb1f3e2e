"""A sidecar as text: JSON with short arrays on one line, keys in the order they were made."""

from __future__ import annotations

import json
from typing import Any, Final

_WIDTH: Final = 140


def print_sidecar(sidecar: dict[str, Any]) -> str:
    """Return the file's text; ends with one newline."""
    return _print(sidecar, 0) + "\n"


def _print(value: object, depth: int) -> str:
    flat = json.dumps(value)
    if len(flat) + depth <= _WIDTH and (depth > 1 or not isinstance(value, dict)):
        return flat
    pad = " " * (depth + 1)
    match value:
        case dict():
            inner = ",\n".join(f"{pad}{json.dumps(key)}: {_print(item, depth + 1)}" for key, item in value.items())
            return f"{{\n{inner}\n{' ' * depth}}}"
        case list():
            inner = ",\n".join(f"{pad}{_print(item, depth + 1)}" for item in value)
            return f"[\n{inner}\n{' ' * depth}]"
        case _:
            return flat
