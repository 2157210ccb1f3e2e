"""Host glue in Rust: a module that needs nothing but `core`, planning in `const fn`; Rust 1.63 takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qgen.emit.glue import render_skeleton
from qgen.glue.formula import Tree
from qgen.glue.host import Host, Uniform, Way
from qgen.glue.statements import Lines, cut_lets, describe, operations
from qgen.glue.syntax import RUST, Syntax, camel

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

_USES: Final = {"numel": ("prod_dims", "rank"), "prod_dims": ("rank", "min"), "dim": ("rank",)}
"""The operations whose functions those of an operation call."""

_CALLED: Final = frozenset({"ceil_div", "min", "max"})
"""The operations that are written as calls."""


def write_rust(host: Host, wgsl: str) -> dict[str, str]:
    """Return the module, by file name; the text is not in it, but included from the file beside it."""
    del wgsl
    syntax = replace(RUST, name=lambda name: f"extents.{name}" if name in host.extents else name)
    lines = Lines(syntax, let=_let, check=_check)
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
            "uniforms": [_uniform(uniform, syntax) for uniform in host.uniforms],
            "shapes": host.shapes,
            "extents": host.extents,
            "plan_fields": "counts, sizes, runs: 0, extents" + (", length: 0" if host.ways else ""),
            "has_whole": any(len({name for cut in way.cuts for name in cut.tensors}) < len(host.tensors) for way in host.ways),
            "is_empty": " || ".join(f"sizes[tensor::{tensor.name.upper()}] == 0" for tensor in host.tensors if tensor.role == "output"),
            "read_shapes": [
                *(f'if !is_shape(shapes.{name}) {{ return Err("{name} is too large"); }}' for name in host.shapes),
                *Lines(RUST, let=_let, check=_check).place(host.read_shapes),
            ],
            "extent_names": ", ".join(host.extents),
            "measure": lines.place(host.measure),
            "counts": ", ".join(_cast(tensor.count, syntax, "u64") for tensor in host.tensors),
            "sizes": ", ".join(_cast(tensor.size, syntax, "u64") for tensor in host.tensors),
            "dispatch": [*lines.place(host.dispatch), *_range_checks(host, syntax)],
            "dispatches": [f"[{', '.join(_cast(count, syntax, 'u32') for count in step.dispatch)}]" for step in host.passes],
            "alongs": [{"name": name, "title": _title(name)} for name in dict.fromkeys(way.along for way in host.ways)],
            "ways": [*lines.place(cut_lets(host)), *(line for way in host.ways for line in _way(host, way, syntax))] if host.ways else [],
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


def _title(name: str) -> str:
    word = camel(name)
    return word[:1].upper() + word[1:]


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


def _way(host: Host, way: Way, syntax: Syntax) -> list[str]:
    cuts = {name: cut for cut in way.cuts for name in cut.tensors}
    parts = []
    for tensor in host.tensors:
        cut = cuts.get(tensor.name)
        parts.append(
            "WHOLE" if cut is None else f"Part {{ elements: {syntax.value(cut.elements)}, multiple: {cut.multiple}, most: {cut.most} }}"
        )
    is_final = way.when == 1
    indent = "" if is_final else "    "
    lines = [
        f"{indent}{'' if is_final else 'return '}Cut {{",
        f"{indent}    along: Along::{_title(way.along)},",
        f"{indent}    extent: extents.{way.along},",
        f"{indent}    step: {way.step},",
        f"{indent}    parts: [",
        *(f"{indent}        {part}," for part in parts),
        f"{indent}    ],",
        f"{indent}}}{'' if is_final else ';'}",
    ]
    return lines if is_final else [f"if {syntax.condition(way.when)} {{", *lines, "}"]


def _helpers(host: Host) -> list[str]:
    used = operations(host) | ({"ceil_div", "min"} if host.ways else set())
    for _ in _USES:
        used |= {called for operation in used for called in _USES.get(operation, ())}
    return [text for operation, text in _HELPERS.items() if operation in used]
