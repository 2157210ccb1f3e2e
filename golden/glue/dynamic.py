"""DynamicQuantizeLinear: the host's side of the kernel `dynamic`.

    x             input    float32
    x_max         scratch  uint32
    x_min         scratch  uint32
    y             output   uint8
    y_scale       output   float32
    y_zero_point  output   uint8

It runs on a device, buffers and a queue that are yours, and needs nothing but WebGPU:

    kernel = Kernel(device)
    plan = kernel.plan({"x": (...)})
    kernel.encode(compute_pass, {"x": x, "x_max": x_max, "x_min": x_min, "y": y, "y_scale": y_scale, "y_zero_point": y_zero_point}, plan)  # buffers of plan.sizes bytes with usage STORAGE

Or, for tensors in memory: kernel.run({"x": (data, shape), ...}).
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

NAME = "dynamic"
BITS = {"x": 32, "x_max": 32, "x_min": 32, "y": 8, "y_scale": 32, "y_zero_point": 8}
"""The tensors, and the bits of an element; the first has the lowest bits of the first u32 word."""
INPUTS = ("x",)
OUTPUTS = ("y", "y_scale", "y_zero_point")
PASSES: tuple[tuple[str, tuple[tuple[int, str, str], ...]], ...] = (
    (
        "clear",
        (
            (1, "x_max", "storage"),
            (2, "x_min", "storage"),
            (6, "params", "uniform"),
        ),
    ),
    (
        "reduce",
        (
            (0, "x", "read-only-storage"),
            (1, "x_max", "storage"),
            (2, "x_min", "storage"),
            (6, "params", "uniform"),
        ),
    ),
    (
        "finish",
        (
            (1, "x_max", "storage"),
            (2, "x_min", "storage"),
            (4, "y_scale", "storage"),
            (5, "y_zero_point", "storage"),
            (6, "params", "uniform"),
        ),
    ),
    (
        "main",
        (
            (0, "x", "read-only-storage"),
            (3, "y", "storage"),
            (4, "y_scale", "storage"),
            (5, "y_zero_point", "storage"),
            (6, "params", "uniform"),
        ),
    ),
)
"""The dispatches, one after the other: entry point, and number, buffer and type of each binding."""
GROUP = 1
ON_EMPTY = {"y_scale": 0x3F800000, "y_zero_point": 0x00000000}
"""The words of the outputs that have elements even where there is nothing to compute, and no run writes them."""

_MAP_READ, _COPY_SRC, _COPY_DST, _UNIFORM, _STORAGE = 1, 4, 8, 64, 128
_COMPUTE = 4


@dataclass(frozen=True)
class Run:
    """One part of the tensors: where it begins in each and how much of it is bound, in bytes; and the workgroups of each pass."""

    offsets: Mapping[str, int]
    sizes: Mapping[str, int]
    uniforms: Mapping[str, bytes]
    dispatches: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Plan:
    """Counts of elements and sizes in bytes of the tensors, and the runs that compute them; none where there is nothing to compute."""

    counts: Mapping[str, int]
    sizes: Mapping[str, int]
    runs: tuple[Run, ...]


def plan(shapes: Mapping[str, Sequence[int]], max_binding_size: int = 134217728) -> Plan:
    """Return the plan for tensors of these shapes, in several runs where one is larger than a binding may be.

    Raises ValueError for shapes that do not go together, and for tensors that are too large and cannot be parted.
    """
    max_binding_size = _whole(max_binding_size, "max_binding_size")
    extents = _read_shapes(shapes)
    counts, sizes = _measure(**extents)
    if any(sizes[name] == 0 for name in OUTPUTS):
        return Plan(counts, sizes, ())
    return Plan(counts, sizes, (_plan_run(extents, max_binding_size),))


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(f"{NAME}: {message}")


def _whole(number: int, what: str) -> int:
    """Return a whole number, be it one of numpy's, as an int."""
    try:
        return operator.index(number)
    except TypeError as error:
        raise ValueError(f"{NAME}: {what} is {number!r}, which is no whole number") from error


def _ceil_div(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def _read_shapes(given: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return what all else follows from."""
    shapes = {}
    for name in ("x",):
        _check(isinstance(given.get(name), Iterable), f"{name} has no shape")
        shape = tuple(_whole(dim, f"a dimension of {name}") for dim in given[name])
        _check(all(dim >= 0 for dim in shape), f"{name} has a negative dimension, {shape}")
        _check(prod(max(dim, 1) for dim in shape) <= 2**40, f"{name} is too large")
        shapes[name] = shape
    count = prod(shapes["x"])
    return {"count": count}


def _measure(count: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many elements and bytes each tensor has."""
    counts = {
        "x": count,
        "x_max": 1,
        "x_min": 1,
        "y": count,
        "y_scale": 1,
        "y_zero_point": 1,
    }
    sizes = {
        "x": 4 * count,
        "x_max": 4,
        "x_min": 4,
        "y": 4 * _ceil_div(count, 4),
        "y_scale": 4,
        "y_zero_point": 4,
    }
    return counts, sizes


def _dispatch(count: int) -> tuple[dict[str, bytes], tuple[tuple[int, int, int], ...]]:
    """Return the contents of the uniforms and the workgroups of each pass."""
    _check(count <= 4294967168, "needs count <= 4294967168")
    invocations = _ceil_div(count, 64)
    workgroups = _ceil_div(invocations, 128)
    workgroups_x = min(workgroups, 65535)
    _check(_ceil_div(workgroups, max(workgroups_x, 1)) <= 65535, "needs ceil(workgroups / max(workgroups_x, 1)) <= 65535")
    reduce_invocations = _ceil_div(count, 64)
    reduce_workgroups = _ceil_div(reduce_invocations, 128)
    reduce_workgroups_x = min(reduce_workgroups, 65535)
    _check(
        _ceil_div(reduce_workgroups, max(reduce_workgroups_x, 1)) <= 65535,
        "needs ceil(reduce_workgroups / max(reduce_workgroups_x, 1)) <= 65535",
    )
    uniforms = {
        "params": _words(
            32,
            (0, "n", count),
            (4, "units", invocations),
            (8, "groups_x", workgroups_x),
            (12, "groups", 1),
            (16, "group_units", 1),
            (20, "group_groups_x", 1),
            (24, "reduce_units", reduce_invocations),
            (28, "reduce_groups_x", reduce_workgroups_x),
        ),
    }
    dispatches = (
        (1, 1, 1),
        (reduce_workgroups_x, _ceil_div(reduce_workgroups, reduce_workgroups_x), 1),
        (1, 1, 1),
        (workgroups_x, _ceil_div(workgroups, workgroups_x), 1),
    )
    return uniforms, dispatches


def _words(size: int, *fields: tuple[int, str, int]) -> bytes:
    """Return so many bytes, with each value as a u32 at the offset of its name."""
    content = bytearray(size)
    for offset, name, value in fields:
        _check(0 <= value < 2**32, f"{name} is {value}, which is no u32")
        content[offset : offset + 4] = value.to_bytes(4, "little")
    return bytes(content)


def _plan_run(extents: dict[str, int], max_binding_size: int) -> Run:
    offsets, (_, sizes) = dict.fromkeys(BITS, 0), _measure(**extents)
    for name, size in sizes.items():
        _check(size > 0, f"{name} has no elements")
        _check(size <= max_binding_size, f"{name} has {size} bytes, and the device binds {max_binding_size}")
    return Run(offsets, sizes, *_dispatch(**extents))


class Kernel:
    """The kernel on a device of `wgpu` or `wgpudawn`; its pipelines and layouts are made once."""

    def __init__(self, device: Any) -> None:
        """Compile the kernel."""
        self.device = device
        module = device.create_shader_module(label=NAME, code=WGSL)
        self._passes = []
        for entry_point, bindings in PASSES:
            entries = [{"binding": number, "visibility": _COMPUTE, "buffer": {"type": kind}} for number, _, kind in bindings]
            groups = [device.create_bind_group_layout(entries=[] if group < GROUP else entries) for group in range(GROUP + 1)]
            layout = device.create_pipeline_layout(bind_group_layouts=groups)
            compute = {"module": module, "entry_point": entry_point}
            self._passes.append((device.create_compute_pipeline(layout=layout, compute=compute), groups, bindings))

    def plan(self, shapes: Mapping[str, Sequence[int]]) -> Plan:
        """Return the plan for tensors of these shapes on this device; raises ValueError as the function `plan` does."""
        return plan(shapes, self.device.limits["max-storage-buffer-binding-size"])

    def encode(self, compute_pass: Any, buffers: Mapping[str, Any], plan: Plan) -> None:
        """Encode the runs of a plan; a tensor is a buffer, or a pair of a buffer and an offset that is a multiple of 256."""
        for run in plan.runs:
            resources = {
                name: {"buffer": self.device.create_buffer_with_data(data=content, usage=_UNIFORM), "size": len(content)}
                for name, content in run.uniforms.items()
            }
            for name, size in run.sizes.items():
                buffer, offset = buffers[name] if isinstance(buffers[name], tuple) else (buffers[name], 0)
                resources[name] = {"buffer": buffer, "offset": offset + run.offsets[name], "size": size}
            for (pipeline, groups, bindings), workgroups in zip(self._passes, run.dispatches, strict=True):
                compute_pass.set_pipeline(pipeline)
                for group, layout in enumerate(groups):
                    entries = [{"binding": number, "resource": resources[name]} for number, name, _ in bindings if group == GROUP]
                    compute_pass.set_bind_group(group, self.device.create_bind_group(layout=layout, entries=entries))
                compute_pass.dispatch_workgroups(*workgroups)

    def run(self, tensors: Mapping[str, tuple[bytes, Sequence[int]]]) -> dict[str, bytes]:
        """Return the outputs' bytes for inputs that are pairs of bytes and shape, elements from the lowest bits of u32 words on."""
        plan = self.plan({name: shape for name, (_, shape) in tensors.items()})
        buffers = {}
        for name, size in plan.sizes.items():
            data = bytes(tensors[name][0]) if name in INPUTS else b""
            if name in INPUTS:
                least = ceil(plan.counts[name] * BITS[name] / 8)
                _check(least <= len(data) <= size, f"{name} has {len(data)} bytes of data, not {least}")
            if name in ON_EMPTY and not plan.runs:
                data = ON_EMPTY[name].to_bytes(4, "little") * (size // 4)
            usage = _STORAGE | _COPY_SRC | _COPY_DST
            buffers[name] = self.device.create_buffer_with_data(data=data.ljust(max(size, 4), b"\0"), usage=usage)
        encoder = self.device.create_command_encoder()
        compute_pass = encoder.begin_compute_pass()
        self.encode(compute_pass, buffers, plan)
        compute_pass.end()
        self.device.queue.submit([encoder.finish()])
        outputs = {}
        for name in OUTPUTS:
            content = bytes(self.device.queue.read_buffer(buffers[name]))
            outputs[name] = content[: ceil(plan.counts[name] * BITS[name] / 8)]
        return outputs


WGSL = """\
// The text of the kernel stands here: `backticks`, ${braces}, "quotes", \\backslashes, \"\"\"more\"\"\", what??/ and */ have to come.
@compute @workgroup_size(64)
fn main() {}
"""
