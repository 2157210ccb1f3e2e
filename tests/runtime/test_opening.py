"""How a device is found by its name, and what is said where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qgen.errors import QgenError, UnavailableError
from qgen.runtime import DeviceInfo, list_devices, open_device, opening
from tests.runtime.stacks import LAVAPIPE, OPENGL, STACKS, SWIFTSHADER, open_stack


@pytest.mark.parametrize("selector", STACKS)
def test_a_device_is_opened_once(selector: str) -> None:
    assert open_stack(selector) is open_stack(selector)
    assert open_device(f" {selector.upper()} ") is open_stack(selector)


def test_the_parts_of_a_selector() -> None:
    assert open_device("llvmpipe").backend == "wgpu:vulkan"
    assert open_device("dawn:gpu") is not open_device("wgpu:gpu")
    assert (open_stack(LAVAPIPE).backend, open_stack(OPENGL).backend) == ("wgpu:vulkan", "wgpu:opengl")
    assert open_stack(SWIFTSHADER).backend == "dawn:vulkan"
    assert open_device("gpu").backend.startswith("wgpu:")


def test_the_devices_are_listed() -> None:
    devices = list_devices()
    found = {(device.backend, device.is_software) for device in devices if "llvmpipe" in device.name or "SwiftShader" in device.name}
    assert found == {("wgpu:vulkan", True), ("wgpu:opengl", True), ("dawn:vulkan", True)}
    assert all(isinstance(device, DeviceInfo) for device in devices)
    assert devices[0].name == open_device("gpu").name


@pytest.mark.parametrize("selector", ["nothing-like-it", "wgpu:nothing-like-it", "dawn:nothing-like-it", "dawn:opengl", "dawn:", "", ":"])
def test_an_adapter_that_is_absent_is_unavailable_or_no_selector(selector: str) -> None:
    with pytest.raises(QgenError) as caught:
        open_device(selector)
    if selector == ":":
        assert caught.value.code == "QG614"
    else:
        assert isinstance(caught.value, UnavailableError)
        assert caught.value.code == "QG610"
        assert "mesa-vulkan-drivers" in caught.value.hint


@pytest.mark.parametrize("selector", ["cuda:0", "wgpu:dawn:swiftshader"])
def test_a_stack_that_is_none_is_refused(selector: str) -> None:
    with pytest.raises(QgenError) as caught:
        open_device(selector)
    assert caught.value.code == "QG614"
    assert not isinstance(caught.value, UnavailableError)


def test_wgpu_always_checks_bounds() -> None:
    with pytest.raises(UnavailableError) as caught:
        open_device(LAVAPIPE, bounds_checks=False)
    assert caught.value.code == "QG615"


def test_the_environment_is_as_it_was() -> None:
    before = dict(os.environ)
    opening._adapters.cache_clear()
    opening._open.cache_clear()
    for selector in STACKS:
        open_stack(selector)
    assert dict(os.environ) == before


def _python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_no_stack_is_loaded_before_a_device_is_asked_for() -> None:
    done = _python("import sys, qgen.runtime; print(sorted({name.split('.')[0] for name in sys.modules} & {'wgpu', 'wgpudawn', 'cffi'}))")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_opening_prints_nothing() -> None:
    done = _python(
        "from qgen.runtime import open_device; print(open_device('wgpu:llvmpipe').backend, open_device('dawn:swiftshader').backend)"
    )
    assert (done.stdout, done.stderr) == ("wgpu:vulkan dawn:vulkan\n", "")


def test_the_user_has_the_say_over_the_drivers() -> None:
    code = "from qgen.runtime import list_devices; print([device.backend for device in list_devices()])"
    done = _python(code, VK_DRIVER_FILES="none.json", __EGL_VENDOR_LIBRARY_FILENAMES="none.json")
    assert done.stdout == "[]\n", done.stderr
