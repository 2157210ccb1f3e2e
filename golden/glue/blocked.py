"""DequantizeLinear: the host's side of the kernel `blocked`.

    x             input   int4
    x_scale       input   float16
    x_zero_point  input   int4
    y             output  float16

It runs on a device, buffers and a queue that are yours, and needs nothing but WebGPU:

    kernel = Kernel(device)
    plan = kernel.plan({"x": (...), "x_scale": (...), "x_zero_point": (...)})
    kernel.encode(compute_pass, {"x": x, "x_scale": x_scale, "x_zero_point": x_zero_point, "y": y}, plan)  # buffers of plan.sizes bytes with usage STORAGE

Or, for tensors in memory: kernel.run({"x": (data, shape), ...}).
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

NAME = "blocked"
BITS = {"x": 4, "x_scale": 16, "x_zero_point": 4, "y": 16}
"""The tensors, and the bits of an element; the first has the lowest bits of the first u32 word."""
INPUTS = ("x", "x_scale", "x_zero_point")
OUTPUTS = ("y",)
PASSES: tuple[tuple[str, tuple[tuple[int, str, str], ...]], ...] = (
    (
        "main",
        (
            (0, "x", "read-only-storage"),
            (1, "x_scale", "read-only-storage"),
            (2, "x_zero_point", "read-only-storage"),
            (3, "y", "storage"),
            (4, "params", "uniform"),
        ),
    ),
)
"""The dispatches, one after the other: entry point, and number, buffer and type of each binding."""
GROUP = 0

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
    count = counts["x"]
    fits = count <= 4294967168 and all(size <= max_binding_size for size in sizes.values())
    whole = extents | {"count": count}
    length = count if fits else _run_length(**whole, limit=max_binding_size)
    _check(length > 0, f"no part is small enough for bindings of {max_binding_size} bytes")
    runs = []
    for start in range(0, count, length):
        part = whole | {"start": start, "count": min(length, count - start)}
        runs.append(_plan_run(part, max_binding_size))
    return Plan(counts, sizes, tuple(runs))


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


def _same_dims_except(shape: Sequence[int], other: Sequence[int], index: int) -> bool:
    left_out = (index, index + len(shape))
    return len(shape) == len(other) and all(place in left_out or dim == other[place] for place, dim in enumerate(shape))


def _read_shapes(given: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Return what all else follows from."""
    shapes = {}
    for name in ("x", "x_scale", "x_zero_point"):
        _check(isinstance(given.get(name), Iterable), f"{name} has no shape")
        shape = tuple(_whole(dim, f"a dimension of {name}") for dim in given[name])
        _check(all(dim >= 0 for dim in shape), f"{name} has a negative dimension, {shape}")
        _check(prod(max(dim, 1) for dim in shape) <= 2**40, f"{name} is too large")
        shapes[name] = shape
    _check(len(shapes["x"]) >= 1, "needs rank(x) >= 1")
    outer = prod(shapes["x"][:-1])
    axis = shapes["x"][-1]
    blocks = _ceil_div(axis, 32)
    groups = outer * blocks
    _check(prod(shapes["x_scale"]) == groups, "needs numel(x_scale) = groups")
    _check(_same_dims_except(shapes["x_scale"], shapes["x"], -1), "needs x_scale.shape = x.shape except dimension -1")
    _check(shapes["x_scale"][-1] == blocks, "needs x_scale.shape[-1] = blocks")
    _check(prod(shapes["x_zero_point"]) == groups, "needs numel(x_zero_point) = groups")
    _check(_same_dims_except(shapes["x_zero_point"], shapes["x"], -1), "needs x_zero_point.shape = x.shape except dimension -1")
    _check(shapes["x_zero_point"][-1] == blocks, "needs x_zero_point.shape[-1] = blocks")
    return {"outer": outer, "axis": axis}


def _measure(outer: int, axis: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return how many elements and bytes each tensor has."""
    count = outer * axis
    blocks = _ceil_div(axis, 32)
    groups = outer * blocks
    counts = {
        "x": count,
        "x_scale": groups,
        "x_zero_point": groups,
        "y": count,
    }
    sizes = {
        "x": 4 * _ceil_div(count, 8),
        "x_scale": 4 * _ceil_div(groups, 2),
        "x_zero_point": 4 * _ceil_div(groups, 8),
        "y": 4 * _ceil_div(count, 2),
    }
    return counts, sizes


def _dispatch(outer: int, axis: int, count: int, start: int) -> tuple[dict[str, bytes], tuple[tuple[int, int, int], ...]]:
    """Return the contents of the uniforms and the workgroups of each pass."""
    _check(count <= 4294967168, "needs count <= 4294967168")
    invocations = _ceil_div(count, 64)
    workgroups = _ceil_div(invocations, 128)
    workgroups_x = min(workgroups, 65535)
    _check(_ceil_div(workgroups, max(workgroups_x, 1)) <= 65535, "needs ceil(workgroups / max(workgroups_x, 1)) <= 65535")
    blocks = _ceil_div(axis, 32)
    size = min(32, axis)
    is_ragged = int(outer >= 2 and axis % size >= 1)
    unit_groups = max(1, is_ragged * blocks)
    steps = max(1, 512 * int(unit_groups % 512 >= 1))
    unit_rows = min(axis, size + is_ragged * axis)
    step_rows = steps * unit_rows
    step = start // step_rows
    axis_start = start - step * step_rows
    uniforms = {
        "params": _words(
            28,
            (0, "n", count),
            (4, "units", invocations),
            (8, "groups_x", workgroups_x),
            (12, "axis", axis),
            (16, "inner", 1),
            (20, "blocks", blocks),
            (24, "axis_start", axis_start),
        ),
    }
    dispatches = ((workgroups_x, _ceil_div(workgroups, workgroups_x), 1),)
    return uniforms, dispatches


def _words(size: int, *fields: tuple[int, str, int]) -> bytes:
    """Return so many bytes, with each value as a u32 at the offset of its name."""
    content = bytearray(size)
    for offset, name, value in fields:
        _check(0 <= value < 2**32, f"{name} is {value}, which is no u32")
        content[offset : offset + 4] = value.to_bytes(4, "little")
    return bytes(content)


def _bind(outer: int, axis: int, count: int, start: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return where a run begins in each tensor and how much of it it binds, in bytes."""
    size = min(32, axis)
    is_ragged = int(outer >= 2 and axis % size >= 1)
    blocks = _ceil_div(axis, 32)
    unit_groups = max(1, is_ragged * blocks)
    steps = max(1, 512 * int(unit_groups % 512 >= 1))
    unit_rows = min(axis, size + is_ragged * axis)
    step_rows = steps * unit_rows
    step = start // step_rows
    first_group = step * steps * unit_groups
    axis_start = start - step * step_rows
    end_row = axis_start + count
    run_blocks = end_row // axis * blocks + _ceil_div(end_row % axis, size)
    offsets = {
        "x": start // 2,
        "x_scale": 2 * first_group,
        "x_zero_point": first_group // 2,
        "y": 2 * start,
    }
    sizes = {
        "x": 4 * _ceil_div(count, 8),
        "x_scale": 4 * _ceil_div(run_blocks, 2),
        "x_zero_point": 4 * _ceil_div(run_blocks, 8),
        "y": 4 * _ceil_div(count, 2),
    }
    return offsets, sizes


def _run_length(outer: int, axis: int, count: int, limit: int) -> int:
    """Return how many elements each of several runs has, but the last; 0 where no part is small enough."""
    size = min(32, axis)
    is_ragged = int(outer >= 2 and axis % size >= 1)
    blocks = _ceil_div(axis, 32)
    unit_groups = max(1, is_ragged * blocks)
    steps = max(1, 512 * int(unit_groups % 512 >= 1))
    unit_rows = min(axis, size + is_ragged * axis)
    step_rows = steps * unit_rows
    reach = min(count, step_rows)
    limit_words = min(limit, 1099511627776) // 4
    fitting = 512 * (limit_words // 256)
    groups = outer * blocks
    all_groups_fit = int(_ceil_div(groups, 2) <= limit_words)
    all_units = _ceil_div(outer * axis, unit_rows)
    units = min(2 * limit_words // unit_groups, all_units)
    unit_length = max(units - steps, 0) * unit_rows
    length_by_groups = max(2147483648 * all_groups_fit, 512 * (unit_length // 512))
    return int(reach <= 2147483648) * min(fitting, length_by_groups)


def _plan_run(extents: dict[str, int], max_binding_size: int) -> Run:
    offsets, sizes = _bind(**extents)
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
