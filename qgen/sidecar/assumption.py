"""What a kernel relies on of the values of an input, for hosts that have to hold them to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Assumption:
    """What the values of an input must meet for the kernel to be right, whoever binds it.

    `codes` are the codes of its elements that do, as intervals with both ends; `condition` says the same in words, and `wgsl` as the
    function `is_plain`, of a code, with those that it calls.
    """

    buffer: str
    condition: str
    codes: tuple[tuple[int, int], ...]
    wgsl: str


def assumes(assumption: Assumption | None) -> dict[str, Any]:
    """Return what the sidecar has of it: nothing where the kernel takes any values."""
    if assumption is None:
        return {}
    codes = [list(interval) for interval in assumption.codes]
    described = {"buffer": assumption.buffer, "condition": assumption.condition, "codes": codes, "wgsl": assumption.wgsl}
    return {"assumes": [described]}
