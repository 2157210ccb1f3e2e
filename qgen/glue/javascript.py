"""Host glue in JavaScript: an ES module that needs nothing but WebGPU, and its types."""

from __future__ import annotations

from typing import Final

from qgen.emit.glue import render_skeleton
from qgen.glue.host import Chunks, Host
from qgen.glue.read import LIMIT
from qgen.glue.statements import Lines, bound, describe, dispatched, measured, operations, used_names
from qgen.glue.syntax import JAVASCRIPT, camel

_ARRAYS: Final = {
    "int8": "Int8Array",
    "int16": "Int16Array",
    "uint16": "Uint16Array",
    "int32": "Int32Array",
    "uint32": "Uint32Array",
    "float32": "Float32Array",
    "float16": "Uint16Array",
    "bfloat16": "Uint16Array",
}
"""The typed arrays of dtypes whose elements are whole units of them; the others come as bytes, 16-bit floats as their bits."""

_LINES: Final = Lines(
    JAVASCRIPT,
    let=lambda name, value: f"const {name} = {value};",
    check=lambda condition, message: [f"check({condition}, 'needs {message}');"],
)


def write_javascript(host: Host, wgsl: str) -> dict[str, str]:
    """Return the module and its types, by file name."""
    header = [f"// {line}".rstrip() for line in (f"{host.title}: the host's side of the kernel `{host.name}`.", "", *describe(host))]
    module = render_skeleton(
        "kernel.js",
        {
            "name": host.name,
            "header": [*header, *(f"// {line}".rstrip() for line in _usage(host))],
            "tensors": [_tensor(tensor.name, tensor.role, tensor.dtype, tensor.bits) for tensor in host.tensors],
            "on_empty": ", ".join(f"{name}: 0x{word:08x}" for name, word in host.on_empty),
            "nowhere": ", ".join(f"{tensor.name}: 0" for tensor in host.tensors),
            "passes": [
                {
                    "entry_point": f"'{step.entry_point}'",
                    "bindings": [
                        f"{{ binding: {binding.number}, name: '{binding.buffer}', type: '{binding.kind}' }}" for binding in step.bindings
                    ],
                }
                for step in host.passes
            ],
            "group": host.group,
            "shape_names": _quoted(host.shapes),
            "read_shapes": _LINES.place(host.read_shapes),
            "has_same_dims_except": "same_dims_except" in operations(host),
            "extents": ", ".join(map(camel, host.extents)),
            "measure_arguments": _destructured(used_names(host.extents, host.measure, measured(host))),
            "measure": _LINES.place(host.measure),
            "counts": [f"{tensor.name}: {JAVASCRIPT.value(tensor.count)}" for tensor in host.tensors],
            "sizes": [f"{tensor.name}: {JAVASCRIPT.value(tensor.size)}" for tensor in host.tensors],
            "dispatch_arguments": _destructured(used_names(host.run_extents, host.dispatch, dispatched(host))),
            "dispatch": _LINES.place(host.dispatch),
            "uniforms": [
                {
                    "name": uniform.name,
                    "size": uniform.size,
                    "fields": [f"[{offset}, '{name}', {JAVASCRIPT.value(value)}]" for name, offset, value in uniform.fields],
                }
                for uniform in host.uniforms
            ],
            "dispatches": [f"[{', '.join(map(JAVASCRIPT.value, step.dispatch))}]" for step in host.passes],
            "outputs": _quoted([tensor.name for tensor in host.tensors if tensor.role == "output"]),
            "chunks": None if host.chunks is None else _chunks(host.chunks),
            "wgsl": [_escape(line) for line in wgsl.removesuffix("\n").split("\n")],
        },
    )
    types = render_skeleton(
        "kernel.d.ts",
        {
            "header": header,
            "shapes": host.shapes,
            "on_empty": "; ".join(f"{name}: number" for name, _ in host.on_empty),
            "tensors": [tensor.name for tensor in host.tensors],
            "inputs": [tensor.name for tensor in host.tensors if tensor.role == "input"],
            "outputs": [f"{tensor.name}: {_ARRAYS.get(tensor.dtype, 'Uint8Array')}" for tensor in host.tensors if tensor.role == "output"],
        },
    )
    return {f"{host.name}.js": module, f"{host.name}.d.ts": types}


def _usage(host: Host) -> list[str]:
    shapes = ", ".join(f"{name}: [...]" for name in host.shapes)
    buffers = ", ".join(tensor.name for tensor in host.tensors)
    return [
        "",
        "It runs on a device, buffers and a queue that are yours, and needs nothing but WebGPU:",
        "",
        "  const kernel = createKernel(device);",
        f"  const plan = kernel.plan({{ {shapes} }});",
        f"  kernel.encode(pass, {{ {buffers} }}, plan); // buffers of plan.sizes bytes with usage STORAGE",
        "",
        "Or, for tensors in memory: await kernel.run({ x: { data, shape }, ... }).",
    ]


def _tensor(name: str, role: str, dtype: str, bits: int) -> str:
    return f"{name}: {{ role: '{role}', dtype: '{dtype}', bits: {bits}, array: {_ARRAYS.get(dtype, 'Uint8Array')} }}"


def _chunks(chunks: Chunks) -> dict[str, object]:
    return {
        "count": camel(chunks.count),
        "counted": chunks.counted,
        "most": chunks.most,
        "length_arguments": _destructured(used_names((*chunks.extents, LIMIT), chunks.length_lets, [chunks.length])),
        "length_lets": _LINES.place(chunks.length_lets),
        "length": JAVASCRIPT.value(chunks.length),
        "bind_arguments": _destructured(used_names(chunks.extents, chunks.bind_lets, bound(chunks))),
        "bind_lets": _LINES.place(chunks.bind_lets),
        "offsets": [f"{each.tensor}: {JAVASCRIPT.value(each.offset)}" for each in chunks.bind],
        "sizes": [f"{each.tensor}: {JAVASCRIPT.value(each.size)}" for each in chunks.bind],
    }


def _destructured(names: list[str]) -> str:
    return f"{{ {', '.join(map(camel, names))} }}" if names else ""


def _quoted(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _escape(line: str) -> str:
    return line.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
