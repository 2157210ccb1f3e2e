"""The words of the errors of the runtime, with adapters and drivers that are made up: those of a machine would not be the same twice."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from qgen.errors import InternalError, QgenError
from qgen.runtime import open_device, opening
from qgen.runtime.device import Adapter, Device
from qgen.runtime.images import build_images
from qgen.runtime.limits import Needs, choose_limits
from qgen.runtime.session import Session
from qgen.sidecar.plan import plan_dispatch
from tests.goldens import Goldens
from tests.sidecar.handmade import TIMES, times_three

PLAN = plan_dispatch(times_three(), {"x": (5,)})

# As wgpu-py spells them, and with room for 16 bytes in a binding, so that a small kernel is too large.
OFFERED = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffers-per-shader-stage": 12,
    "max-uniform-buffer-binding-size": 65536,
    "min-uniform-buffer-offset-alignment": 256,
    "min-storage-buffer-offset-alignment": 32,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-invocations-per-workgroup": 1024,
    "max-compute-workgroup-size-x": 1024,
    "max-compute-workgroup-size-y": 1024,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroups-per-dimension": 65535,
    "max-storage-buffer-binding-size": 16,
    "max-buffer-size": 1 << 28,
}


class GPUError(Exception):
    pass


class GPUOutOfMemoryError(GPUError):
    pass


def _fail(error: Exception) -> Callable[..., NoReturn]:
    def call(*_arguments: object, **_options: object) -> NoReturn:
        raise error

    return call


MODULE = SimpleNamespace(
    GPUError=GPUError,
    GPUOutOfMemoryError=GPUOutOfMemoryError,
    BufferUsage=SimpleNamespace(STORAGE=1, COPY_SRC=2, COPY_DST=4, UNIFORM=8, MAP_READ=16),
)


def _device(native: object = None, **adapter: object) -> Device:
    """Return a device of an adapter that has `OFFERED` and opens `native`."""
    handle = SimpleNamespace(features=[], limits=OFFERED, request_device_sync=lambda **_: native)
    handle.__dict__.update(adapter)
    return Device(Adapter("wgpu", MODULE, lambda: handle, "Example adapter", "wgpu:vulkan", is_software=False))


def _scripted() -> Device:
    executor = SimpleNamespace(limits={}, is_lost=False)
    return Device(Adapter("node", None, lambda: None, "Example adapter", "node:webgpu", is_software=False, connect=lambda _: executor))


def _run(device: Device, inputs: Mapping[str, bytes] | None = None, wgsl: str = TIMES, **requires: object) -> object:
    sidecar = times_three()
    sidecar["requires"] |= requires
    return device.run(wgsl, sidecar, PLAN, {"x": bytes(20)} if inputs is None else inputs)


def _session(error: Exception) -> Session:
    return Session(MODULE, SimpleNamespace(create_buffer_with_data=_fail(error)), {}, "Example adapter")


def _execute(error: Exception) -> object:
    images = build_images(PLAN, {"x": "input", "y": "output", "params": "uniform"}, {"x": bytes(20)}, canaries=True)
    return _session(error).execute(TIMES, PLAN, images, ["y"])


def _open_without(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> object:
    monkeypatch.setattr(opening, name, value)
    opening._open.cache_clear()
    return open_device("dawn:swiftshader")


def _open_uninstalled(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    opening._open.cache_clear()
    return open_device("dawn:swiftshader")


ERRORS: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "QG610": lambda patch: _open_without(patch, "_adapters", lambda _stack: ()),
    "QG611": _open_uninstalled,
    "QG612": lambda _: _run(_device()),
    "QG613": lambda _: _run(_device(), features=["shader-f16"]),
    "QG614": lambda _: open_device("cuda:0"),
    "QG615": lambda _: Device(
        Adapter("wgpu", MODULE, lambda: None, "Example adapter", "wgpu:vulkan", is_software=True), bounds_checks=False
    ),
    "QG616": lambda _: _run(_device(), wgsl="// nothing"),
    "QG617": lambda _: _run(_device(limits=OFFERED | {"max-storage-buffer-binding-size": 1 << 27}), {"x": bytes(17)}),
    "QG618": lambda _: _execute(GPUOutOfMemoryError("Not enough memory left")),
    "QG619": lambda _: _execute(GPUError("Parent device is lost")),
    "QG621": lambda _: _scripted().time([], 1),
    "QG620": lambda _: _device(request_device_sync=_fail(RuntimeError("Request device failed"))),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QgenError) as caught:
        ERRORS[code](monkeypatch)
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")


def test_what_no_driver_should_say_is_not_taken_for_a_lost_device() -> None:
    with pytest.raises(InternalError, match="refuses the kernel: `lost` is not declared"):
        _execute(GPUError("`lost` is not declared"))


def test_a_device_asks_for_the_default_limits_and_the_adapters_sizes() -> None:
    chosen = choose_limits(Needs((), ()), OFFERED, "Example adapter")
    assert chosen["maxComputeInvocationsPerWorkgroup"] == 256
    assert chosen["minStorageBufferOffsetAlignment"] == 256
    assert chosen["maxStorageBufferBindingSize"] == 16
    assert chosen["maxBufferSize"] == 1 << 28


def test_an_adapter_below_the_defaults_gives_what_it_has() -> None:
    chosen = choose_limits(Needs((), ()), OFFERED | {"max-bind-groups": 2, "min-uniform-buffer-offset-alignment": 512}, "Example adapter")
    assert (chosen["maxBindGroups"], chosen["minUniformBufferOffsetAlignment"]) == (2, 512)


def test_needs_beyond_the_default_are_met_or_named() -> None:
    needs = Needs((), (("maxComputeWorkgroupSizeX", 512),))
    assert choose_limits(needs, OFFERED, "Example adapter")["maxComputeWorkgroupSizeX"] == 512
    with pytest.raises(QgenError, match="needs maxTextures 5, and `Example adapter` has None") as caught:
        choose_limits(Needs((), (("maxTextures", 5),)), OFFERED, "Example adapter")
    assert caught.value.code == "QG613"
