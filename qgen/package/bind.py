"""The bindings in a text that naga wrote: the numbers of the sidecar, and a comment at its head that says so.

naga takes binding maps in its Rust API alone, not from npm's naga-wasm nor from its command line. Without one it numbers registers in HLSL
and decorations in SPIR-V as WGSL numbers bindings, but gives GLSL no number and MSL a placeholder:

before  layout(std430) readonly buffer type_1_block_0Compute { uint _group_0_binding_0_cs[]; };
after   layout(std430, binding = 0) readonly buffer type_1_block_0Compute { uint _group_0_binding_0_cs[]; };

before  , device type_1 const& x_4 [[user(fake0)]]
after   , device type_1 const& x_4 [[buffer(0)]]

What is found must be the bindings of the kernel, each once and in their order, and nothing else: a text is bound whole, or refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from qgen.errors import QgenError
from qgen.kernel import Kernel

SIZES: Final = "_buffer_sizes"
"""What naga calls the argument of an MSL kernel that has the sizes of what is bound, for the lengths of arrays."""

_PARAMS: Final = "params"
_UNIFORM_ALIGN: Final = 16
"""The layout std140 and a `cbuffer` end a struct at a multiple of these bytes, where that of WGSL ends with its last member."""

_GLSL_VERSION: Final = "#version 310 es\n"
_GLSL_BLOCK: Final = re.compile(
    r"^layout\((std\d+)\)((?: \w+)*) (buffer|uniform) (\w+) \{ (\w+) _group_(\d+)_binding_(\d+)_cs(\[\])?; \};$", re.MULTILINE
)
_GLSL_LAYOUT: Final = re.compile(r"^layout\((?!local_size)", re.MULTILINE)
_HLSL_BUFFER: Final = re.compile(
    r"^(?:(?:RW)?ByteAddressBuffer|cbuffer) (\w+) : register\(([a-z])(\d+)(?:, space(\d+))?\)(?:;| \{ \w+ \w+; \})$", re.MULTILINE
)
_HLSL_ENTRY: Final = re.compile(r"^\[numthreads\(\d+, \d+, \d+\)\]\nvoid (\w+)\(", re.MULTILINE)
_MSL_FIRST: Final = re.compile(r"// language: metal[\d.]+\n")
_MSL_SIZES: Final = re.compile(r"^struct _mslBufferSizes \{\n((?:    uint size\d+;\n)+)\};$", re.MULTILINE)
_MSL_ENTRY: Final = re.compile(r"^kernel void (\w+)\(\n([^()]*(?:\([^()]*\)[^()]*)*)\) \{$", re.MULTILINE)
_MSL_ARGUMENT: Final = re.compile(r"^([ ,]) (device|constant) (\w+)( const)?& (\w+) \[\[user\(fake0\)\]\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A binding of the kernel: `name` is what WGSL calls it, `title` what the sidecar does."""

    group: int
    number: int
    name: str
    title: str
    is_written: bool
    is_uniform: bool
    nbytes: int
    """Of a uniform buffer; 0 for others."""


def bind_text(kernel: Kernel, language: str, entry_point: str, data: bytes) -> bytes:
    """Return `data`, which naga wrote of `kernel`, with the binding numbers of the sidecar and a comment about them at its head.

    SPIR-V is returned as it is. Raises `QgenError` QG954 where the bindings in the text are not those of the kernel.
    """
    if language == "spirv":
        return data
    text, buffers = data.decode("utf-8"), _buffers(kernel)
    bind = {"glsl": _bind_glsl, "hlsl": _bind_hlsl, "msl": _bind_msl}[language]
    return bind(kernel, entry_point, text, buffers).encode()


def _buffers(kernel: Kernel) -> tuple[_Buffer, ...]:
    sidecar, operands = kernel.sidecar, kernel.compiled.legal.bound
    described = {binding["binding"]: binding for step in sidecar["passes"] for binding in step["bindings"]}
    found = []
    for number, binding in sorted(described.items()):
        is_uniform = binding["address_space"] == "uniform"
        name = _PARAMS if is_uniform else operands[number].name
        nbytes = sidecar["structs"][binding["wgsl_type"]]["size"] if is_uniform else 0
        is_written = not is_uniform and operands[number].is_output
        found.append(_Buffer(binding["group"], number, name, binding["buffer"], is_written, is_uniform, nbytes))
    return tuple(found)


def _used(step: dict[str, Any], buffers: Sequence[_Buffer]) -> list[_Buffer]:
    numbers = {binding["binding"] for binding in step["bindings"]}
    return [buffer for buffer in buffers if buffer.number in numbers]


def _bind_glsl(kernel: Kernel, entry_point: str, text: str, buffers: Sequence[_Buffer]) -> str:
    step = next(step for step in kernel.sidecar["passes"] if step["entry_point"] == entry_point)
    used = _used(step, buffers)
    found = [(match[1], match[3], int(match[6]), int(match[7]), match[8] is None) for match in _GLSL_BLOCK.finditer(text)]
    wanted = [(*(("std140", "uniform") if b.is_uniform else ("std430", "buffer")), b.group, b.number, b.is_uniform) for b in used]
    _hold("glsl", found == wanted and len(_GLSL_LAYOUT.findall(text)) == len(wanted), _shown(used))
    _hold("glsl", text.startswith(_GLSL_VERSION), "version 310 es in the first line")
    bound = _GLSL_BLOCK.sub(lambda match: match[0].replace(f"({match[1]})", f"({match[1]}, binding = {match[7]})", 1), text)
    lines = [f"Bindings have the numbers of {kernel.name}.json: `binding = N` is @binding(N), and groups are not in this language."]
    lines += [f"  {'uniform' if buffer.is_uniform else 'storage'} block {buffer.number}: {_described(buffer)}" for buffer in used]
    # A comment may not stand above the version in GLSL ES.
    return _GLSL_VERSION + _comment(lines) + bound.removeprefix(_GLSL_VERSION)


def _bind_hlsl(kernel: Kernel, _: str, text: str, buffers: Sequence[_Buffer]) -> str:
    found = [(match[2], int(match[3]), int(match[4] or 0)) for match in _HLSL_BUFFER.finditer(text)]
    wanted = [(_register(buffer), buffer.number, buffer.group) for buffer in buffers]
    named = all(_is_of(name[1], buffer.name) for name, buffer in zip(_HLSL_BUFFER.finditer(text), buffers, strict=False))
    _hold("hlsl", found == wanted and named and text.count("register(") == len(wanted), _shown(buffers))
    group = f", space{buffers[0].group} its group" if buffers[0].group else ""
    lines = [f"Bindings have the numbers of {kernel.name}.json: N in tN, uN and bN is that of @binding(N){group}."]
    lines += [f"  {_register(buffer)}{buffer.number}: {_described(buffer)}" for buffer in buffers]
    entries = _named_entries(kernel, "hlsl", [match[1] for match in _HLSL_ENTRY.finditer(text)])
    return _comment([*lines, *(f"Entry point {entry} is the function {name}." for entry, name in entries if entry != name)]) + text


def _bind_msl(kernel: Kernel, _: str, text: str, buffers: Sequence[_Buffer]) -> str:
    first = _MSL_FIRST.match(text)
    _hold("msl", first is not None, "the language in the first line")
    head = first[0] if first is not None else ""
    sizes, free = _sizes(text, buffers), buffers[-1].number + 1
    headers = list(_MSL_ENTRY.finditer(text))
    entries = _named_entries(kernel, "msl", [match[1] for match in headers])
    parts, end = [], len(head)
    for step, header in zip(kernel.sidecar["passes"], headers, strict=True):
        parts += [text[end : header.start(2)], _bind_arguments(header[2], _used(step, buffers), free)]
        end = header.end(2)
    bound = "".join([*parts, text[end:]])
    _hold("msl", "user(fake" not in bound, "nothing that is left without a number")
    lines = [f"Bindings have the numbers of {kernel.name}.json: [[buffer(N)]] is @binding(N), and groups are not in this language."]
    lines += [f"  buffer {buffer.number}: {_described(buffer, 1)}" for buffer in buffers]
    reads = "" if f"{SIZES}." in bound else "; nothing here reads them"
    lines.append(f"  buffer {free}: {SIZES}, {len(sizes)} uint in this order, the bytes that are bound of each buffer{reads}")
    lines += [f"    {member}: of buffer {buffer.number}, {buffer.title}" for member, buffer in sizes]
    for (entry, name), step in zip(entries, kernel.sidecar["passes"], strict=True):
        lines.append(f"Entry point {entry} is the function {name}, in threadgroups of {step['workgroup_size'][0]} threads.")
    return head + _comment(lines) + bound


def _sizes(text: str, buffers: Sequence[_Buffer]) -> list[tuple[str, _Buffer]]:
    """Return the members of the struct of sizes, each with its buffer: naga numbers them as the text declares its variables."""
    stored = [(f"size{place}", buffer) for place, buffer in enumerate(buffers) if not buffer.is_uniform]
    match = _MSL_SIZES.search(text)
    members = [] if match is None else re.findall(r"size\d+", match[1])
    _hold("msl", members == [member for member, _ in stored], f"sizes of {len(stored)} buffers")
    return stored


def _bind_arguments(text: str, used: Sequence[_Buffer], free: int) -> str:
    """Return the parameters of an entry point, numbered: the buffers that it uses, and the sizes last."""
    wanted = [("constant" if buffer.is_uniform else "device", buffer.name, buffer.number) for buffer in used]
    wanted.append(("constant", SIZES, free))
    found = list(_MSL_ARGUMENT.finditer(text))
    alike = len(found) == len(wanted) and all(
        match[2] == space and (match[5] == name if name == SIZES else _is_of(match[5], name))
        for match, (space, name, _) in zip(found, wanted, strict=True)
    )
    read_only = all(match[4] for match, buffer in zip(found, used, strict=False) if not buffer.is_written and not buffer.is_uniform)
    _hold("msl", alike and read_only, _shown(used))
    numbers = {match.start(): number for match, (_, _, number) in zip(found, wanted, strict=True)}
    return _MSL_ARGUMENT.sub(lambda match: match[0].replace("[[user(fake0)]]", f"[[buffer({numbers[match.start()]})]]"), text)


def _named_entries(kernel: Kernel, language: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each entry point of the kernel with the function's name in the text."""
    entries = [step["entry_point"] for step in kernel.sidecar["passes"]]
    alike = len(names) == len(entries) and all(_is_of(name, entry) for name, entry in zip(names, entries, strict=True))
    _hold(language, alike, f"entry points {', '.join(entries)}")
    return list(zip(entries, names, strict=True))


def _is_of(name: str, wgsl: str) -> bool:
    """Return whether naga may write `name` for `wgsl`: it joins underscores, and sets names apart with one more and a number."""
    stem = re.escape(re.sub("_+", "_", wgsl).rstrip("_"))
    return re.fullmatch(rf"(?:gen_)?{stem}(?:_\d*)?", name) is not None


def _register(buffer: _Buffer) -> str:
    return "b" if buffer.is_uniform else "u" if buffer.is_written else "t"


def _described(buffer: _Buffer, align: int = _UNIFORM_ALIGN) -> str:
    if not buffer.is_uniform:
        return buffer.title
    padded = -(-buffer.nbytes // align) * align
    return f"{buffer.title}, {buffer.nbytes} bytes" + (f" in a buffer of at least {padded}" if padded != buffer.nbytes else "")


def _shown(buffers: Sequence[_Buffer]) -> str:
    return ", ".join(f"{buffer.name} at {buffer.number}" for buffer in buffers)


def _comment(lines: Sequence[str]) -> str:
    return "".join(f"// {line}\n" for line in lines)


def _hold(language: str, holds: bool, wanted: str) -> None:  # noqa: FBT001 - a condition, as `assert` takes it
    if not holds:
        hint = "npm install naga-wasm@30.1.0, and take a `naga` of another version off PATH"
        raise QgenError("QG954", f"naga wrote {language} that cannot be bound: it has not exactly {wanted}", hint=hint)
