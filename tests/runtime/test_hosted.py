"""The stacks that live in JavaScript as devices: what they need, what is said where it is missing, and how they are lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.runtime import Device, hosted, open_device, opening
from qgen.sidecar.plan import plan_dispatch
from tests.goldens import Goldens
from tests.runtime.stacks import run_times, words
from tests.sidecar.handmade import TIMES, times_three

HOSTS = ("node", "chromium")


@pytest.fixture
def fresh() -> Iterator[None]:
    """No device is kept from before the test, nor after it."""
    opening._open.cache_clear()
    yield
    opening._open.cache_clear()


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_is_a_device(host: str) -> None:
    device = open_device(host)
    assert device is open_device(f" {host.upper()} ")
    assert device.backend == f"{host}:webgpu"
    assert "swiftshader" in device.name.lower()
    assert np.array_equal(run_times(device, 1000), words(1000) * np.uint32(3))


@pytest.mark.parametrize("selector", [f"{host}:swiftshader" for host in HOSTS])
def test_a_part_of_the_adapters_name_may_follow(selector: str) -> None:
    assert np.array_equal(run_times(open_device(selector), 5), words(5) * np.uint32(3))


@pytest.mark.parametrize("host", HOSTS)
def test_another_adapter_is_unavailable(host: str) -> None:
    with pytest.raises(UnavailableError) as caught:
        open_device(f"{host}:nothing-like-it")
    assert caught.value.code == "QG610"


@pytest.mark.parametrize("host", HOSTS)
def test_needs_are_opened_or_named(host: str) -> None:
    device = open_device(host)
    sidecar = times_three()
    plan, inputs = plan_dispatch(sidecar, {"x": (5,)}), {"x": words(5).tobytes()}
    sidecar["requires"] |= {"limits": {"maxStorageBuffersPerShaderStage": 9}, "features": ["subgroups"]}
    assert np.array_equal(np.frombuffer(device.run(TIMES, sidecar, plan, inputs)["y"], "<u4"), words(5) * np.uint32(3))
    for requires in ({"features": ["no-such-feature"]}, {"limits": {"maxComputeInvocationsPerWorkgroup": 1 << 20}}):
        with pytest.raises(UnavailableError) as caught:
            device.run(TIMES, sidecar | {"requires": sidecar["requires"] | requires}, plan, inputs)
        assert caught.value.code == "QG613"


@pytest.mark.parametrize("host", HOSTS)
def test_a_refusal_leaves_the_device_usable(host: str) -> None:
    device = open_device(host)
    with pytest.raises(InternalError, match="refuses the kernel"):
        run_times(device, 5, TIMES.replace("let i", "lett i"))
    assert np.array_equal(run_times(device, 5), words(5) * np.uint32(3))


@pytest.mark.parametrize("host", HOSTS)
def test_a_process_that_ends_is_a_lost_device_and_another_is_opened(host: str, fresh: None) -> None:
    assert fresh is None
    device = open_device(host)
    for session in device._sessions.values():
        assert isinstance(session, hosted._Hosted)
        session._process.kill()
    with pytest.raises(UnavailableError, match="its process ended with status") as caught:
        run_times(device, 5)
    assert caught.value.code == "QG619"
    assert device.is_lost
    again = open_device(host)
    assert isinstance(again, Device)
    assert np.array_equal(run_times(again, 5), words(5) * np.uint32(3))


MISSING: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "node": ("node", lambda patch: patch.setattr(shutil, "which", lambda _name: None)),
    "package": ("node", lambda patch: patch.setattr(hosted, "find_package", lambda _name: None)),
    "browser": ("chromium", lambda patch: patch.setattr(shutil, "which", lambda name: "node" if name == "node" else None)),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_named(what: str, fresh: None, golden: Goldens, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fresh is None
    host, remove = MISSING[what]
    remove(monkeypatch)
    with pytest.raises(UnavailableError) as caught:
        open_device(host)
    assert caught.value.code == "QG611"
    golden.check(f"runtime/missing_{what}.err", f"{caught.value}\n")


def test_packages_are_found_from_the_working_folder_upward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "node_modules" / "example"
    package.mkdir(parents=True)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")
    assert hosted.find_package("example") is None
    (package / "package.json").write_text("{}", encoding="utf-8")
    assert hosted.find_package("example") == package.resolve()


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [("the device was lost", UnavailableError, "QG619"), ("Out of memory", QgenError, "QG618")],
)
def test_what_a_driver_says_is_told_apart(
    answer: str, kind: type[QgenError], code: str, fresh: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fresh is None
    device = open_device("node")
    monkeypatch.setattr(hosted._Hosted, "_ask", lambda _session, _request: {"error": answer})
    with pytest.raises(kind) as caught:
        run_times(device, 5)
    assert caught.value.code == code
