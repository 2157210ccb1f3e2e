"""A working folder with kernels, arrays, lists and a model, and the command line run in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import qgen
from qgen.cli import main

_HASH = re.compile(r"(?<=[a-z])_[0-9a-f]{8}\b")

LIST = """\
# The kernels of a project.
[[kernel]]
op = "QuantizeLinear"
x = "float32"
y = "uint4"
zero_point = true
blocked = "-1:32"
shape = [4, 33]
name = "quantize_weights"

[[kernel]]
op = "DequantizeLinear"
x = "int8"
scale = "float16"
per_axis = 0
name = "dequantize_rows"
"""


@dataclass(frozen=True, slots=True)
class Run:
    stdout: str
    stderr: str
    status: int

    def transcript(self, words: str) -> str:
        """Return the command line, what it printed on which stream, and its exit code; the hashes in kernels' names are left out."""
        streams = "".join(
            f"--- {name}\n{text}" for name, text in (("standard output", self.stdout), ("standard error", self.stderr)) if text
        )
        return f"$ qgen {words}".rstrip() + f"\n{_HASH.sub('_########', streams)}--- exit code {self.status}\n"


Command = Callable[[str], Run]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder: `blocked` and `rows` are kernels, `.npy` files fit `blocked`, and of the others each is what it is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    blocks = qgen.blocked(-1, 32)
    qgen.compile("QuantizeLinear", x="float32", y="uint4", zero_point=True, granularity=blocks, shape=(4, 33), name="blocked").save(
        "kernels"
    )
    qgen.compile("DequantizeLinear", x="int4", scale="bfloat16", zero_point=True, granularity=qgen.per_axis(-1), name="rows").save(
        "kernels"
    )
    rng = np.random.default_rng(7)
    np.save("x.npy", rng.standard_normal((4, 33), np.float32))
    np.save("scale.npy", rng.uniform(0.05, 0.2, (4, 2)).astype(np.float32))
    np.save("zero.npy", rng.integers(0, 16, (4, 2)).astype(ml_dtypes.uint4))
    np.save("half.npy", np.ones((4, 33), np.float16))
    np.save("short.npy", np.ones((4, 32), np.float32))
    Path("kernels.toml").write_text(LIST, encoding="utf-8")
    Path("text.txt").write_text("no kernel\n", encoding="utf-8")
    Path("array.json").write_text("[1, 2]\n", encoding="utf-8")
    Path("other.json").write_text('{"format": "qgen.bundle"}\n', encoding="utf-8")
    Path("empty").mkdir()
    write_model(Path("model.onnx"))
    Path("profile.toml").write_text(PROFILE, encoding="utf-8")
    return tmp_path


PROFILE = """\
format = 1
adapter = "some adapter"
backend = "wgpu:vulkan"
target = "webgpu"

[[kernel]]
op = "QuantizeLinear"
x = "float32"
scale = "float32"
y = "uint8"
zero_point = true
granularity = "per_tensor"
numerics = "exact"
plain_scale = true
lanes = 16
workgroup_size = 32
time = 0.5
"""
"""Of one of the model's kernels."""


def write_model(path: Path) -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], name="dequantize"),
        helper.make_node("QuantizeLinear", ["x", "scales", "zero"], ["w"], name="mismatched", axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, "n"]), helper.make_tensor_value_info("w", TensorProto.UINT8, [2, "n"])],
        [
            numpy_helper.from_array(np.array(0.5, np.float32), "scale"),
            numpy_helper.from_array(np.array(3, np.uint8), "zero"),
            numpy_helper.from_array(np.ones((3, 3, 3), np.float32), "scales"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


@pytest.fixture
def command(folder: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run one command line in the folder."""
    assert folder.is_dir()

    def run(words: str) -> Run:
        capsys.readouterr()
        status = main(shlex.split(words))
        streams = capsys.readouterr()
        return Run(streams.out, streams.err, status)

    return run
