"""DynamicQuantizeLinear from the command line: a kernel of several passes is written, checked, run and found in a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import qgen
from tests.cli.conftest import Command

OP = "DynamicQuantizeLinear"


@pytest.mark.parametrize(
    "options", ["", "--shape 3,7", "--blocked -1:4 --numerics strict", "--per-axis 0 --entry-point quantize --group 2"]
)
def test_what_emit_writes_check_and_run_read_back(options: str, command: Command) -> None:
    assert command(f"emit {OP} --x float32 {options} --name dynamic -o out").status == 0
    assert json.loads(Path("out/dynamic.json").read_text(encoding="utf-8"))["op"]["type"] == OP
    checked = command("check out --device cpu")
    assert checked.status == 0
    assert "every bit as the oracle's" in checked.stdout
    x = np.linspace(-3, 9, 21, dtype=np.float32).reshape(3, 7)
    np.save("values.npy", x)
    assert command("run out/dynamic.json --in x=values.npy --out y=y.npy y_scale=s.npy --out y_zero_point=z.npy --device cpu").status == 0
    granularity = qgen.blocked(-1, 4) if "blocked" in options else qgen.per_axis(0) if "axis" in options else None
    wanted = qgen.compile(OP, x="float32", granularity=granularity).reference({"x": x})
    for file, name in (("y", "y"), ("s", "y_scale"), ("z", "y_zero_point")):
        found = np.load(f"{file}.npy")
        assert (found.dtype, found.shape, found.tobytes()) == (wanted[name].dtype, wanted[name].shape, wanted[name].tobytes())


def test_a_kernel_whose_reduction_is_changed_is_not_what_the_sidecar_says(command: Command) -> None:
    command(f"emit {OP} --x float32 --name dynamic -o out")
    path = Path("out/dynamic.wgsl")
    path.write_text(path.read_text(encoding="utf-8").replace("atomicMax", "atomicMin"), encoding="utf-8")
    checked = command("check out --device cpu")
    assert checked.status == 1
    assert "QG904" in checked.stderr


def test_show_has_the_kernels_of_the_program(command: Command) -> None:
    shown = command(f"show {OP} --x float32 --print-ir-after split-reductions").stdout
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("kernel")] == ["reduce", "finish", "main"]


def test_a_node_of_a_model_gets_its_kernel(command: Command) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    outputs = [helper.make_tensor_value_info(name, type_, None) for name, type_ in (("y", 2), ("s", 1), ("z", 2))]
    graph = helper.make_graph([helper.make_node(OP, ["x"], ["y", "s", "z"], name="quantize")], "graph", [x], outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), "dynamic.onnx")
    run = command("onnx dynamic.onnx -o bundle")
    assert run.status == 0
    name = qgen.compile(OP, x="float32", shape=(2, 3)).name
    assert run.stdout.splitlines() == [f"{OP}  quantize  {name}", "1 node, 1 kernel, 0 nodes left out"]
    assert command("check bundle --device cpu").status == 0
