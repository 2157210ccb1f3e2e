"""Profiles: schedules that `qgen tune` measured on one adapter, a table for each kernel; read only where a user names one.

    format = 1
    adapter = "llvmpipe (LLVM 15.0.6, 256 bits)"
    backend = "wgpu:vulkan"
    target = "webgpu"

    [[kernel]]
    op = "DequantizeLinear"
    x = "uint8"
    ...
    lanes = 32
    workgroup_size = 128
    time = 0.81

`time` is the median of the schedule's time over that of the target's own, in one interleaved run. A schedule changes how work is divided,
and no result.
"""

from __future__ import annotations

import math
import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from qgen.compiler import canonical_request
from qgen.errors import QgenError
from qgen.request import Request
from qgen.shapes import Blocked, PerTensor
from qgen.target import Target, load_target

FORMAT: Final = 1
_HEAD: Final = {"format": int, "adapter": str, "backend": str, "target": str}
_SCHEDULE: Final = {"lanes": int, "workgroup_size": int, "time": float}
_HINT: Final = "write it with `qgen tune`"

Key = dict[str, Any]
"""What a kernel computes, in TOML's types."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a kernel divides its work: elements an invocation owns, and invocations a workgroup."""

    lanes: int
    workgroup_size: int

    def target(self, name: str) -> Target:
        """Return the target called `name` with this schedule; raises `QgenError` QG103 for what a target cannot have."""
        return load_target(f"{name}:lanes={self.lanes},workgroup_size={self.workgroup_size}")


@dataclass(frozen=True, slots=True)
class Entry:
    """The schedule of one kernel, and its time over that of the target's own schedule."""

    key: Key
    schedule: Schedule
    time: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The schedules found on one adapter for kernels of one target."""

    adapter: str
    backend: str
    target: str
    entries: tuple[Entry, ...]

    def find(self, request: Request) -> Schedule | None:
        """Return the schedule of a kernel: its own entry, else that of the same signature whose number of elements is nearest; or None.

        Kernels with baked shapes and those with uniforms are kept apart.
        """
        key = describe_kernel(request)
        same = [
            entry
            for entry in self.entries
            if _without_shape(entry.key) == _without_shape(key) and ("shape" in entry.key) == ("shape" in key)
        ]
        return min(same, key=lambda entry: _distance(entry.key, key)).schedule if same else None

    def hold_target(self, target: Target) -> None:
        """Raise `QgenError` QG108 where kernels for `target` can have no schedule of this profile: it is another's, or has options."""
        if target.name != self.target:
            message = f"the profile is for the target `{self.target}`, and the kernel for `{target.name}`"
            raise QgenError("QG108", message, hint=f"emit it for `{self.target}`, without options, or leave the profile out")

    def apply(self, request: Request) -> Request:
        """Return the request with the schedule found for it, or itself where there is none.

        Raises as `hold_target` does.
        """
        self.hold_target(request.target)
        schedule = self.find(request)
        return request if schedule is None else replace(request, target=schedule.target(self.target))


def describe_kernel(request: Request) -> Key:
    """Return what identifies a kernel in a profile; equal kernels have equal keys, whatever opset asked for them."""
    request = canonical_request(request)
    signature, granularity, shape = request.signature, request.granularity, request.shape
    key: Key = {"op": signature.op, "x": signature.x.name, "scale": signature.scale.name, "y": signature.y.name}
    key |= {"zero_point": signature.zero_point, "granularity": granularity.kind}
    if not isinstance(granularity, PerTensor):
        # From the end, as far as the rank is known: what matters is which part of memory an axis is.
        key["axis"] = granularity.axis if shape is None else granularity.axis - len(shape)
    if isinstance(granularity, Blocked):
        key["block_size"] = granularity.block_size
    if signature.precision is not None:
        key["precision"] = signature.precision.name
    if not signature.saturate:
        key["saturate"] = False
    key["numerics"] = request.mode
    if request.plain_scale:
        key["plain_scale"] = True
    if shape is not None:
        key["shape"] = list(shape)
    return key


def print_profile(profile: Profile) -> str:
    """Return the profile as TOML, entries in their order."""
    head = {"format": FORMAT, "adapter": profile.adapter, "backend": profile.backend, "target": profile.target}
    lines = [f"{name} = {_toml(value)}" for name, value in head.items()]
    for entry in profile.entries:
        schedule = {"lanes": entry.schedule.lanes, "workgroup_size": entry.schedule.workgroup_size, "time": entry.time}
        lines += ["", "[[kernel]]", *(f"{name} = {_toml(value)}" for name, value in (entry.key | schedule).items())]
    return "\n".join([*lines, ""])


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Return the profile in a file. Raises `QgenError` QG114 where there is none, QG103 for a schedule that a target cannot have."""
    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise QgenError("QG114", f"this is no profile: {reason}", hint=_HINT, place=str(path)) from error
    head = _take(table, _HEAD, str(path))
    if head["format"] != FORMAT:
        message = f"this is a profile of format {head['format']}, and this qgen reads {FORMAT}"
        raise QgenError("QG114", message, hint=_HINT, place=str(path))
    kernels = table.get("kernel", [])
    if not isinstance(kernels, list) or not all(isinstance(kernel, dict) for kernel in kernels):
        raise QgenError("QG114", "this is no profile: `kernel` is no list of tables", hint=_HINT, place=str(path))
    entries = []
    for kernel in kernels:
        found = _take(kernel, _SCHEDULE, str(path))
        schedule = Schedule(found["lanes"], found["workgroup_size"])
        schedule.target(head["target"])
        entries.append(Entry({name: value for name, value in kernel.items() if name not in _SCHEDULE}, schedule, found["time"]))
    return Profile(head["adapter"], head["backend"], head["target"], tuple(entries))


def _take(table: Key, types: dict[str, type], path: str) -> Key:
    for name, kind in types.items():
        if type(table.get(name)) is not kind:
            raise QgenError("QG114", f"this is no profile: `{name}` is missing, or no {kind.__name__}", hint=_HINT, place=path)
    return {name: table[name] for name in types}


def _without_shape(key: Key) -> Key:
    return {name: value for name, value in key.items() if name != "shape"}


def _distance(key: Key, other: Key) -> float:
    shape, wanted = key.get("shape"), other.get("shape")
    if shape == wanted:
        return -1.0
    return abs(math.log2(max(1, math.prod(shape or ()))) - math.log2(max(1, math.prod(wanted or ()))))


def _toml(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return '"' + "".join(f"\\u{ord(char):04x}" if char in '"\\' or not char.isprintable() else char for char in str(value)) + '"'
