"""One native device: its pipelines, kept while they are in use, and the run of one plan in a single submission."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.runtime.images import Image
from qgen.sidecar.plan import DispatchPlan, PassPlan

_PIPELINES: Final = 64
"""How many pipelines are kept: a kernel is run for a few shapes in a row, and drivers hold megabytes a pipeline."""

_QUERY_BYTES: Final = 16
"""Two timestamps of 64 bits."""

_LEAST_TICKS: Final = 1_000_000
"""A millisecond where a tick is a nanosecond, as WebGPU has it: many times what a clock may be coarsened to."""

_MOST_REPEATS: Final = 256


@dataclass(frozen=True, slots=True)
class Step:
    """One pass, ready to be encoded: its pipeline, a bind group for each group number, and workgroups in three dimensions."""

    pipeline: Any
    bind_groups: tuple[Any, ...]
    dispatch: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel on a device: its buffers by name, and its passes."""

    buffers: Mapping[str, Any]
    steps: tuple[Step, ...]

    def encode(self, encoder: Any, queries: Any = None, repeats: int = 1) -> None:  # noqa: ANN401 - the API has no types
        """Encode all passes, `repeats` times; a query set of two has the timestamps of the beginning and of the end."""
        steps = self.steps * repeats
        for number, step in enumerate(steps):
            writes = {"beginning_of_pass_write_index": 0} if number == 0 else {}
            writes |= {"end_of_pass_write_index": 1} if number == len(steps) - 1 else {}
            timed = {"timestamp_writes": {"query_set": queries, **writes}} if queries is not None and writes else {}
            work = encoder.begin_compute_pass(**timed)
            work.set_pipeline(step.pipeline)
            for group, bound in enumerate(step.bind_groups):
                work.set_bind_group(group, bound)
            work.dispatch_workgroups(*step.dispatch)
            work.end()

    def destroy(self) -> None:
        """Give the buffers back."""
        for buffer in self.buffers.values():
            buffer.destroy()


class Session:
    """A native device with the limits it was opened with (WebGPU's spelling)."""

    def __init__(self, module: Any, native: Any, limits: Mapping[str, int], adapter: str) -> None:  # noqa: ANN401 - the API has no types
        """Take over `native`, a device of the Python API `module`."""
        self.limits = limits
        self.is_lost = False
        self._module = module
        self._native = native
        self._adapter = adapter
        self._layouts: dict[tuple[tuple[int, int, str], ...], tuple[list[Any], Any]] = {}
        self._pipelines: OrderedDict[tuple[str, str, tuple[tuple[int, int, str], ...]], Any] = OrderedDict()

    def execute(self, wgsl: str, plan: DispatchPlan, images: Mapping[str, Image], read: Iterable[str]) -> dict[str, bytes]:
        """Return the whole of each buffer in `read` after all passes of `plan` ran on buffers that start as `images`."""
        with self._translated(wgsl):
            loaded = self.load(wgsl, plan, images)
            encoder = self._native.create_command_encoder()
            loaded.encode(encoder)
            sizes = {name: loaded.buffers[name].size for name in read}
            usage = self._module.BufferUsage
            staging = self._native.create_buffer(size=sum(sizes.values()), usage=usage.MAP_READ | usage.COPY_DST)
            start = 0
            for name, nbytes in sizes.items():
                encoder.copy_buffer_to_buffer(loaded.buffers[name], 0, staging, start, nbytes)
                start += nbytes
            mapped = self._submit(encoder, staging)
            loaded.destroy()
            found, start = {}, 0
            for name, nbytes in sizes.items():
                found[name] = mapped[start : start + nbytes]
                start += nbytes
            return found

    def load(self, wgsl: str, plan: DispatchPlan, images: Mapping[str, Image]) -> Loaded:
        """Return the kernel, its buffers filled with `images`; the caller destroys it."""
        usage = self._module.BufferUsage
        storage, uniform = usage.STORAGE | usage.COPY_SRC, usage.UNIFORM
        buffers = {
            name: self._native.create_buffer_with_data(data=image.data, usage=uniform if name in plan.uniforms else storage)
            for name, image in images.items()
        }
        return Loaded(buffers, tuple(self._step(wgsl, step, images, buffers) for step in plan.passes))

    def time(self, loaded: Sequence[Loaded], rounds: int, done: Callable[[int], None]) -> list[list[int]]:
        """Return what each of `loaded` took in each round, in ticks of the device, after a round that does not count.

        Kernels take turns within a round, each round beginning with another one; `done` is called with the rounds that are over. What is
        shorter than a clock tells is repeated, each as often as the others, and the ticks are those of all repetitions. The device has the
        feature `timestamp-query`.
        """
        usage = self._module.BufferUsage
        queries = self._native.create_query_set(type="timestamp", count=2)
        resolved = self._native.create_buffer(size=_QUERY_BYTES, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        staging = self._native.create_buffer(size=_QUERY_BYTES, usage=usage.MAP_READ | usage.COPY_DST)
        ticks: list[list[int]] = [[] for _ in loaded]

        def measure(number: int, repeats: int) -> int:
            encoder = self._native.create_command_encoder()
            loaded[number].encode(encoder, queries, repeats)
            encoder.resolve_query_set(queries, 0, 2, resolved, 0)
            encoder.copy_buffer_to_buffer(resolved, 0, staging, 0, _QUERY_BYTES)
            begin, end = memoryview(self._submit(encoder, staging, keep=True)).cast("Q")
            return int(end - begin)

        with self._translated():
            for number in range(len(loaded)):
                measure(number, 1)
            repeats = min(_MOST_REPEATS, -(-_LEAST_TICKS // max(1, measure(0, 1)))) if loaded else 0
            for turn in range(rounds):
                for place in range(len(loaded)):
                    number = (turn + place) % len(loaded)
                    ticks[number].append(measure(number, repeats))
                done(turn + 1)
        for buffer in (resolved, staging):
            buffer.destroy()
        return ticks

    @contextmanager
    def _translated(self, wgsl: str = "") -> Iterator[None]:
        """Raise what the device raises as errors of qgen's."""
        try:
            yield
        except self._module.GPUOutOfMemoryError as error:
            raise QgenError("QG618", f"`{self._adapter}` ran out of memory: {error}", hint="run a smaller tensor, or on `cpu`") from error
        except (self._module.GPUError, RuntimeError) as error:
            if not re.search(r"device\]? is lost", str(error), re.IGNORECASE):
                raise InternalError(f"`{self._adapter}` refuses the kernel: {error}\n{wgsl}") from error
            self.is_lost = True
            raise UnavailableError("QG619", f"`{self._adapter}` was lost: {error}", hint="run it again, or on another device") from error

    def _submit(self, encoder: Any, staging: Any, *, keep: bool = False) -> bytes:  # noqa: ANN401 - the API has no types
        """Run what is encoded and return what `staging` has then, which is destroyed unless it is to be kept."""
        self._native.queue.submit([encoder.finish()])
        staging.map_sync(self._module.MapMode.READ)
        mapped = bytes(staging.read_mapped(copy=False))
        staging.unmap()
        if not keep:
            staging.destroy()
        return mapped

    def _step(self, wgsl: str, step: PassPlan, images: Mapping[str, Image], buffers: Mapping[str, Any]) -> Step:
        key = tuple((bound.group, bound.binding, _binding_type(bound.address_space, bound.access)) for bound in step.bindings)
        groups, layout = self._layout(key)
        pipeline = self._pipeline(wgsl, step.entry_point, key, layout)
        bind_groups = []
        for group, group_layout in enumerate(groups):
            entries = [
                {
                    "binding": bound.binding,
                    "resource": {
                        "buffer": buffers[bound.buffer],
                        "offset": images[bound.buffer].offset,
                        "size": len(images[bound.buffer].content),
                    },
                }
                for bound in step.bindings
                if bound.group == group
            ]
            bind_groups.append(self._native.create_bind_group(layout=group_layout, entries=entries))
        return Step(pipeline, tuple(bind_groups), step.dispatch)

    def _layout(self, key: tuple[tuple[int, int, str], ...]) -> tuple[list[Any], Any]:
        """Return the layouts of the bind groups and of the pipeline: those the sidecar states, so that a wrong one is refused."""
        if key not in self._layouts:
            visibility = self._module.ShaderStage.COMPUTE
            groups = [
                self._native.create_bind_group_layout(
                    entries=[
                        {"binding": binding, "visibility": visibility, "buffer": {"type": kind}} for at, binding, kind in key if at == group
                    ]
                )
                for group in range(max(at for at, _, _ in key) + 1)
            ]
            self._layouts[key] = groups, self._native.create_pipeline_layout(bind_group_layouts=groups)
        return self._layouts[key]

    def _pipeline(self, wgsl: str, entry_point: str, key: tuple[tuple[int, int, str], ...], layout: Any) -> Any:  # noqa: ANN401 - the API has no types
        slot = (wgsl, entry_point, key)
        if slot in self._pipelines:
            self._pipelines.move_to_end(slot)
            return self._pipelines[slot]
        module = self._native.create_shader_module(code=wgsl)
        pipeline = self._native.create_compute_pipeline(layout=layout, compute={"module": module, "entry_point": entry_point})
        self._pipelines[slot] = pipeline
        if len(self._pipelines) > _PIPELINES:
            self._pipelines.popitem(last=False)
        return pipeline


def _binding_type(address_space: str, access: str) -> str:
    """Return the WebGPU name of a buffer's binding type."""
    if address_space == "uniform":
        return "uniform"
    return "read-only-storage" if access == "read" else "storage"
