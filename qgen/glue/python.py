"""Host glue in Python: a module over the API of `wgpu`, which `wgpudawn` shares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from qgen.emit.glue import render_skeleton
from qgen.glue.host import Chunks, Host
from qgen.glue.read import LIMIT, START
from qgen.glue.statements import Lines, describe, operations
from qgen.glue.syntax import PYTHON

_WIDTH: Final = 136
"""Of a line within a function, as formatters have it."""


def _check(condition: str, message: str) -> list[str]:
    line = f'_check({condition}, "needs {message}")'
    return [line] if len(line) <= _WIDTH else ["_check(", f"    {condition},", f'    "needs {message}",', ")"]


_LINES: Final = Lines(PYTHON, let=lambda name, value: f"{name} = {value}", check=_check)


def write_python(host: Host, wgsl: str) -> dict[str, str]:
    """Return the module, by file name."""
    module = render_skeleton(
        "kernel.py",
        {
            "name": host.name,
            "title": f"{host.title}: the host's side of the kernel `{host.name}`.",
            "header": [*(f"    {line}" for line in describe(host)), *_usage(host)],
            "bits": _dict((tensor.name, str(tensor.bits)) for tensor in host.tensors),
            "inputs": _tuple([tensor.name for tensor in host.tensors if tensor.role == "input"]),
            "outputs": _tuple([tensor.name for tensor in host.tensors if tensor.role == "output"]),
            "passes": [
                {
                    "entry_point": f'"{step.entry_point}"',
                    "bindings": [f'({binding.number}, "{binding.buffer}", "{binding.kind}")' for binding in step.bindings],
                }
                for step in host.passes
            ],
            "group": host.group,
            "on_empty": _dict((name, f"0x{word:08X}") for name, word in host.on_empty) if host.on_empty else "",
            "shapes": _tuple(list(host.shapes)),
            "read_shapes": _LINES.place(host.read_shapes),
            "extents": _dict((name, name) for name in host.extents),
            "arguments": _arguments(host.extents),
            "run_arguments": _arguments(host.run_extents),
            "measure": _LINES.place(host.measure),
            "counts": [f'"{tensor.name}": {PYTHON.value(tensor.count)}' for tensor in host.tensors],
            "sizes": [f'"{tensor.name}": {PYTHON.value(tensor.size)}' for tensor in host.tensors],
            "dispatch": _LINES.place(host.dispatch),
            "uniforms": [
                {
                    "name": uniform.name,
                    "size": uniform.size,
                    "fields": [f'({offset}, "{name}", {PYTHON.value(value)})' for name, offset, value in uniform.fields],
                }
                for uniform in host.uniforms
            ],
            "dispatches": _dispatches(host),
            "has_ceil_div": "ceil_div" in operations(host),
            "has_same_dims_except": "same_dims_except" in operations(host),
            "chunks": None if host.chunks is None else _chunks(host.chunks),
            "wgsl": [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in wgsl.removesuffix("\n").split("\n")],
        },
    )
    return {f"{host.name}.py": module}


def _usage(host: Host) -> list[str]:
    shapes = ", ".join(f'"{name}": (...)' for name in host.shapes)
    buffers = ", ".join(f'"{tensor.name}": {tensor.name}' for tensor in host.tensors)
    return [
        "",
        "It runs on a device, buffers and a queue that are yours, and needs nothing but WebGPU:",
        "",
        "    kernel = Kernel(device)",
        f"    plan = kernel.plan({{{shapes}}})",
        f"    kernel.encode(compute_pass, {{{buffers}}}, plan)  # buffers of plan.sizes bytes with usage STORAGE",
        "",
        'Or, for tensors in memory: kernel.run({"x": (data, shape), ...}).',
    ]


def _dispatches(host: Host) -> list[str]:
    passes = [f"({', '.join(map(PYTHON.value, step.dispatch))})" for step in host.passes]
    if len(passes) == 1:
        return [f"dispatches = ({passes[0]},)"]
    return ["dispatches = (", *(f"    {step}," for step in passes), ")"]


def _chunks(chunks: Chunks) -> dict[str, object]:
    return {
        "count": chunks.count,
        "counted": chunks.counted,
        "most": chunks.most,
        "length_arguments": _arguments([*(name for name in chunks.extents if name != START), LIMIT]),
        "length_lets": _LINES.place(chunks.length_lets),
        "length": PYTHON.value(chunks.length),
        "bind_lets": _LINES.place(chunks.bind_lets),
        "offsets": [f'"{each.tensor}": {PYTHON.value(each.offset)}' for each in chunks.bind],
        "sizes": [f'"{each.tensor}": {PYTHON.value(each.size)}' for each in chunks.bind],
    }


def _arguments(names: Iterable[str]) -> str:
    return ", ".join(f"{name}: int" for name in names)


def _dict(items: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{key}": {value}' for key, value in items) + "}"


def _tuple(names: list[str]) -> str:
    return "(" + ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "") + ")"
