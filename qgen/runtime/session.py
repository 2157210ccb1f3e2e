"""One native device: its pipelines, kept while they are in use, and the run of one plan in a single submission."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.runtime.images import Image
from qgen.sidecar.plan import DispatchPlan, PassPlan

_PIPELINES: Final = 64
"""How many pipelines are kept: a kernel is run for a few shapes in a row, and drivers hold megabytes a pipeline."""


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
        try:
            return self._execute(wgsl, plan, images, list(read))
        except self._module.GPUOutOfMemoryError as error:
            raise QgenError("QG618", f"`{self._adapter}` ran out of memory: {error}", hint="run a smaller tensor, or on `cpu`") from error
        except (self._module.GPUError, RuntimeError) as error:
            if not re.search(r"device\]? is lost", str(error), re.IGNORECASE):
                raise InternalError(f"`{self._adapter}` refuses the kernel: {error}\n{wgsl}") from error
            self.is_lost = True
            raise UnavailableError("QG619", f"`{self._adapter}` was lost: {error}", hint="run it again, or on another device") from error

    def _execute(self, wgsl: str, plan: DispatchPlan, images: Mapping[str, Image], read: list[str]) -> dict[str, bytes]:
        usage = self._module.BufferUsage
        storage, uniform = usage.STORAGE | usage.COPY_SRC, usage.UNIFORM
        buffers = {
            name: self._native.create_buffer_with_data(data=image.data, usage=uniform if name in plan.uniforms else storage)
            for name, image in images.items()
        }
        encoder = self._native.create_command_encoder()
        for step in plan.passes:
            self._encode(encoder, wgsl, step, images, buffers)
        sizes = {name: buffers[name].size for name in read}
        staging = self._native.create_buffer(size=sum(sizes.values()), usage=usage.MAP_READ | usage.COPY_DST)
        start = 0
        for name, nbytes in sizes.items():
            encoder.copy_buffer_to_buffer(buffers[name], 0, staging, start, nbytes)
            start += nbytes
        self._native.queue.submit([encoder.finish()])
        staging.map_sync(self._module.MapMode.READ)
        mapped = bytes(staging.read_mapped(copy=False))
        staging.unmap()
        for buffer in (*buffers.values(), staging):
            buffer.destroy()
        found, start = {}, 0
        for name, nbytes in sizes.items():
            found[name] = mapped[start : start + nbytes]
            start += nbytes
        return found

    def _encode(self, encoder: Any, wgsl: str, step: PassPlan, images: Mapping[str, Image], buffers: Mapping[str, Any]) -> None:  # noqa: ANN401 - the API has no types
        key = tuple((bound.group, bound.binding, _binding_type(bound.address_space, bound.access)) for bound in step.bindings)
        groups, layout = self._layout(key)
        pipeline = self._pipeline(wgsl, step.entry_point, key, layout)
        work = encoder.begin_compute_pass()
        work.set_pipeline(pipeline)
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
            work.set_bind_group(group, self._native.create_bind_group(layout=group_layout, entries=entries))
        work.dispatch_workgroups(*step.dispatch)
        work.end()

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
