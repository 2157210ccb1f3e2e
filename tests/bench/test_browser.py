"""What a harness is given, and what its results become; no browser is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from qgen.errors import InternalError, UnavailableError
from tests.bench import browser
from tests.bench.cases import CASES, ONNX_CASES
from tests.bench.data import make_data
from tests.bench.rows import Ratio
from tests.bench.sample import Sample, make_sample
from tests.bench.speed import main, make_parser, parse_size, plan_all, plan_jobs

RATIOS = {"vs_ort": {"med": 5.0, "lo": 4.0, "hi": 6.0}, "vs_copy": {"med": 0.6, "lo": 0.5, "hi": 0.7}}


def sample_of(name: str, forms: tuple[str, ...] = ("baked", "uniform")) -> Sample:
    case = next(case for case in CASES if case.name == name)
    return make_sample(case, data="random", count=1 << 10, forms=forms, modes=("exact", "fast"), target="webgpu")


def test_a_case_of_the_harness_has_all_that_it_needs(tmp_path: Path) -> None:
    sample = sample_of("dequantize uint4 → float32 blocked 32 axis 1 zp")
    entry = json.loads(json.dumps(browser._write_case(sample, "case0", tmp_path)))
    assert entry["inputs"] == {
        "x": {"dtype": "uint4", "dims": [32, 32], "bin": "case0.x.bin"},
        "x_scale": {"dtype": "float32", "dims": [32, 1], "bin": "case0.x_scale.bin"},
        "x_zero_point": {"dtype": "uint4", "dims": [32, 1], "bin": "case0.x_zero_point.bin"},
    }
    assert (entry["outputs"], entry["expect"]) == ({"y": {"dtype": "float32", "dims": [32, 32]}}, {"y": "case0.y.npy"})
    assert np.load(tmp_path / "case0.y.npy").tobytes() == sample.outputs["y"].data.tobytes()
    baked, _, uniform, _ = entry["kernels"]
    kernel = sample.kernels["baked", "exact"]
    assert (tmp_path / baked["wgsl"]).read_text(encoding="utf-8") == kernel.wgsl
    assert [bound["name"] for bound in baked["bindings"]] == ["x", "x_scale", "x_zero_point", "y"]
    assert (baked["label"], baked["dispatch"]) == ("baked exact", list(kernel.plan(sample.shapes).passes[0].dispatch))
    assert uniform["bindings"][-1]["uniform"][0] == 1 << 10
    assert entry["model"] == "case0.onnx"
    assert "model" not in browser._write_case(sample_of("quantize float32 → uint8 per-tensor zp"), "case1", tmp_path)


@pytest.mark.parametrize("case", ONNX_CASES, ids=lambda case: case.name)
def test_the_model_computes_what_the_kernel_does(case: Any) -> None:  # noqa: ANN401 - a `Case`, which pytest names
    sample = make_sample(case, data="random", count=1 << 10, forms=("baked",), modes=("exact",), target="webgpu")
    model = browser.make_model(case, dict(sample.inputs), sample.outputs["y"])
    onnx.checker.check_model(model, full_check=True)
    inputs = make_data(case, "random", (32, 32))
    if sample.inputs["x"].dtype.endswith("4"):
        return  # which the Python API of ONNX Runtime does not take
    (found,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    assert found.tobytes() == sample.outputs["y"].data.tobytes()


def found(*, ort: dict[str, Any], bad: int = 0) -> dict[str, Any]:
    """Return what the harness says of a case with one form."""
    arms = {
        f"baked {mode}": {
            "check": {"y": {"bad": bad}},
            "t": {"n": 21, "gpu_ms": ms, "vs_twin": {"med": share, "lo": share, "hi": share}, **RATIOS},
        }
        for mode, ms, share in (("exact", 8.0, 0.5), ("fast", 5.0, 0.75))
    }
    moved = {"twin": {"t": {"gpu_ms": 4.0}}, "copy_64x1": {"t": {"gpu_ms": 4.8}}, "best_copy": "copy_64x1"}
    return {"name": "case0", "ort": ort, **moved, **arms}


JOB = browser._Job(CASES[0], "random", 1 << 10, 5120, {("baked", "exact"): 30.0, ("baked", "fast"): 20.0})


def test_results_become_rows() -> None:
    ort = {"passes": 1, "t": {"gpu_ms": 40.0}, "check": {"y": {"bad": 3}}}
    exact, fast = browser._rows(found(ort=ort), JOB, "Chrome", is_software=True)
    assert (exact.ms, exact.twin_ms, exact.copy_ms, exact.ort_ms, exact.compile_ms) == (8.0, 4.0, 4.8, 40.0, 30.0)
    assert (exact.vs_ort, exact.vs_fast, exact.ort_wrong) == (Ratio(5.0, 4.0, 6.0), 1.5, 3)
    assert (fast.vs_fast, fast.rounds) == (None, 21)


def test_what_onnx_runtime_computes_on_the_cpu_is_no_comparison() -> None:
    ort = {"passes": 0, "t": {"gpu_ms": None}, "check": {"y": {"bad": 0}}}
    exact, _ = browser._rows(found(ort=ort), JOB, "Chrome", is_software=True)
    assert (exact.vs_ort, exact.ort_ms, exact.ort_wrong) == (None, None, None)


def test_a_wrong_bit_and_a_failure_end_the_run() -> None:
    with pytest.raises(InternalError, match="exact in Chrome: 2 elements are wrong"):
        list(browser._rows(found(ort={}, bad=2), JOB, "Chrome", is_software=True))
    with pytest.raises(InternalError, match="lost"):
        list(browser._rows({"error": "device lost"}, JOB, "Chrome", is_software=True))


def test_onnxruntime_web_has_to_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "_HERE", tmp_path)
    with pytest.raises(UnavailableError, match="onnxruntime-web is not installed"):
        list(browser.measure_in_browser([], tmp_path, harness=tmp_path, rounds=1, adapter="swiftshader"))


def test_what_takes_more_than_one_dispatch_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "is_installed", lambda: True)
    monkeypatch.setattr(browser, "_time_compilation", lambda *_: 0.0)
    sample = sample_of("dynamic float32 → uint8", ("baked",))
    assert list(browser.measure_in_browser([sample], tmp_path, harness=tmp_path, rounds=1, adapter="swiftshader")) == []


def test_options_choose_jobs() -> None:
    some = plan_jobs("int4", [1 << 20, 1 << 22], ["uniform", "ragged", "baked"], ["ties"])
    assert {job.case.name for job in some} >= {"dequantize int4 → float32 blocked 128 axis 1"}
    assert [job.forms for job in some[:2]] == [("baked", "uniform"), ("ragged",)]
    assert [job.count for job in some] == sorted(job.count for job in some)
    whole = plan_all("", 1 << 20)
    assert len(whole) == 5 * len(CASES)
    assert [job.data for job in whole[:5]] == ["random", "random", "half-zero", "saturating", "ties"]
    assert (parse_size("4M"), parse_size("64k"), parse_size("100")) == (1 << 22, 1 << 16, 100)


def test_a_size_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["--size", "big"])
    assert "big is no number of elements" in capsys.readouterr().err


def test_a_stack_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "true")
    assert main(["--stack", "wgpu:nothing", "--case", "dynamic"]) == 1
    assert "there is no adapter `wgpu:nothing`" in capsys.readouterr().err
