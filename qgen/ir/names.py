"""How names of operators become names in text."""

from __future__ import annotations

import re


def snake_case(name: str) -> str:
    """Return an operator's name as a function is named: `QuantizeLinear` to `quantize_linear`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
