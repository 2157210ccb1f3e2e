"""Host glue in Rust: a module that needs nothing but `core`, planning in `const fn`; Rust 1.63 takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qgen.emit.glue import render_skeleton
from qgen.glue.formula import Tree
from qgen.glue.host import Chunks, Host, Uniform
from qgen.glue.statements import Lines, describe, operations, used_names
from qgen.glue.syntax import RUST, Syntax

_KINDS: Final = {"read-only-storage": "ReadOnlyStorage", "storage": "Storage", "uniform": "Uniform"}

_HELPERS: Final = {
    "rank": """\
const fn rank(shape: &[u64]) -> i64 {
    shape.len() as i64
}""",
    "dim": """\
const fn dim(shape: &[u64], index: i64) -> i64 {
    shape[(if index < 0 { index + rank(shape) } else { index }) as usize] as i64
}""",
    "prod_dims": """\
const fn product(shape: &[u64], from: i64, to: i64) -> i64 {
    let mut product = 1;
    let mut i = from;
    while i < least(to, rank(shape)) {
        product *= shape[i as usize] as i64;
        i += 1;
    }
    product
}""",
    "same_dims_except": """\
const fn same_dims_except(shape: &[u64], other: &[u64], index: i64) -> bool {
    let left_out = if index < 0 { index + rank(shape) } else { index };
    let mut same = shape.len() == other.len();
    let mut i = 0;
    while same && i < shape.len() {
        same = i as i64 == left_out || shape[i] == other[i];
        i += 1;
    }
    same
}""",
    "ceil_div": """\
const fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}""",
    "min": """\
const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}""",
    "max": """\
const fn greatest(a: i64, b: i64) -> i64 {
    if a > b { a } else { b }
}""",
}
"""The functions that formulas call, by operation."""

_USES: Final = {"numel": ("prod_dims", "rank"), "prod_dims": ("rank", "min"), "dim": ("rank",), "same_dims_except": ("rank",)}
"""The operations whose functions those of an operation call."""

_CALLED: Final = frozenset({"ceil_div", "min", "max"})
"""The operations that are written as calls."""


def write_rust(host: Host, wgsl: str) -> dict[str, str]:
    """Return the module, by file name; the text is not in it, but included from the file beside it."""
    del wgsl
    syntax = replace(RUST, name=lambda name: f"extents.{name}" if name in host.extents else name)
    lines = Lines(syntax, let=_let, check=_check)
    run_syntax = replace(RUST, name=lambda name: f"extents.{name}" if name in host.run_extents else name)
    run_lines = replace(lines, syntax=run_syntax)
    module = render_skeleton(
        "kernel.rs",
        {
            "name": host.name,
            "header": [f"//! {line}".rstrip() for line in _head(host)],
            "group": host.group,
            "tensors": [f"pub const {tensor.name.upper()}: usize = {number};" for number, tensor in enumerate(host.tensors)],
            "bits": f"[{', '.join(str(tensor.bits) for tensor in host.tensors)}]",
            "passes": [
                {
                    "entry_point": f'"{step.entry_point}"',
                    "bindings": [
                        f"Binding {{ binding: {bound.number}, resource: {_resource(host, bound.buffer)}, "
                        f"kind: BindingType::{_KINDS[bound.kind]} }}"
                        for bound in step.bindings
                    ],
                }
                for step in host.passes
            ],
            "on_empty": [f"(tensor::{name.upper()}, 0x{word:08x})" for name, word in host.on_empty],
            "uniforms": [_uniform(uniform, run_syntax) for uniform in host.uniforms],
            "shapes": host.shapes,
            "extents": host.run_extents,
            "plan_fields": "counts, sizes, runs: 0, extents" + ("" if host.chunks is None else ", length: 0"),
            "is_empty": " || ".join(f"sizes[tensor::{tensor.name.upper()}] == 0" for tensor in host.tensors if tensor.role == "output"),
            "read_shapes": [
                *(f'if !is_shape(shapes.{name}) {{ return Err("{name} is too large"); }}' for name in host.shapes),
                *Lines(RUST, let=_let, check=_check).place(host.read_shapes),
            ],
            "extent_names": ", ".join(name if name in host.extents else f"{name}: 0" for name in host.run_extents),
            "measure": lines.place(host.measure),
            "counts": ", ".join(_cast(tensor.count, syntax, "u64") for tensor in host.tensors),
            "sizes": ", ".join(_cast(tensor.size, syntax, "u64") for tensor in host.tensors),
            "dispatch": [*run_lines.place(host.dispatch), *_range_checks(host, run_syntax)],
            "dispatches": [f"[{', '.join(_cast(count, run_syntax, 'u32') for count in step.dispatch)}]" for step in host.passes],
            "chunks": None if host.chunks is None else _chunks(host.chunks, run_lines),
            "helpers": _helpers(host),
        },
    )
    return {f"{host.name}.rs": module}


def _head(host: Host) -> list[str]:
    shapes = ", ".join(f"{name}: &[...]" for name in host.shapes)
    return [
        f"{host.title}: the host's side of the kernel `{host.name}`.",
        "",
        "```text",
        *describe(host),
        "```",
        "",
        "It plans for a device, buffers and a queue that are yours, and needs nothing but `core`: the pipelines of `PASSES` from `WGSL`, a",
        "layout with their bindings in the group `GROUP`, and then, for tensors of given shapes:",
        "",
        "```text",
        f"let plan = plan(&Shapes {{ {shapes} }}, limits.max_storage_buffer_binding_size)?;",
        "for index in 0..plan.runs {",
        "    let run = plan.run(index)?; // bind run.sizes[i] bytes of tensor i at run.offsets[i], and dispatch run.dispatches[pass]",
        "}",
        "```",
    ]


def _let(name: str, value: str) -> str:
    return f"let {name} = {value};"


def _check(condition: str, message: str) -> list[str]:
    return [f"if !({condition}) {{", f'    return Err("needs {message}");', "}"]


def _resource(host: Host, buffer: str) -> str:
    struct = next((uniform.struct for uniform in host.uniforms if uniform.name == buffer), None)
    return f"Resource::Tensor(tensor::{buffer.upper()})" if struct is None else f"Resource::{struct}"


def _uniform(uniform: Uniform, syntax: Syntax) -> dict[str, object]:
    by_offset = {offset: name for name, offset, _ in uniform.fields}
    return {
        "name": uniform.name,
        "struct": uniform.struct,
        "size": uniform.size,
        "words": ", ".join(f"self.{by_offset[offset]}" if offset in by_offset else "0" for offset in range(0, uniform.size, 4)),
        "fields": [{"name": name, "value": _cast(value, syntax, "u32")} for name, _, value in uniform.fields],
    }


def _range_checks(host: Host, syntax: Syntax) -> list[str]:
    lines = []
    for uniform in host.uniforms:
        values = dict.fromkeys(value for _, _, value in uniform.fields if not isinstance(value, int))
        together = " | ".join(f"({text})" if " " in (text := syntax.value(value)) else text for value in values)
        lines += [f"if ({together}) >> 32 != 0 {{", '    return Err("a uniform is no u32");', "}"]
    return lines


def _cast(value: Tree, syntax: Syntax, type_: str) -> str:
    if isinstance(value, int):
        return str(value)
    text = syntax.value(value)
    is_atom = isinstance(value, str) or value[0] in _CALLED
    return f"{text} as {type_}" if is_atom else f"({text}) as {type_}"


def _chunks(chunks: Chunks, lines: Lines) -> dict[str, object]:
    value = lines.syntax.value
    is_used = used_names(chunks.extents, chunks.length_lets, [chunks.length])
    return {
        "count": chunks.count,
        "counted": chunks.counted.upper(),
        "most": chunks.most,
        "length": [*([] if is_used else ["let _ = extents;"]), *lines.place(chunks.length_lets), value(chunks.length)],
        "bind": [
            *lines.place(chunks.bind_lets),
            f"let offsets = [{', '.join(_cast(each.offset, lines.syntax, 'u64') for each in chunks.bind)}];",
            f"let sizes = [{', '.join(_cast(each.size, lines.syntax, 'u64') for each in chunks.bind)}];",
            "(offsets, sizes)",
        ],
    }


def _helpers(host: Host) -> list[str]:
    used = operations(host) | (set() if host.chunks is None else {"ceil_div", "min"})
    for _ in _USES:
        used |= {called for operation in used for called in _USES.get(operation, ())}
    return [text for operation, text in _HELPERS.items() if operation in used]
