"""Host glue in C: a header over `webgpu.h`, for C11 and C++17."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Final

from qgen.emit.glue import render_skeleton
from qgen.glue.formula import Tree
from qgen.glue.host import Chunks, Host
from qgen.glue.statements import Lines, describe, used_names
from qgen.glue.syntax import C, Syntax

_ALIGNMENT: Final = 256
_KINDS: Final = {"read-only-storage": "ReadOnlyStorage", "storage": "Storage", "uniform": "Uniform"}


def write_c(host: Host, wgsl: str) -> dict[str, str]:
    """Return the header, by file name."""
    prefix = f"kernel_{host.name}" if host.name[0].isdigit() else host.name
    upper = prefix.upper()
    syntax = replace(C, name=lambda name: f"extents->{name}" if name in host.extents else name)
    lines = Lines(syntax, let=lambda name, value: f"const int64_t {name} = {value};", check=_check)
    run_syntax = replace(C, name=lambda name: f"extents->{name}" if name in host.run_extents else name)
    run_lines = replace(lines, syntax=run_syntax)
    reading = Lines(syntax, let=lambda name, value: f"{_declared(name)} = {value};", check=_check)
    numbers = {tensor.name: f"{upper}_{tensor.name.upper()}" for tensor in host.tensors}
    places = _uniform_places(host)
    header = render_skeleton(
        "kernel.h",
        {
            "header": ["/*", *(f" * {line}".rstrip() for line in _head(host, prefix)), " */"],
            "prefix": prefix,
            "upper": upper,
            "tensors": list(numbers.values()),
            "group": host.group,
            "pass_count": len(host.passes),
            "uniform_bytes": sum(_aligned(uniform.size) for uniform in host.uniforms),
            "shapes": host.shapes,
            "extents": host.run_extents,
            "uniforms": [
                {
                    "name": uniform.name,
                    "size": uniform.size,
                    "place": places[uniform.name],
                    "fields": [{"name": name, "offset": offset} for name, offset, _ in uniform.fields],
                }
                for uniform in host.uniforms
            ],
            "on_empty": [f"case {numbers[name]}: return 0x{word:08x};" for name, word in host.on_empty],
            "read_shapes": [
                *(f'if (!qgen_is_shape(shapes->{name})) return "{name} has no shape, or is too large";' for name in host.shapes),
                *reading.place(host.read_shapes),
            ],
            "measure": [
                *lines.place(host.measure),
                *(f"counts[{numbers[tensor.name]}] = {syntax.value(tensor.count)};" for tensor in host.tensors),
                *(f"sizes[{numbers[tensor.name]}] = {syntax.value(tensor.size)};" for tensor in host.tensors),
            ],
            "dispatch": [*run_lines.place(host.dispatch), *_uniform_lines(host, run_syntax), *_dispatch_lines(host, run_syntax)],
            "chunks": None if host.chunks is None else _chunks(host.chunks, run_lines, numbers),
            "is_empty": " || ".join(f"plan->sizes[{numbers[tensor.name]}] == 0" for tensor in host.tensors if tensor.role == "output"),
            "bindings": [
                f"{{ {bound.number}, WGPUBufferBindingType_{_KINDS[bound.kind]}, "
                f"{numbers.get(bound.buffer, '-1')}, {places.get(bound.buffer, 0)}, {_uniform_size(host, bound.buffer)} }}"
                for step in host.passes
                for bound in step.bindings
            ],
            "binding_starts": ", ".join(map(str, accumulate((len(step.bindings) for step in host.passes), initial=0))),
            "most_bindings": max(len(step.bindings) for step in host.passes),
            "entry_points": ", ".join(f'"{step.entry_point}"' for step in host.passes),
            "encode_remark": "; the uniforms are where they were written" if host.uniforms else "",
            "uniforms_parameter": "qgen_place uniforms, " if host.uniforms else "",
            "wgsl": [f'"{_escape(line)}\\n"' for line in wgsl.removesuffix("\n").split("\n")],
        },
    )
    return {f"{host.name}.h": header}


def _head(host: Host, prefix: str) -> list[str]:
    uniforms = "" if not host.uniforms else "uniforms, "
    write = [f"    {prefix}_write_uniforms(queue, uniforms, &plan);"] if host.uniforms else []
    return [
        f"{host.title}: the host's side of the kernel `{host.name}`.",
        "",
        *(f"    {line}" for line in describe(host)),
        "",
        "It runs on a device, buffers and a queue that are yours, and needs nothing but webgpu.h. All in it is static.",
        "",
        f"    {prefix}_create(device, &kernel);",
        f"    const char *error = {prefix}_make_plan(&shapes, limits.maxStorageBufferBindingSize, &plan);",
        *write,
        f"    {prefix}_encode(&kernel, pass, tensors, {uniforms}&plan);",
    ]


def _declared(name: str) -> str:
    return name if name.startswith("extents->") else f"const int64_t {name}"


def _check(condition: str, message: str) -> list[str]:
    return [f'if (!({condition})) return "needs {message}";']


def _uniform_places(host: Host) -> dict[str, int]:
    """Return where each uniform lies in those of a run."""
    starts = accumulate((_aligned(uniform.size) for uniform in host.uniforms), initial=0)
    return {uniform.name: start for uniform, start in zip(host.uniforms, starts, strict=False)}


def _uniform_size(host: Host, name: str) -> int:
    return next((uniform.size for uniform in host.uniforms if uniform.name == name), 0)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _uniform_lines(host: Host, syntax: Syntax) -> list[str]:
    lines = []
    for uniform in host.uniforms:
        values: list[Tree] = [value for _, _, value in uniform.fields if not isinstance(value, int)]
        together = " | ".join(dict.fromkeys(f"({text})" if " " in (text := syntax.value(value)) else text for value in values))
        lines.append(f'if (({together}) >> 32 != 0) return "a uniform is no u32";')
        lines += [f"run->{uniform.name}.{name} = {_cast(value, syntax)};" for name, _, value in uniform.fields]
    return lines


def _dispatch_lines(host: Host, syntax: Syntax) -> list[str]:
    return [
        f"run->dispatches[{number}][{axis}] = {_cast(count, syntax)};"
        for number, step in enumerate(host.passes)
        for axis, count in enumerate(step.dispatch)
    ]


def _cast(value: Tree, syntax: Syntax) -> str:
    if isinstance(value, int):
        return str(value)
    text = syntax.value(value)
    return f"(uint32_t)({text})" if isinstance(value, tuple) and not text.endswith(")") else f"(uint32_t){text}"


def _chunks(chunks: Chunks, lines: Lines, numbers: dict[str, str]) -> dict[str, object]:
    is_used = used_names(chunks.extents, chunks.length_lets, [chunks.length])
    unused = [] if is_used else ["(void)extents;"]
    return {
        "count": chunks.count,
        "counted": numbers[chunks.counted],
        "most": C.number(chunks.most),
        "length": [
            *unused,
            *lines.place(chunks.length_lets),
            f"return {lines.syntax.value(chunks.length)};",
        ],
        "bind": [
            *lines.place(chunks.bind_lets),
            *(f"run->offsets[{numbers[each.tensor]}] = {lines.syntax.value(each.offset)};" for each in chunks.bind),
            *(f"run->sizes[{numbers[each.tensor]}] = {lines.syntax.value(each.size)};" for each in chunks.bind),
        ],
    }


def _escape(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
