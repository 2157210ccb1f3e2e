"""What README shows of each host, taken from its text and executed: a block is put between a few lines that make and read buffers."""

from __future__ import annotations

import json
import os
import re
import shlex
import struct
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import qgen
from qgen.arrays import from_codes, pack_words
from qgen.cli import main
from qgen.kernel import Kernel
from qgen.runtime.drivers import driver_environment
from qgen.validate import validate_texts
from tests.embedding.adapters import open_native
from tests.embedding.compilers import HERE, WGPU, compile_c, compile_rust

README: Final = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HOST: Final = ("", "js", "python", "c", "rust", "python", "", "wgsl")
"""The languages of the blocks under "In a host", in order; those of the second Python are the sidecar's."""
EMIT, JS, PYTHON, C, RUST, SIDECAR, FUNCTION, SHADER = range(len(_HOST))
MOST_LINES: Final = 200
LIMIT: Final = 134217728
STACKS: Final = {"wgpu": "llvmpipe", "dawn": "swiftshader"}
SHAPES: Final = {"x": (64, 128), "x_scale": (64, 4)}

PAGE: Final = """
const adapter = await navigator.gpu.requestAdapter();
const device = await adapter.requestDevice();
const encoder = device.createCommandEncoder();
const usage = GPUBufferUsage;
const makeBuffer = size => device.createBuffer({ size, usage: usage.STORAGE | usage.COPY_SRC | usage.COPY_DST });
%s
for (const [buffer, text] of [[x, '%s'], [x_scale, '%s']]) {
  device.queue.writeBuffer(buffer, 0, Uint8Array.from(atob(text), character => character.charCodeAt(0)));
}
const staging = device.createBuffer({ size: y.size, usage: usage.MAP_READ | usage.COPY_DST });
encoder.copyBufferToBuffer(y, 0, staging, 0, y.size);
device.queue.submit([encoder.finish()]);
await staging.mapAsync(GPUMapMode.READ);
const { vendor, architecture, description } = adapter.info;
export const result = {
  adapter: `${vendor} ${architecture} ${description}`,
  y: btoa(String.fromCharCode(...new Uint8Array(staging.getMappedRange()))),
};
"""
CASES: Final = r"""
#ifndef INCLUDE_CASES
%s
#else
static int64_t work(FILE *in, FILE *out, WGPUAdapter adapter) {
    WGPUDevice device = open_device(adapter, 0);
    WGPUQueue queue = wgpuDeviceGetQueue(device);
    weights_kernel kernel;
    weights_create(device, &kernel);
    const int64_t sizes[WEIGHTS_TENSORS] = { %s };
    qgen_place tensors[WEIGHTS_TENSORS];
    for (int i = 0; i < WEIGHTS_TENSORS; ++i) {
        tensors[i] = upload(device, queue, in, sizes[i]);
    }
    qgen_place uniforms = { make_buffer(device, WEIGHTS_UNIFORM_BYTES, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst), 0 };
    WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
    WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
    const char *error = dequantize(&kernel, queue, 134217728, pass, tensors, uniforms);
    require(error == NULL, error);
    wgpuComputePassEncoderEnd(pass);
    wgpuComputePassEncoderRelease(pass);
    submit(queue, encoder);
    download(device, queue, out, tensors[WEIGHTS_Y], sizes[WEIGHTS_Y]);
    return 1;
}
static int64_t (*const cases[])(FILE *, FILE *, WGPUAdapter) = { work };
#endif
"""
MAIN: Final = """
fn main() {
    dequantize(134217728, |run| {
        println!("{:?} {:?} {:?} {:?}", run.offsets, run.sizes, run.params.to_bytes(), run.dispatches[0]);
    })
    .unwrap();
}
"""
BINDINGS: Final = """
@group(0) @binding(0) var<storage, read> weight_x: array<u32>;
@group(0) @binding(1) var<storage, read> weight_scale: array<u32>;
@group(0) @binding(2) var<storage, read> input: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;
"""


def host_blocks() -> list[str]:
    """Return the blocks under "In a host"."""
    section = README.partition("\n## In a host\n")[2].partition("\n## ")[0]
    blocks = _FENCE.findall(section)
    assert tuple(language for language, _ in blocks) == _HOST
    return [text for _, text in blocks]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the commands of README have been run."""
    made = tmp_path_factory.mktemp("readme")
    blocks = host_blocks()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for command in (blocks[EMIT], blocks[FUNCTION]):
            name, *words = shlex.split(command)
            assert name == "qgen"
            assert main(words) == 0
    return made


@cache
def kernel() -> Kernel:
    """Return the kernel, as the reference and the plan have it."""
    return qgen.compile("DequantizeLinear", x="int4", scale="float16", granularity=qgen.blocked(axis=-1, block_size=32), name="weights")


@cache
def inputs() -> Mapping[str, Any]:
    """Return inputs; scales are powers of two, so that sums of products with small integers are exact in float32."""
    rng = np.random.default_rng(11)
    x = from_codes(rng.integers(0, 16, 64 * 128), "int4", SHAPES["x"])
    return {"x": x, "x_scale": (2.0 ** rng.integers(-5, 3, SHAPES["x_scale"])).astype(np.float16)}


def words() -> dict[str, bytes]:
    """Return the inputs as they are bound."""
    return {"x": pack_words(inputs()["x"], "int4").tobytes(), "x_scale": pack_words(inputs()["x_scale"], "float16").tobytes()}


def expected() -> bytes:
    """Return what y is."""
    return pack_words(kernel().reference(inputs())["y"], "float16").tobytes()


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


def test_the_first_lines_of_python_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = next(text for language, text in _FENCE.findall(README) if language == "python")
    assert "qgen.compile(" in block
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - our own text
    assert len(list((tmp_path / "shaders").iterdir())) == 2


@pytest.mark.parametrize("host", ["node", "chromium"])
def test_javascript(host: str, folder: Path) -> None:
    data = [b64encode(content).decode() for content in words().values()]
    (folder / "package.json").write_text('{ "type": "module" }\n', encoding="utf-8")
    (folder / "page.mjs").write_text(PAGE % (host_blocks()[JS], *data), encoding="utf-8")
    with driver_environment("dawn"):
        command: list[str | Path] = ["node", HERE / "readme.mjs", host, folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert "swiftshader" in result["adapter"].lower()
    assert b64decode(result["y"]) == expected()


@pytest.mark.parametrize("stack", STACKS)
def test_python(stack: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    device = open_native(stack, STACKS[stack])
    encoder = device.create_command_encoder()
    names: dict[str, Any] = {"device": device, "encoder": encoder, "make_buffer": lambda size: make_buffer(device, size)}
    try:
        exec(compile(host_blocks()[PYTHON], "README.md", "exec"), names)  # noqa: S102 - our own text
    finally:
        for module in ("shaders", "shaders.weights"):
            sys.modules.pop(module, None)
    assert finish(device, encoder, names["buffers"]) == expected()


def make_buffer(device: Any, size: int) -> Any:  # noqa: ANN401 - the API has no types
    return device.create_buffer(size=size, usage="STORAGE|COPY_SRC|COPY_DST")


def finish(device: Any, encoder: Any, buffers: Mapping[str, Any]) -> bytes:  # noqa: ANN401 - the API has no types
    """Return y after what was encoded."""
    for name, data in words().items():
        device.queue.write_buffer(buffers[name], 0, data)
    device.queue.submit([encoder.finish()])
    return bytes(device.queue.read_buffer(buffers["y"]))


def test_c(folder: Path, tmp_path: Path) -> None:
    sizes = kernel().plan(SHAPES).sizes
    given = words()
    listed = ", ".join(str(sizes[name]) for name in ("x", "x_scale", "y"))
    (tmp_path / "webgpu").mkdir()
    (tmp_path / "webgpu" / "webgpu.h").symlink_to(WGPU / "webgpu.h")
    (tmp_path / "cases.h").write_text(CASES % (host_blocks()[C], listed), encoding="utf-8")
    parts = [struct.pack("<qq", 1, 0), *(struct.pack("<q", len(data)) + data for data in (*given.values(), b""))]
    (tmp_path / "works").write_bytes(b"".join(parts))
    host = tmp_path / "host"
    library = (WGPU / "libwgpu_native-release.so", f"-Wl,-rpath,{WGPU}")
    compile_c(tmp_path, "cxx17", "host.c", f"-I{folder}", "-fsyntax-only")
    compile_c(tmp_path, "c11", "host.c", f"-I{folder}", "-x", "none", *library, "-o", host)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VK_")}
    command = [host, tmp_path / "works", tmp_path / "results"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "llvmpipe" in done.stdout
    assert (tmp_path / "results").read_bytes()[8:][512:-512] == expected()


def test_rust(folder: Path, tmp_path: Path) -> None:
    (folder / "main.rs").write_text(f"{host_blocks()[RUST]}{MAIN}", encoding="utf-8")
    compile_rust(folder / "main.rs", "-o", tmp_path / "main")
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plan = kernel().plan(SHAPES)
    (step,) = plan.passes
    sizes = [plan.sizes[name] for name in ("x", "x_scale", "y")]
    assert done.stdout == f"[0, 0, 0] {sizes} {list(plan.uniforms['params'])} {list(step.dispatch)}\n"


def test_the_sidecar_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(host_blocks()[SIDECAR], "README.md", "exec"), names)  # noqa: S102 - our own text
    sidecar, device = names["sidecar"], open_native("wgpu", "llvmpipe")
    (step,) = sidecar["passes"]
    module = device.create_shader_module(code=(folder / "shaders" / step["wgsl"]["file"]).read_text(encoding="utf-8"))
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": step["entry_point"]})
    buffers = {name: make_buffer(device, size) for name, size in names["sizes"].items()}
    buffers["params"] = device.create_buffer_with_data(data=np.array(names["params"], "<u4").tobytes(), usage="UNIFORM")
    entries = [{"binding": each["binding"], "resource": {"buffer": buffers[each["buffer"]]}} for each in step["bindings"]]
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
    compute_pass.dispatch_workgroups(*names["workgroups"])
    compute_pass.end()
    assert finish(device, encoder, buffers) == expected()


@pytest.mark.parametrize("stack", STACKS)
def test_the_function_in_a_shader(stack: str, folder: Path) -> None:
    text = BINDINGS + host_blocks()[SHADER] + (folder / "shaders" / "weight.wgsl").read_text(encoding="utf-8")
    assert not [report.raw for report in validate_texts([("README.md", text)], "all") if not report.ok]
    device = open_native(stack, STACKS[stack])
    vector = np.random.default_rng(12).integers(-8, 8, 128).astype(np.float32)
    data = [*words().values(), vector.tobytes(), bytes(4 * 64)]
    buffers = [device.create_buffer_with_data(data=content, usage="STORAGE|COPY_SRC") for content in data]
    module = device.create_shader_module(code=text)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "multiply"})
    entries = [{"binding": number, "resource": {"buffer": buffer}} for number, buffer in enumerate(buffers)]
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
    compute_pass.dispatch_workgroups(1)
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    found = np.frombuffer(bytes(device.queue.read_buffer(buffers[-1])), np.float32)
    scales = np.repeat(inputs()["x_scale"].astype(np.float64), 32, axis=1)
    np.testing.assert_array_equal(found, (inputs()["x"].astype(np.float64) * scales) @ vector.astype(np.float64))
