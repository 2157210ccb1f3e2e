"""Chromium, where onnxruntime-web is the other side: samples as the cases of a harness, and its results as rows.

The harness is a folder with `ort_web.mjs` and `page.mjs`, which time ONNX Runtime, any WGSL, copies and the twin in one page, interleaved,
and compare every result bit by bit with what is expected. Its cases are files: a model for ONNX Runtime with scale and zero point as
inputs, the raw bytes of the tensors, texts, and how they are bound. It is no part of this repository, and without it there is no such
comparison. It does not time compilation, which is therefore timed in another page, on small tensors.
"""

from __future__ import annotations

import json
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from qgen.dtypes import DTYPES
from qgen.errors import InternalError, UnavailableError
from qgen.kernel import Kernel
from qgen.runtime import open_device
from qgen.shapes import Blocked, PerAxis, PerTensor, scale_shape
from tests.bench.cases import Case, shape_of
from tests.bench.copies import COPIES
from tests.bench.rows import Ratio, Row, fast_of
from tests.bench.sample import Sample, Tensor

STACK: Final = "chromium"
_HERE: Final = Path(__file__).parent
"""Where the harness finds onnxruntime-web, and playwright-core in the folders above."""
_OPSET: Final = 21
_SMALL: Final = 1 << 12
"""Elements of the tensors on which compilation is timed."""
_RUNS: Final = 4
_WARM: Final = Case("DequantizeLinear", "int2", "float32", "float32", PerTensor())
"""What is compiled before anything is timed."""
_BUDGET_MS: Final = 200_000
"""What the harness may spend on the rounds of one case."""
_SECONDS: Final = 300
"""What it may spend on one case in all."""


@dataclass(frozen=True, slots=True)
class _Job:
    """What is kept of a sample while the browser has its tensors."""

    case: Case
    data: str
    count: int
    nbytes: int
    compile_ms: Mapping[tuple[str, str], float]
    """For each kernel, by form and mode."""


def is_installed() -> bool:
    """Whether onnxruntime-web is here."""
    return (_HERE / "node_modules" / "onnxruntime-web").is_dir()


def measure_in_browser(samples: Iterable[Sample], folder: Path, *, harness: Path, rounds: int, adapter: str) -> Iterator[Row]:
    """Yield a row for each kernel of `samples`; files go into `folder`, and one run of the browser has all of them.

    What takes more than one dispatch is left out: the harness has no such kernels.

    `adapter` is `swiftshader`, or `default` for the browser's own choice. Raises `UnavailableError` QG611 where onnxruntime-web is not
    installed; `InternalError` where the harness fails, or a kernel of a mode other than `fast` has a wrong bit.
    """
    if not is_installed():
        raise UnavailableError("QG611", "onnxruntime-web is not installed", hint="`make bench` installs it")
    folder.mkdir(parents=True, exist_ok=True)
    jobs: list[_Job] = []
    selector = f"{STACK}:{adapter}" if adapter == "swiftshader" else STACK
    _time_compilation(_WARM, "baked", "strict", "webgpu", selector)  # a page is slow at first
    entries: list[dict[str, Any]] = []
    for sample in samples:
        if any(len(kernel.plan(sample.shapes).passes) > 1 for kernel in sample.kernels.values()):
            continue
        entries.append(_write_case(sample, f"case{len(entries)}", folder))
        jobs.append(_Job(sample.case, sample.data, sample.count, sample.nbytes, _compile_ms(sample, selector)))
    if not entries:
        return
    (folder / "cases.json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
    result = _run(folder, harness, rounds, adapter, len(entries))
    browser = next((part for part in str(result["env"]["ua"]).split() if "Chrom" in part), "Chromium")
    for found, job in zip(result["cases"], jobs, strict=False):  # a browser that ends has given some
        yield from _rows(found, job, f"{browser}, {adapter}", is_software=adapter == "swiftshader")


def _compile_ms(sample: Sample, selector: str) -> dict[tuple[str, str], float]:
    """Return what the browser takes for the texts of a sample, those of a smaller tensor."""
    return {
        (form, mode): _time_compilation(sample.case, form, mode, kernel.request.target.name, selector)
        for (form, mode), kernel in sample.kernels.items()
    }


@cache  # a browser keeps what it has compiled
def _time_compilation(case: Case, form: str, mode: str, target: str, selector: str) -> float:
    """Return by how many milliseconds the first run on a small tensor is slower than the quickest of those after it."""
    device, shape = open_device(selector), shape_of(_SMALL, form)
    kernel, shared = case.compile(form, shape, mode, target), scale_shape(case.granularity, shape)
    plan = kernel.plan({name: shared if index else shape for index, name in enumerate(kernel.inputs)})
    inputs = {name: bytes(plan.sizes[name]) for name in kernel.inputs}
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        device.run(kernel.wgsl, kernel.sidecar, plan, inputs)
        times.append(time.perf_counter() - start)
    return 1000 * (times[0] - min(times[1:]))


def make_model(case: Case, inputs: dict[str, Tensor], output: Tensor) -> onnx.ModelProto:
    """Return the model of one node, whose scale and zero point are inputs."""
    attributes: dict[str, Any] = {}
    if isinstance(case.granularity, PerAxis | Blocked):
        attributes["axis"] = case.granularity.axis
    if isinstance(case.granularity, Blocked):
        attributes["block_size"] = case.granularity.block_size
    node = helper.make_node(case.op, list(inputs), ["y"], **attributes)
    graph = helper.make_graph([node], "bench", [_value(name, tensor) for name, tensor in inputs.items()], [_value("y", output)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10)


def _value(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, DTYPES[tensor.dtype].onnx, tensor.shape)


def _run(folder: Path, harness: Path, rounds: int, adapter: str, count: int) -> dict[str, Any]:
    out = folder / "result.json"
    out.unlink(missing_ok=True)
    options = {"mode": "time", "reps": rounds, "budget": _BUDGET_MS, "adapter": adapter, "out": out}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    command = ["node", str(harness / "ort_web.mjs"), str(folder / "cases.json"), *words]
    done = subprocess.run(command, cwd=_HERE, capture_output=True, text=True, timeout=_SECONDS * (count + 1), check=False)
    if not out.exists():  # it exits with 1 for a wrong bit too, which is judged here
        raise InternalError(f"the harness gives no result: {done.stdout}{done.stderr}")
    result: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return result


def _write_case(sample: Sample, name: str, folder: Path) -> dict[str, Any]:
    """Write the files of one case and return how the harness is told of it."""
    for key, tensor in {**sample.inputs, **sample.outputs}.items():
        (folder / f"{name}.{key}.bin").write_bytes(tensor.data.tobytes())
    for key, tensor in sample.outputs.items():
        np.save(folder / f"{name}.{key}.npy", tensor.data)
    entry: dict[str, Any] = {
        "name": name,
        "inputs": {key: _describe(tensor) | {"bin": f"{name}.{key}.bin"} for key, tensor in sample.inputs.items()},
        "outputs": {key: _describe(tensor) for key, tensor in sample.outputs.items()},
        "expect": {key: f"{name}.{key}.npy" for key in sample.outputs},
        "kernels": [
            _write_kernel(kernel, f"{form} {mode}", sample, folder / f"{name}.{form}.{mode}.wgsl".replace(" ", "_"))
            for (form, mode), kernel in sample.kernels.items()
        ],
        "copy": COPIES,
    }
    if sample.case.has_ort:
        (folder / f"{name}.onnx").write_bytes(make_model(sample.case, dict(sample.inputs), sample.outputs["y"]).SerializeToString())
        entry["model"] = f"{name}.onnx"
    return entry


def _describe(tensor: Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "dims": tensor.shape}


def _write_kernel(kernel: Kernel, label: str, sample: Sample, path: Path) -> dict[str, Any]:
    plan = kernel.plan(sample.shapes)
    (step,) = plan.passes
    path.write_text(kernel.wgsl, encoding="utf-8")
    bindings = []
    for bound in step.bindings:
        if bound.buffer in plan.uniforms:
            data = plan.uniforms[bound.buffer]
            bindings.append({"binding": bound.binding, "uniform": struct.unpack(f"<{len(data) // 4}I", data)})
        else:
            bindings.append({"binding": bound.binding, "name": bound.buffer})
    return {"label": label, "wgsl": path.name, "entry": step.entry_point, "bindings": bindings, "dispatch": step.dispatch}


def _rows(found: dict[str, Any], job: _Job, adapter: str, *, is_software: bool) -> Iterator[Row]:
    """Yield the rows of one case. What ONNX Runtime computed on the CPU is no comparison, and left out."""
    problems = [found.get("error"), *found.get("gpuErrors", ())]
    if any(problems):
        raise InternalError(f"{job.case.name} in {adapter}: {next(filter(None, problems))}")
    ort = found["ort"]
    is_compared = bool(ort.get("passes")) and "t" in ort
    for form, mode in job.compile_ms:
        arm = found[f"{form} {mode}"]
        wrong = sum(check["bad"] for check in arm["check"].values())
        if wrong and mode != "fast":
            raise InternalError(f"{job.case.name}, {form}, {job.data} data, {mode} in {adapter}: {wrong} elements are wrong")
        timed, fast = arm["t"], found.get(fast_of(form, job.compile_ms) or "")
        yield Row(
            stack=STACK,
            adapter=adapter,
            is_software=is_software,
            case=job.case.name,
            form=form,
            data=job.data,
            rounds=timed["n"],
            mode=mode,
            count=job.count,
            nbytes=job.nbytes,
            ms=timed["gpu_ms"],
            twin_ms=found["twin"]["t"]["gpu_ms"],
            copy_ms=found[found["best_copy"]]["t"]["gpu_ms"],
            vs_twin=_ratio(timed["vs_twin"]),
            vs_copy=_ratio(timed["vs_copy"]),
            vs_fast=fast["t"]["vs_twin"]["med"] / timed["vs_twin"]["med"] if fast and mode != "fast" else None,
            ort_ms=ort["t"]["gpu_ms"] if is_compared else None,
            vs_ort=_ratio(timed["vs_ort"]) if is_compared else None,
            ort_wrong=sum(check["bad"] for check in ort["check"].values()) if is_compared else None,
            compile_ms=job.compile_ms[form, mode],
            wrong=wrong,
        )


def _ratio(found: dict[str, float]) -> Ratio:
    return Ratio(found["med"], found["lo"], found["hi"])
