"""How names of operators become names in text."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache
from itertools import count


@lru_cache(maxsize=64)
def snake_case(name: str) -> str:
    """Return an operator's name as a function is named: `QuantizeLinear` to `quantize_linear`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def free_name(stem: str, taken: Container[str], separator: str = "_") -> str:
    """Return `stem`, or where that is taken the first of `stem_2`, `stem_3`, … that is not."""
    if stem not in taken:
        return stem
    return next(name for number in count(2) if (name := f"{stem}{separator}{number}") not in taken)
