"""The stacks that the tests of the runtime run on; a stack that is absent fails its tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qgen.runtime import Device, open_device
from qgen.sidecar.plan import plan_dispatch
from tests.sidecar.handmade import TIMES, times_three

LAVAPIPE = "wgpu:llvmpipe"
OPENGL = "wgpu:opengl"
SWIFTSHADER = "dawn:swiftshader"
STACKS = (LAVAPIPE, OPENGL, "wgpu:swiftshader", SWIFTSHADER)

Words = npt.NDArray[np.uint32]


def words(count: int) -> Words:
    """Return `count` words that differ, with high bits set in some."""
    return (np.arange(count, dtype=np.uint64) * 0x9E3779B1 % (1 << 32)).astype("<u4")


def run_times(device: Device, count: int, wgsl: str = TIMES, *, row: int = 65535, canaries: bool = True) -> Words:
    """Return what a text with the bindings of `TIMES` makes of `words(count)` on `device`."""
    sidecar = times_three(wgsl, row=row)
    plan = plan_dispatch(sidecar, {"x": (count,)})
    return np.frombuffer(device.run(wgsl, sidecar, plan, {"x": words(count).tobytes()}, canaries=canaries)["y"], "<u4")


def open_stack(selector: str) -> Device:
    """Return the device of one stack, and fail where it is another one than the selector names."""
    device = open_device(selector)
    stack, part = selector.split(":")
    assert device.backend.startswith(stack)
    assert part in f"{device.name} {device.backend}".lower()
    return device
