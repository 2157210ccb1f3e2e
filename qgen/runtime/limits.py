"""WebGPU's default limits, which a kernel may count on everywhere, and what of an adapter's own limits a device asks for.

Names are WebGPU's. A device gets the default limits, not the adapter's, so a kernel that needs more is found out on every adapter; only the
sizes of buffers go up to what the adapter has, because they are the user's data and no property of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from qgen.errors import QgenError, UnavailableError
from qgen.sidecar.plan import DispatchPlan, RunPlan, plan_runs

_DEFAULTS: Final = {
    "maxBindGroups": 4,
    "maxBindingsPerBindGroup": 1000,
    "maxStorageBuffersPerShaderStage": 8,
    "maxUniformBuffersPerShaderStage": 12,
    "maxUniformBufferBindingSize": 65536,
    "minUniformBufferOffsetAlignment": 256,
    "minStorageBufferOffsetAlignment": 256,
    "maxComputeWorkgroupStorageSize": 16384,
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupSizeY": 256,
    "maxComputeWorkgroupSizeZ": 64,
    "maxComputeWorkgroupsPerDimension": 65535,
}

_ADAPTERS: Final = ("maxStorageBufferBindingSize", "maxBufferSize")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a kernel asks of a device beyond the default: features, and limits that exceed the default ones. Both are sorted."""

    features: tuple[str, ...]
    limits: tuple[tuple[str, int], ...]


def read_needs(requires: Mapping[str, object]) -> Needs:
    """Return the needs in the `requires` of a sidecar. Language features are not among them: no native stack lists those it has."""
    features, limits = requires["features"], requires["limits"]
    if not isinstance(features, list) or not isinstance(limits, dict):
        raise QgenError("QG601", "this is not a sidecar that qgen reads: `requires`", hint="write it anew with `qgen emit`")
    beyond = {name: int(value) for name, value in limits.items() if _exceeds(name, int(value), _DEFAULTS.get(name))}
    return Needs(tuple(sorted(map(str, features))), tuple(sorted(beyond.items())))


def choose_limits(needs: Needs, offered: Mapping[str, int], adapter: str) -> dict[str, int]:
    """Return the limits to request of the adapter that offers `offered` (native spelling: `max-buffer-size`).

    An adapter below WebGPU's defaults (OpenGL) gives what it has. Raises `UnavailableError` QG613 where it has less than the kernel needs.
    """
    has = {name: offered[native_spelling(name)] for name in (*_DEFAULTS, *_ADAPTERS)}
    chosen = {name: has[name] if _exceeds(name, default, has[name]) else default for name, default in _DEFAULTS.items()}
    for name, value in needs.limits:
        available = offered.get(native_spelling(name))
        if available is None or _exceeds(name, value, available):
            raise UnavailableError(
                "QG613",
                f"the kernel needs {name} {value}, and `{adapter}` has {available}",
                hint="emit the kernel for a target with a smaller workgroup, or name another adapter",
            )
        chosen[name] = value
    return chosen | {name: has[name] for name in _ADAPTERS}


def check_features(needs: Needs, offered: Collection[str], adapter: str) -> None:
    """Raise `UnavailableError` QG613 where the adapter lacks a feature that the kernel needs."""
    for feature in needs.features:
        if feature not in offered:
            message = f"the kernel needs the feature `{feature}`, which `{adapter}` lacks"
            raise UnavailableError("QG613", message, hint="emit it for a target without this feature")


def split_plan(plan: DispatchPlan, sidecar: Mapping[str, Any], limits: Mapping[str, int]) -> tuple[RunPlan, ...]:
    """Return the runs of a plan on a device with `limits` (WebGPU's spelling): several where a tensor is too large and may be parted."""
    limit = _greatest_storage(limits)
    storage = [bound.buffer for step in plan.passes for bound in step.bindings if bound.address_space == "storage"]
    is_large = any(plan.sizes[name] > limit for name in storage)
    runs = plan_runs(sidecar, plan.shapes, limit) if is_large else None
    return runs or (RunPlan(dict.fromkeys(plan.sizes, 0), plan),)


def check_fits(plan: DispatchPlan, limits: Mapping[str, int], adapter: str, *, is_baked: bool) -> None:
    """Raise `QgenError` QG612 where a buffer or a dispatch of `plan` is beyond `limits` (WebGPU's spelling)."""
    for step in plan.passes:
        for bound in step.bindings:
            is_uniform = bound.address_space == "uniform"
            greatest = limits["maxUniformBufferBindingSize"] if is_uniform else _greatest_storage(limits)
            if plan.sizes[bound.buffer] > greatest:
                reason = f"the buffer `{bound.buffer}` has {plan.sizes[bound.buffer]} bytes, and `{adapter}` binds {greatest}"
                raise _too_large(reason, is_baked=is_baked)
        if max(step.dispatch) > limits["maxComputeWorkgroupsPerDimension"]:
            raise _too_large(f"the pass `{step.entry_point}` has {' × '.join(map(str, step.dispatch))} workgroups", is_baked=is_baked)


def _greatest_storage(limits: Mapping[str, int]) -> int:
    return min(limits["maxStorageBufferBindingSize"], limits["maxBufferSize"])


def _too_large(reason: str, *, is_baked: bool) -> QgenError:
    way_out = "leave its shape to uniforms, so that it computes a tensor in parts" if is_baked else "split the tensor along an outer axis"
    return QgenError(
        "QG612",
        f"a kernel too large for the adapter: {reason}",
        hint=f"{way_out}, or take a device with a greater maxStorageBufferBindingSize; `cpu` has no such limit",
    )


def _exceeds(name: str, value: int, bound: int | None) -> bool:
    """Whether `value` asks for more than `bound`: an alignment asks for more when it is smaller."""
    if bound is None:
        return True
    return value < bound if name.startswith("min") else value > bound


def native_spelling(name: str) -> str:
    """Return the name as wgpu-py spells it: `max-buffer-size`."""
    return re.sub("(?=[A-Z])", "-", name).lower()
