"""Targets: what a device is assumed to have, one TOML file each under `targets/`, and the options a user may set."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from qgen.errors import QgenError
from qgen.resources import list_resources, read_resource

OPTIONS: Final = ("lanes", "max_workgroups_per_dimension", "workgroup_size")
"""Options that a target's name may carry: `webgpu:max_workgroups_per_dimension=7`."""


@dataclass(frozen=True, slots=True)
class Target:
    """What kernels may use. Limits have WebGPU's names and units (bytes, counts)."""

    name: str
    description: str
    module: str
    features: tuple[str, ...]
    language_features: tuple[str, ...]
    workgroup_size: int
    lanes: int
    """The elements that an invocation owns where quick code works on four at a time."""
    least_lanes: int
    """The fewest elements an invocation owns."""
    max_workgroups_per_dimension: int
    limits: tuple[tuple[str, int], ...]

    def limit(self, name: str) -> int:
        """Return the limit called `name`; raises KeyError where the target has none."""
        return dict(self.limits)[name]


def target_names() -> tuple[str, ...]:
    """Return the names of all targets."""
    return tuple(name.removesuffix(".toml") for name in list_resources("targets") if name.endswith(".toml"))


@lru_cache(maxsize=64)
def load_target(spec: str) -> Target:
    """Return the target that `spec` names: a name, and options after a colon (`webgpu:workgroup_size=128`).

    Raises `QgenError` QG103 for a name or an option that is not there, or a value out of range.
    """
    name, _, options = spec.partition(":")
    if name not in target_names():
        near = difflib.get_close_matches(name, target_names(), n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"targets are {', '.join(target_names())}"
        raise QgenError("QG103", f"there is no target `{name}`", hint=hint)
    table = tomllib.loads(read_resource("targets", f"{name}.toml"))
    target = Target(
        name=spec,
        description=table["description"],
        module=table["module"],
        features=tuple(table["features"]),
        language_features=tuple(table["language_features"]),
        workgroup_size=table["workgroup_size"],
        lanes=table["lanes"],
        least_lanes=table["least_lanes"],
        max_workgroups_per_dimension=table["max_workgroups_per_dimension"],
        limits=tuple(sorted(table["limits"].items())),
    )
    for option in filter(None, options.split(",")):
        target = _with_option(target, option)
    return target


def _with_option(target: Target, option: str) -> Target:
    key, _, value = option.partition("=")
    if key not in OPTIONS:
        raise QgenError("QG103", f"a target has no option `{key}`", hint=f"options are {', '.join(OPTIONS)}")
    most = {"max_workgroups_per_dimension": 65535, "lanes": 128, "workgroup_size": target.limit("maxComputeWorkgroupSizeX")}[key]
    step, kind = (4, "multiple of 4") if key == "lanes" else (1, "whole number")
    if not value.isdecimal() or int(value) not in range(step, most + 1, step):
        hint = f"write `{target.name.partition(':')[0]}:{key}=64`"
        raise QgenError("QG103", f"`{key}` is a {kind} from {step} to {most}, not `{value}`", hint=hint)
    number = int(value)
    match key:
        case "workgroup_size":
            return replace(target, workgroup_size=number)
        case "lanes":
            return replace(target, lanes=number)
        case _:
            return replace(target, max_workgroups_per_dimension=number)
