"""Templates for ONNX Runtime: its tool takes them, and what the provider makes of them is accepted and right."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import qgen
from qgen.arrays import pack_words
from qgen.check import make_inputs
from qgen.check.compare import find_mismatches
from qgen.errors import QgenError
from qgen.glue import write_glue
from qgen.kernel import Kernel
from qgen.oracle import evaluate_reference
from qgen.runtime import open_device
from qgen.sidecar.plan import DispatchPlan
from qgen.validate import validate_texts
from tests.goldens import Goldens
from tests.runtime.stacks import SWIFTSHADER
from tests.sidecar.samples import sample_kernels

_SCRIPT: Final = Path(__file__).parent / "ort.mjs"
_SECONDS: Final = 300
_SHAPE: Final = (3, 5, 7)
_SAMPLED: Final = 30

FOLDED: Final = qgen.compile(
    "QuantizeLinear", x="float32", y="uint4", shape=(40, 65), target="webgpu:max_workgroups_per_dimension=3", name="folded"
)


def _kernels() -> list[Kernel]:
    return [*sample_kernels(_SAMPLED, seed=31, modes=("exact", "strict")), FOLDED]


def _template(kernel: Kernel) -> tuple[str, str]:
    ((name, text),) = write_glue(kernel.sidecar, kernel.wgsl, ["ort-template"]).items()
    return name, text


def _build(folder: Path, kernels: list[Kernel]) -> list[dict[str, str]]:
    """Return the parts of each shader, as the tool's templates give them."""
    files = dict(map(_template, kernels))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    request = json.dumps({"folder": str(folder), "names": list(files)})
    done = subprocess.run(["node", _SCRIPT], input=request, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def _assemble(kernel: Kernel, shader: dict[str, str], plan: DispatchPlan) -> str:
    """Return the shader as the provider writes it: declarations, what stands beside, and the main function with its index."""
    (step,) = kernel.sidecar["passes"]
    lines = []
    for bound in step["bindings"]:
        if bound["address_space"] == "uniform":
            fields = ", ".join(f"{field['name']}: u32" for field in kernel.sidecar["structs"]["Params"]["fields"])
            lines += [f"struct Uniforms {{ {fields} }};", f"@group(0) @binding({bound['binding']}) var<uniform> uniforms: Uniforms;"]
        else:
            lines.append(f"@group(0) @binding({bound['binding']}) var<storage, {bound['access']}> {bound['buffer']}: {bound['wgsl_type']};")
    size, width = step["workgroup_size"][0], plan.passes[0].dispatch[0]
    start = f"let global_idx = (workgroup_id.y * {width}u + workgroup_id.x) * {size}u + local_idx;"
    arguments = "@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_idx: u32"
    main = [f"@compute @workgroup_size({size})", f"fn main({arguments}) {{", start, shader["main"], "}"]
    return "\n".join([*lines, shader["beside"], *main])


def test_the_tool_takes_the_templates_and_the_shaders_are_right(tmp_path: Path) -> None:
    kernels = _kernels()
    device = open_device(SWIFTSHADER, bounds_checks=False)
    texts = []
    for seed, (kernel, shader) in enumerate(zip(kernels, _build(tmp_path, kernels), strict=True)):
        inputs = make_inputs(kernel, _SHAPE if kernel.request.shape is None else kernel.request.shape, seed)
        plan = kernel.plan({name: array.shape for name, array in inputs.items()})
        text = _assemble(kernel, shader, plan)
        texts.append((kernel.name, text))
        found = device.run(text, _with_text(kernel.sidecar, text), _with_main(plan), _words(kernel, inputs), canaries=True)
        wanted = evaluate_reference(kernel.compiled.checked, kernel.request.granularity, inputs)["y"]
        wrong = find_mismatches(np.frombuffer(found["y"], np.uint32), wanted, kernel.request.signature.y)
        assert not wrong.size, kernel.name
    assert [report for report in validate_texts(texts, engine="all") if not report.ok] == []


def _with_text(sidecar: dict[str, Any], text: str) -> dict[str, Any]:
    step = sidecar["passes"][0]
    return sidecar | {"passes": [step | {"wgsl": step["wgsl"] | {"sha256": hashlib.sha256(text.encode()).hexdigest()}}]}


def _with_main(plan: DispatchPlan) -> DispatchPlan:
    return replace(plan, passes=tuple(replace(step, entry_point="main") for step in plan.passes))


def _words(kernel: Kernel, inputs: dict[str, Any]) -> dict[str, bytes]:
    bound = [operand for operand in kernel.compiled.checked.bound if not operand.is_output]
    return {operand.name: pack_words(inputs[operand.name], operand.dtype).tobytes() for operand in bound}


def test_the_fold_is_left_to_the_provider(golden: Goldens) -> None:
    name, text = _template(FOLDED)
    assert name == f"{FOLDED.name}.wgsl.template"
    assert "let unit = global_idx;" in text
    assert "And no uniforms." in text
    assert "@" not in text
    golden.check("glue/folded.wgsl.template", text)


def test_a_kernel_of_several_dispatches_is_refused(golden: Goldens) -> None:
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32", name="dynamic")
    with pytest.raises(QgenError) as caught:
        _template(kernel)
    assert caught.value.code == "QG951"
    golden.check("errors/QG951.err", f"{caught.value}\n")
