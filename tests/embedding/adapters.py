"""Devices of the Python APIs as a user opens them, with a limit of their own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from qgen.runtime.opening import _adapters


@cache
def open_native(stack: str, part: str, limits: tuple[tuple[str, int], ...] = ()) -> Any:  # noqa: ANN401 - the API has no types
    """Return a device of the API `wgpu` or `wgpudawn` (stack `dawn`) on the adapter whose name contains `part`."""
    (adapter,) = (each for each in _adapters(stack) if part in each.name.lower() and each.backend.endswith("vulkan"))
    wanted: Mapping[str, int] = dict(limits)
    return adapter.take().request_device_sync(required_limits=wanted)
