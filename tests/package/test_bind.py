"""The bindings of kernels in other shading languages, read back by glslang and SPIRV-Tools: each of the sidecar's, once, by its number."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

import qgen
from qgen.errors import QgenError
from qgen.kernel import Kernel
from qgen.package.bind import bind_text
from qgen.package.translate import LANGUAGES, _find_writer, translate_kernel
from qgen.shapes import Blocked, PerAxis, PerTensor
from tests.goldens import Goldens

DEQUANTIZE: Final[dict[str, Any]] = {"op": "DequantizeLinear", "x": "int4", "scale": "float16", "zero_point": True}
KERNELS: Final[dict[str, dict[str, Any]]] = {
    "per-tensor": {"op": "QuantizeLinear", "x": "float32"},
    "per-tensor, baked": {**DEQUANTIZE, "granularity": PerTensor(), "shape": (5, 7)},
    "per-axis": {**DEQUANTIZE, "granularity": PerAxis(1), "group": 1},
    "per-axis, baked": {"op": "QuantizeLinear", "x": "float16", "y": "uint4", "granularity": PerAxis(0), "shape": (8, 16)},
    "blocked": {"op": "DequantizeLinear", "x": "int4", "scale": "float16", "granularity": Blocked(-1, 32), "name": "weights"},
    "blocked, baked": {**DEQUANTIZE, "granularity": Blocked(0, 2), "shape": (4, 6), "group": 3, "entry_point": "gl__foo9_"},
    "strict": {"op": "QuantizeLinear", "x": "bfloat16", "y": "float8e4m3fn", "numerics": "strict", "entry_point": "kernel"},
    "for a target": {**DEQUANTIZE, "granularity": PerAxis(-1), "target": "baseline", "entry_point": "main2"},
    "dynamic": {"op": "DynamicQuantizeLinear", "x": "float32", "group": 1, "name": "dynamic"},
    "dynamic, baked": {"op": "DynamicQuantizeLinear", "x": "float32", "shape": (4, 8), "entry_point": "quantize"},
    "dynamic, by blocks": {"op": "DynamicQuantizeLinear", "x": "float32", "granularity": Blocked(-1, 4)},
}
"""A kernel of every kind, by arguments of `qgen.compile`."""


def _kernel(kind: str) -> Kernel:
    return qgen.compile(**KERNELS[kind])


def _wanted(step: dict[str, Any]) -> list[tuple[int, int]]:
    return [(binding["group"], binding["binding"]) for binding in step["bindings"]]


def _decorations(path: Path) -> list[tuple[int, int]]:
    """Return the set and the number of each binding in a module of SPIR-V."""
    done = subprocess.run(["spirv-dis", path], capture_output=True, text=True, timeout=60, check=True)
    sets = dict(re.findall(r"OpDecorate (%\w+) DescriptorSet (\d+)", done.stdout))
    numbers = dict(re.findall(r"OpDecorate (%\w+) Binding (\d+)", done.stdout))
    assert sets.keys() == numbers.keys()
    return sorted((int(sets[name]), int(number)) for name, number in numbers.items())


def _read_back(folder: Path, data: bytes, *options: str) -> list[tuple[int, int]]:
    """Return the bindings of a text of GLSL or HLSL, as glslang understands it for Vulkan, where a block without a number is an error."""
    text, module = folder / "text", folder / "text.spv"
    text.write_bytes(data)
    done = subprocess.run(
        ["glslangValidator", "-V", "-S", "comp", *options, "-o", module, text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return _decorations(module)


@pytest.mark.parametrize("kind", KERNELS)
def test_every_binding_has_the_number_of_the_sidecar(kind: str, tmp_path: Path) -> None:
    kernel = _kernel(kind)
    files = translate_kernel(kernel, LANGUAGES)
    steps = kernel.sidecar["passes"]
    (tmp_path / "naga.spv").write_bytes(files[f"{kernel.name}.spv"])
    assert _decorations(tmp_path / "naga.spv") == sorted({pair for step in steps for pair in _wanted(step)})
    for step in steps:
        comp = f"{kernel.name}.{step['entry_point']}.comp" if len(steps) > 1 else f"{kernel.name}.comp"
        # GLSL ES has no groups: glslang puts all into the set 0
        assert _read_back(tmp_path, files[comp]) == [(0, number) for _, number in _wanted(step)]
        hlsl = files[f"{kernel.name}.hlsl"]
        assert _read_back(tmp_path, hlsl, "-D", "-e", _function(hlsl.decode(), step["entry_point"])) == _wanted(step)
    _check_msl(kernel, files[f"{kernel.name}.metal"].decode())
    for name, data in files.items():
        assert name.endswith(".spv") or b"user(fake" not in data


def _function(text: str, entry_point: str) -> str:
    """Return what the comment at the head of a text says that an entry point is called in it."""
    match = re.search(rf"^// Entry point {entry_point} is the function (\w+)", text, re.MULTILINE)
    return entry_point if match is None else match[1]


def _check_msl(kernel: Kernel, text: str) -> None:
    """Hold a text of MSL to the sidecar: the parameters of each entry point, and the sizes as its head describes them."""
    steps = kernel.sidecar["passes"]
    numbered = {binding["binding"]: binding["buffer"] for step in steps for binding in step["bindings"]}
    free = max(numbered) + 1
    for step in steps:
        _, _, rest = text.partition(f"kernel void {_function(text, step['entry_point'])}(\n")
        arguments = [line for line in rest.partition("\n) {")[0].split("\n") if "thread_position_in_grid" not in line]
        assert all(line.count("[[") == 1 for line in arguments)
        found = [
            (re.sub(r"_\d*$", "", match[1]), int(match[2]))
            for match in map(re.compile(r".*& (\w+) \[\[buffer\((\d+)\)\]\]").fullmatch, arguments)
            if match
        ]
        assert found == [*((binding["buffer"], binding["binding"]) for binding in step["bindings"]), ("_buffer_sizes", free)]
        assert len(arguments) == len(found)
    head = text.partition("#include")[0].split("\n")
    assert [line for line in head if re.fullmatch(r"//   buffer \d+: .*", line)][-1].startswith(f"//   buffer {free}: _buffer_sizes, ")
    described = re.findall(r"^//     (size\d+): of buffer (\d+), (\w+)$", text, re.MULTILINE)
    assert [member for member, _, _ in described] == re.findall(r"^    uint (size\d+);$", text, re.MULTILINE)
    stored = {number: name for number, name in numbered.items() if name != "params"}
    assert {int(number): name for _, number, name in described} == stored
    assert all(f"uint size{number};" in text for number in stored)


def test_a_text_begins_with_how_it_is_bound(golden: Goldens) -> None:
    heads = []
    for kind in ("blocked", "dynamic"):
        for name, data in translate_kernel(_kernel(kind), ["glsl", "hlsl", "msl"]).items():
            lines = data.decode().split("\n")
            count = next(place for place, line in enumerate(lines) if not line.startswith(("//", "#version")))
            heads += [f"== {name}", *lines[:count]]
    golden.check("package/also_heads.txt", "\n".join(heads) + "\n")


def test_sizes_are_numbered_as_variables_are_declared() -> None:
    """What the head says of `_buffer_sizes`, of naga itself: the length of a buffer is taken from the member of its place."""
    declared = "".join(f"@group(0) @binding({number}) var<storage, read_write> b{number}: array<u32>;\n" for number in range(4))
    for number in range(4):
        body = f"b0[0] = arrayLength(&b{number});"
        text = _find_writer()(f"{declared}@compute @workgroup_size(1) fn main() {{ {body} }}", "msl", "main").decode()
        assert set(re.findall(r"_buffer_sizes\.(\w+)", text)) == {f"size{number}"}


BROKEN: Final = {
    "a binding without its placeholder": ("msl", "& x_scale [[user(fake0)]]", "& x_scale"),
    "a binding of another name": ("msl", "& x_scale [[", "& y_scale [["),
    "an argument too many": ("msl", ", constant Params&", ", device type_1& more [[user(fake0)]]\n, constant Params&"),
    "a binding that is numbered already": ("msl", "& x_scale [[user(fake0)]]", "& x_scale [[buffer(1)]]"),
    "another address space": ("msl", "constant Params&", "device Params&"),
    "an input that can be written": ("msl", "device type_1 const& x_scale", "device type_1& x_scale"),
    "a size too few": ("msl", "    uint size2;\n", ""),
    "no sizes": ("msl", ", constant _mslBufferSizes& _buffer_sizes [[user(fake0)]]\n", ""),
    "another entry point": ("msl", "kernel void main_", "kernel void other"),
    "a placeholder elsewhere": ("msl", "#include <simd/simd.h>", "// [[user(fake1)]]"),
    "another first line": ("msl", "// language: metal", "// metal"),
    "a block without its name": ("glsl", "{ uint _group_0_binding_1_cs[]; }", "{ uint x_scale[]; }"),
    "a block of another group": ("glsl", "{ uint _group_0_binding_1_cs[]; }", "{ uint _group_1_binding_1_cs[]; }"),
    "two blocks of a number": ("glsl", "{ uint _group_0_binding_1_cs[]; }", "{ uint _group_0_binding_0_cs[]; }"),
    "a block that has a number": ("glsl", "layout(std140)", "layout(std140, binding = 3)"),
    "a block of another layout": ("glsl", "layout(std140)", "layout(std430)"),
    "another version": ("glsl", "#version 310 es", "#version 320 es"),
    "another register": ("hlsl", "register(t1)", "register(t4)"),
    "another space": ("hlsl", "register(t1)", "register(t1, space1)"),
    "a register of another name": ("hlsl", "x_scale : register", "z_scale : register"),
    "no register": ("hlsl", " : register(u2)", ""),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_the_kernels_is_refused(case: str, golden: Goldens) -> None:
    language, old, new = BROKEN[case]
    kernel = _kernel("blocked")
    text = _find_writer()(kernel.wgsl, language, "main").decode()
    assert bind_text(kernel, language, "main", text.encode())
    assert text.count(old) == 1
    with pytest.raises(QgenError) as caught:
        bind_text(kernel, language, "main", text.replace(old, new).encode())
    assert caught.value.code == "QG954"
    if case == "a binding without its placeholder":
        golden.check("errors/QG954.err", f"{caught.value}\n")
