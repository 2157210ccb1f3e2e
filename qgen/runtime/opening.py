"""The stacks and their adapters: wgpu (naga) and Dawn (Tint), which speak the same Python API, and what lives in JavaScript."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from qgen.errors import QgenError, UnavailableError
from qgen.runtime.device import Adapter, Device
from qgen.runtime.drivers import driver_environment
from qgen.runtime.hosted import HOSTS, find_hosted

_MODULES: Final = {"wgpu": "wgpu", "dawn": "wgpudawn"}

_HINT: Final = (
    "Debian's mesa-vulkan-drivers (llvmpipe), chromium-common (SwiftShader) and libegl1 libegl-mesa0 libgl1-mesa-dri (OpenGL) are software "
    "adapters; `cpu` needs none"
)


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One adapter: its name, `wgpu` or `dawn` with the graphics API behind it (`wgpu:vulkan`), and whether it computes on the CPU."""

    name: str
    backend: str
    is_software: bool


def list_devices() -> tuple[DeviceInfo, ...]:
    """Return every adapter of the stacks that are installed, those of wgpu first, hardware before software."""
    return tuple(DeviceInfo(adapter.name, adapter.backend, adapter.is_software) for stack in _MODULES for adapter in _adapters(stack))


def open_device(selector: str, *, bounds_checks: bool = True) -> Device:
    """Return the device that `selector` names; the same one when it is asked for again.

    `selector` is `gpu` (the first adapter, hardware before software) or a part of an adapter's name or of its graphics API (`llvmpipe`,
    `nvidia`, `opengl`), after `wgpu:` or `dawn:` where the stack matters; or `node` or `chromium`, each with the adapter that it chooses.
    Without `bounds_checks` (Dawn only) an access out of a buffer's bounds is not redirected, so it shows in the canaries. Raises
    `UnavailableError`: QG610 where there is no such adapter, QG611 where the stack is not installed, QG615 where the stack always checks
    bounds; `QgenError` QG614 for a stack that is none.
    """
    device = _open(selector.strip().lower(), bounds_checks)
    if device.is_lost:
        _open.cache_clear()
        _adapters.cache_clear()
        device = _open(selector.strip().lower(), bounds_checks)
    return device


@cache
def _open(selector: str, bounds_checks: bool) -> Device:  # noqa: FBT001 - a key of the cache
    if selector.partition(":")[0] in HOSTS:
        return Device(find_hosted(selector), bounds_checks=bounds_checks)
    prefix, separator, part = selector.rpartition(":")
    if separator and prefix not in _MODULES:
        raise QgenError(
            "QG614",
            f"there is no stack `{prefix}`",
            hint="a device is `gpu`, a part of an adapter's name, or that after `wgpu:` or `dawn:`",
        )
    stacks = [prefix] if separator else list(_MODULES)
    if not any(_is_installed(stack) for stack in stacks):
        names = " or ".join(f"`pip install {_MODULES[stack]}`" for stack in stacks)
        raise UnavailableError("QG611", f"the Python package of the stack is not installed, so there is no device `{selector}`", hint=names)
    adapters = [adapter for stack in stacks for adapter in _adapters(stack)]
    wanted = [adapter for adapter in adapters if part == "gpu" or part in f"{adapter.name} {adapter.backend}".lower()]
    if not part or not wanted:
        there = ", ".join(f"{adapter.backend} {adapter.name}" for adapter in adapters) or "none"
        raise UnavailableError("QG610", f"there is no adapter `{selector}` here; there is: {there}", hint=_HINT)
    return Device(wanted[0], bounds_checks=bounds_checks)


@cache
def _adapters(stack: str) -> tuple[Adapter, ...]:
    """Return the adapters of one stack, in the order of preference; none where the stack is not installed."""
    if not _is_installed(stack):
        return ()
    module = importlib.import_module("wgpu") if stack == "wgpu" else importlib.import_module("wgpudawn")
    adapters = [
        Adapter(
            stack,
            module,
            partial(_take, stack, module, index),
            str(native.info["device"]),
            f"{stack}:{str(native.info['backend_type']).lower()}",
            native.info["adapter_type"] == "CPU",
        )
        for index, native in enumerate(_enumerate(stack, module))
    ]
    return tuple(sorted(adapters, key=_preference))


def _enumerate(stack: str, module: Any) -> list[Any]:  # noqa: ANN401 - the API has no types
    with driver_environment(stack):
        adapters: list[Any] = module.gpu.enumerate_adapters_sync()
    return adapters


def _take(stack: str, module: Any, index: int) -> Any:  # noqa: ANN401 - the API has no types
    return _enumerate(stack, module)[index]


def _preference(adapter: Adapter) -> tuple[bool, bool, bool]:
    """Hardware first, OpenGL last, and the system's own software before the one that was added."""
    return adapter.is_software, adapter.backend.endswith("opengl"), "swiftshader" in adapter.name.lower()


def _is_installed(stack: str) -> bool:
    return importlib.util.find_spec(_MODULES[stack]) is not None
