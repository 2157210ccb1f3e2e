"""A device that times: what each arm takes, by timestamps around its passes, in interleaved rounds.

The arms of one case (kernels, copies, the twin) share the buffers of the tensors. In each round every arm runs once, one after the other,
beginning with another one each time; ratios are then taken within rounds, because a machine that others use too changes its speed.

Of a software adapter, the process's time on processors is taken as well: it computes there, and waiting for others does not count.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.errors import UnavailableError
from qgen.kernel import Kernel
from qgen.runtime import open_device
from qgen.runtime.limits import Needs, check_features, choose_limits
from qgen.sidecar.plan import DispatchPlan
from tests.bench.copies import COPIES, VECTOR_BYTES, Mover, make_copy

_QUERIES: Final = 16
"""Timestamps for one arm: two for each of its passes."""
_NS_PER_MS: Final = 1e6
_WARM: Final = 2
"""Rounds that are run before those that count."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Step:
    """One dispatch, ready to be encoded."""

    pipeline: Any
    groups: Mapping[int, Any]
    dispatch: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Arm:
    """What is timed as one: dispatches, one after the other, and what its driver took to compile them (ms of the process's time)."""

    steps: tuple[_Step, ...]
    compile_ms: float

    def __add__(self, other: Arm) -> Arm:
        """Return the arm that does both."""
        return Arm((*self.steps, *other.steps), self.compile_ms + other.compile_ms)


@dataclass(frozen=True, slots=True)
class Times:
    """What each arm took in each round, in milliseconds: by timestamps, and of the process's time on processors."""

    stamps: dict[str, list[float]]
    processor: dict[str, list[float]]


class TimingDevice:
    """An adapter of `wgpu` or Dawn, opened so that it takes timestamps."""

    def __init__(self, selector: str) -> None:
        """Open the adapter that `selector` names. Raises `UnavailableError` QG610 to QG620 where there is none, or it takes none."""
        device = open_device(selector)
        adapter = device._adapter
        if adapter.connect is not None:
            raise UnavailableError("QG611", f"`{selector}` has no Python API", hint="name an adapter of wgpu or Dawn")
        self.name, self.backend, self.is_software = device.name, device.backend, adapter.is_software
        handle, needs = adapter.take(), Needs(("timestamp-query",), ())
        check_features(needs, set(handle.features), self.name)
        limits = choose_limits(needs, handle.limits, self.name)
        self.binding_limit = min(limits["maxStorageBufferBindingSize"], limits["maxBufferSize"])
        wanted = {"required_features": list(needs.features), "required_limits": limits}
        self._module = adapter.module
        if adapter.stack == "dawn":  # which rounds timestamps, as a browser has to
            extras = importlib.import_module("wgpudawn.backends.dawn.extras")
            self._native = extras.request_device_sync(handle, **wanted, disable_toggles=["timestamp_quantization"])
        else:
            self._native = handle.request_device_sync(**wanted)
        usage = self._module.BufferUsage
        self._queries = self._native.create_query_set(type="timestamp", count=_QUERIES)
        self._resolved = self._native.create_buffer(size=8 * _QUERIES, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        # A device starts threads and compiles its own shaders with what it runs first.
        self.make_mover(make_copy(1, *COPIES[0], None), self.make_buffer(1), self.make_buffer(1))

    def make_buffer(self, nbytes: int, data: bytes | None = None) -> Any:  # noqa: ANN401 - the API has no types
        """Return a storage buffer of `nbytes`, up to whole vectors, that begins with `data` and is zero beyond."""
        usage = self._module.BufferUsage
        size = -(-nbytes // VECTOR_BYTES) * VECTOR_BYTES
        buffer = self._native.create_buffer(size=size, usage=usage.STORAGE | usage.COPY_SRC | usage.COPY_DST)
        if data:
            self._native.queue.write_buffer(buffer, 0, data)
        return buffer

    def destroy(self, buffers: Iterable[Any]) -> None:
        """Give back the memory of `buffers`."""
        for buffer in buffers:
            buffer.destroy()

    def clear(self, buffer: Any) -> None:  # noqa: ANN401 - the API has no types
        """Set a buffer to zero."""
        encoder = self._native.create_command_encoder()
        encoder.clear_buffer(buffer)
        self._native.queue.submit([encoder.finish()])

    def read(self, buffer: Any, nbytes: int) -> bytes:  # noqa: ANN401 - the API has no types
        """Return the first `nbytes` of a buffer."""
        return bytes(self._native.queue.read_buffer(buffer, 0, nbytes))

    def make_kernel(self, kernel: Kernel, plan: DispatchPlan, buffers: Mapping[str, Any]) -> Arm:
        """Return the arm of a kernel; `buffers` has its inputs and outputs by the names of its sidecar."""
        own = dict(buffers)
        for name, data in plan.uniforms.items():
            own[name] = self._native.create_buffer_with_data(data=data, usage=self._module.BufferUsage.UNIFORM)
        for name, nbytes in plan.sizes.items():
            if name not in own:
                own[name] = self.make_buffer(nbytes)
        bindings = [
            {(bound.group, bound.binding): (own[bound.buffer], plan.sizes[bound.buffer]) for bound in step.bindings} for step in plan.passes
        ]
        texts = [(step.entry_point, bound, step.dispatch) for step, bound in zip(plan.passes, bindings, strict=True)]
        return self._make(kernel.wgsl, texts)

    def make_mover(self, mover: Mover, source: Any, into: Any) -> Arm:  # noqa: ANN401 - the API has no types
        """Return the arm of a copy from one buffer into another."""
        bindings = {(0, 0): (source, source.size), (0, 1): (into, into.size)}
        return self._make(mover.wgsl, [("main", bindings, mover.dispatch)])

    def _make(self, wgsl: str, passes: Sequence[tuple[str, Mapping[tuple[int, int], tuple[Any, int]], tuple[int, int, int]]]) -> Arm:
        start = time.process_time()
        module = self._native.create_shader_module(code=wgsl)
        steps = tuple(self._step(module, entry_point, bindings, dispatch) for entry_point, bindings, dispatch in passes)
        one = Arm(tuple(_Step(step.pipeline, step.groups, (1, 1, 1)) for step in steps), 0.0)
        self.run(one)
        cold = time.process_time()
        self.run(one)
        warm = time.process_time()
        return Arm(steps, 1000 * ((cold - start) - (warm - cold)))

    def _step(
        self,
        module: Any,  # noqa: ANN401 - the API has no types
        entry_point: str,
        bindings: Mapping[tuple[int, int], tuple[Any, int]],
        dispatch: tuple[int, int, int],
    ) -> _Step:
        pipeline = self._native.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": entry_point})
        groups = {}
        for group in {at for at, _ in bindings}:
            entries = [
                {"binding": number, "resource": {"buffer": buffer, "offset": 0, "size": size}}
                for (at, number), (buffer, size) in bindings.items()
                if at == group
            ]
            groups[group] = self._native.create_bind_group(layout=pipeline.get_bind_group_layout(group), entries=entries)
        return _Step(pipeline, groups, dispatch)

    def run(self, arm: Arm) -> float:
        """Run an arm, wait for it, and return what its passes took, in milliseconds."""
        encoder = self._native.create_command_encoder()
        for index, step in enumerate(arm.steps):
            writes = {
                "query_set": self._queries,
                "beginning_of_pass_write_index": 2 * index,
                "end_of_pass_write_index": 2 * index + 1,
            }
            work = encoder.begin_compute_pass(timestamp_writes=writes)
            work.set_pipeline(step.pipeline)
            for group, bound in step.groups.items():
                work.set_bind_group(group, bound)
            work.dispatch_workgroups(*step.dispatch)
            work.end()
        count = 2 * len(arm.steps)
        encoder.resolve_query_set(self._queries, 0, count, self._resolved, 0)
        self._native.queue.submit([encoder.finish()])
        stamps = np.frombuffer(self._native.queue.read_buffer(self._resolved, 0, 8 * count), np.uint64).astype(np.int64)
        return float((stamps[1::2] - stamps[::2]).sum()) / _NS_PER_MS

    def time(self, arms: Mapping[str, Arm], rounds: int) -> Times:
        """Return what each arm takes in each round."""
        names = list(arms)
        for _ in range(_WARM):
            for name in names:
                self.run(arms[name])
        stamps: dict[str, list[float]] = {name: [] for name in names}
        processor: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds):
            start = number % len(names)
            for name in (*names[start:], *names[:start]):
                before = time.process_time()
                stamps[name].append(self.run(arms[name]))
                processor[name].append(1000 * (time.process_time() - before))
        return Times(stamps, processor)
