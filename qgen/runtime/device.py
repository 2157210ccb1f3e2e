"""A device: runs a kernel as its sidecar says, with buffers of exactly the planned sizes."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from qgen.errors import QgenError, UnavailableError
from qgen.runtime.images import Image, build_images, read_image
from qgen.runtime.limits import Needs, check_features, check_fits, choose_limits, read_needs, split_plan
from qgen.runtime.session import Session
from qgen.sidecar.plan import DispatchPlan


class Executor(Protocol):
    """A native device with the limits it was opened with (WebGPU's spelling), as `Session` is one."""

    limits: Mapping[str, int]
    is_lost: bool

    def execute(self, wgsl: str, plan: DispatchPlan, images: Mapping[str, Image], read: Iterable[str]) -> dict[str, bytes]:
        """Return the whole of each buffer in `read` after all passes of `plan` ran on buffers that start as `images`."""
        ...


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter of one stack: `module` is the Python API, `take` gives the adapter in it, a new one for each device as WebGPU wants it."""

    stack: str
    module: Any
    take: Callable[[], Any]
    name: str
    backend: str
    is_software: bool
    connect: Callable[[Needs], Executor] | None = None
    """What opens a device where that is not the Python API."""


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One kernel to be timed: its text and sidecar, a plan that dispatches something, and the words of each input that is bound."""

    wgsl: str
    sidecar: Mapping[str, Any]
    plan: DispatchPlan
    inputs: Mapping[str, bytes]


class Device:
    """Runs kernels on one adapter."""

    def __init__(self, adapter: Adapter, *, bounds_checks: bool = True) -> None:
        """Open the adapter with WebGPU's default limits; a kernel that needs more gets a session of its own when it runs."""
        if not bounds_checks and adapter.stack != "dawn":
            raise UnavailableError("QG615", f"`{adapter.name}` always checks bounds", hint="only `dawn:` runs without these checks")
        self._adapter = adapter
        self._bounds_checks = bounds_checks
        self._sessions: dict[Needs, Executor] = {}
        self._session(Needs((), ()))

    @property
    def name(self) -> str:
        """The adapter's name, as its driver gives it."""
        return self._adapter.name

    @property
    def backend(self) -> str:
        """The stack and the graphics API behind it, such as `wgpu:vulkan`."""
        return self._adapter.backend

    @property
    def is_lost(self) -> bool:
        """Whether the driver gave up on this device; `open_device` then opens another."""
        return any(session.is_lost for session in self._sessions.values())

    def run(
        self, wgsl: str, sidecar: Mapping[str, Any], plan: DispatchPlan, inputs: Mapping[str, bytes], *, canaries: bool = False
    ) -> dict[str, bytes]:
        """Return the words of each output after running `wgsl`, as bytes of the planned sizes.

        A tensor larger than the adapter binds is computed in several runs where the sidecar says how. `inputs` are the words of each input
        that is bound. With `canaries` each storage buffer lies between canaries, which are checked afterwards, and so are the contents of
        the inputs. Raises `QgenError`: QG612 for a kernel too large for the adapter, QG613 for a
        feature or limit that it lacks, QG616 for a text that is not the sidecar's, QG617 for inputs that do not fit the plan, QG618 and
        QG619 when the device runs out of memory or is lost; `InternalError` for a kernel that the stack refuses or that writes where it
        may not.
        """
        roles = {buffer["name"]: buffer["role"] for buffer in sidecar["buffers"]}
        outputs = [name for name, role in roles.items() if role == "output"]
        _check_text(wgsl, sidecar)
        session = self._session(read_needs(sidecar["requires"]))
        runs = split_plan(plan, sidecar, session.limits)
        for run in runs:
            check_fits(run.plan, session.limits, self.name, is_baked=bool(sidecar.get("shape")))
        _check_inputs(plan, roles, inputs)
        if plan.is_empty:
            return dict.fromkeys(outputs, b"")
        found = {name: bytearray(plan.sizes[name]) for name in outputs}
        for run in runs:
            part = {name: data[run.offsets[name] : run.offsets[name] + run.plan.sizes[name]] for name, data in inputs.items()}
            images = build_images(run.plan, roles, part, canaries=canaries)
            read = [image.name for image in images.values() if image.role == "output" or image.has_canaries]
            after = session.execute(wgsl, run.plan, images, read)
            contents = {name: read_image(images[name], after[name]) for name in read}
            for name in outputs:
                found[name][run.offsets[name] : run.offsets[name] + run.plan.sizes[name]] = contents[name]
        return {name: bytes(content) for name, content in found.items()}

    def time(self, runs: Sequence[TimedRun], rounds: int, done: Callable[[int], None] = lambda _: None) -> list[list[int]]:
        """Return what each run took in each of `rounds` rounds, in ticks of the device's clock: runs take turns, so that ratios hold.

        `done` is called with the number of rounds that are over. Raises `UnavailableError` QG613 where the adapter has no timestamps,
        QG621 where it is one in JavaScript, and otherwise as `run` does.
        """
        session = self._session(Needs(("timestamp-query",), ()))
        if not isinstance(session, Session):
            message = f"`{self.name}` is driven from JavaScript, where qgen takes no times"
            raise UnavailableError("QG621", message, hint="take an adapter of `wgpu:` or `dawn:`")
        loaded = []
        for run in runs:
            roles = {buffer["name"]: buffer["role"] for buffer in run.sidecar["buffers"]}
            check_fits(run.plan, session.limits, self.name, is_baked=bool(run.sidecar.get("shape")))
            _check_inputs(run.plan, roles, run.inputs)
            loaded.append(session.load(run.wgsl, run.plan, build_images(run.plan, roles, run.inputs, canaries=False)))
        ticks = session.time(loaded, rounds, done)
        for kernel in loaded:
            kernel.destroy()
        return ticks

    def _session(self, needs: Needs) -> Executor:
        if needs not in self._sessions:
            self._sessions[needs] = self._open(needs)
        return self._sessions[needs]

    def _open(self, needs: Needs) -> Executor:
        if self._adapter.connect is not None:
            return self._adapter.connect(needs)
        handle, module = self._adapter.take(), self._adapter.module
        offered = set(handle.features)
        # wgpu-native spells one feature in its own way, and takes WebGPU's name for it all the same.
        offered |= {"subgroups"} if "subgroup" in offered else set()
        check_features(needs, offered, self.name)
        limits = choose_limits(needs, handle.limits, self.name)
        wanted = {"required_features": list(needs.features), "required_limits": limits}
        try:
            if self._bounds_checks:
                native = handle.request_device_sync(**wanted)
            else:
                extras = importlib.import_module("wgpudawn.backends.dawn.extras")
                native = extras.request_device_sync(handle, **wanted, enable_toggles=["disable_robustness"])
        except RuntimeError as error:
            raise UnavailableError("QG620", f"`{self.name}` opens no device: {error}", hint="name another adapter, or `cpu`") from error
        return Session(module, native, limits, self.name)


def _check_text(wgsl: str, sidecar: Mapping[str, Any]) -> None:
    digest = hashlib.sha256(wgsl.encode()).hexdigest()
    for step in sidecar["passes"]:
        if step["wgsl"]["sha256"] != digest:
            raise QgenError(
                "QG616",
                f"the text is not the one that the sidecar of `{sidecar['name']}` describes",
                hint="keep the two files of a kernel together",
            )


def _check_inputs(plan: DispatchPlan, roles: Mapping[str, str], inputs: Mapping[str, bytes]) -> None:
    for name, role in roles.items():
        if role == "input" and name not in inputs:
            raise QgenError("QG617", f"the input `{name}` is missing", hint="give each input of the sidecar")
        if role == "input" and len(inputs[name]) != plan.sizes[name]:
            raise QgenError(
                "QG617",
                f"the input `{name}` has {len(inputs[name])} bytes instead of {plan.sizes[name]}",
                hint="a buffer holds whole u32 words",
            )
