"""What judges generated code in each language: ESLint, the TypeScript compiler, ruff and mypy; and the evaluator on the same kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.embedding.cases import CASES, Work, kernel_of, works
from tests.embedding.compilers import HERE

ROOT: Final = HERE.parents[1]
PYTHON_RULES: Final = "A,B,C4,D,E,F,I,N,PERF,PIE,PL,PT,RET,RUF,S,SIM,TRY,UP,W"
USE: Final = """\
import { createKernel, plan, wgsl, type Inputs, type Plan } from './dq_i4_blocked.js';

export async function use(device: GPUDevice, pass: GPUComputePassEncoder, buffer: GPUBuffer, inputs: Inputs): Promise<Uint16Array> {
  const kernel = createKernel(device);
  const made: Plan = kernel.plan({ x: [2, 32], x_scale: [2, 1], x_zero_point: [2, 1] });
  kernel.encode(pass, { x: buffer, x_scale: { buffer, offset: 256 }, x_zero_point: { buffer }, y: buffer }, made);
  const bytes: number = plan({ x: [2, 32], x_scale: [2, 1], x_zero_point: [2, 1] }, 1024).sizes.y + wgsl.length;
  const workgroups: number | undefined = made.runs[0]?.dispatches[0]?.[0];
  const { y } = await kernel.run(inputs);
  return bytes > (workgroups ?? 0) ? y : new Uint16Array();
}
"""
MISUSE: Final = {
    "no_tensor": ("x_zero_point: { buffer }, ", ""),
    "no_shape": (", x_zero_point: [2, 1] });", " });"),
    "another_type": ("Promise<Uint16Array>", "Promise<Float32Array>"),
    "no_member": ("made.runs[0]", "made.passes[0]"),
}


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_eslint_accepts_the_modules_and_the_scripts_here(glue_folder: Path) -> None:
    files = [*sorted(glue_folder.glob("*.js")), *sorted(HERE.glob("*.mjs"))]
    assert len(files) > len(CASES)
    done = run("node", HERE / "lint.mjs", *files)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_the_types_are_strict_and_refuse_misuse(glue_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "dq_i4_blocked.d.ts").write_text((glue_folder / "dq_i4_blocked.d.ts").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "use.ts").write_text(USE, encoding="utf-8")
    for name, (old, new) in MISUSE.items():
        assert old in USE
        (tmp_path / f"{name}.ts").write_text(USE.replace(old, new), encoding="utf-8")
    compiler = ROOT / "node_modules" / "typescript" / "bin" / "tsc"
    options = ["--strict", "--noUncheckedIndexedAccess", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"]
    types: list[str | Path] = ["--types", "@webgpu/types", "--typeRoots", ROOT / "node_modules"]
    done = run("node", compiler, *options, *types, *sorted(tmp_path.glob("*.ts")))
    places = [line.partition("(")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert {Path(place).name for place in places} == {f"{name}.ts" for name in MISUSE}, done.stdout


def test_ruff_accepts_the_modules_as_they_are_formatted(glue_folder: Path) -> None:
    modules = sorted(glue_folder.glob("*.py"))
    assert len(modules) == len(CASES)
    options = ["--isolated", "--target-version", "py311"]
    rules = ["--select", PYTHON_RULES, "--ignore", "D203,D213,E501,PLR2004,TRY003"]
    checked = run(sys.executable, "-m", "ruff", "check", *options, *rules, *modules)
    assert checked.returncode == 0, checked.stdout
    formatted = run(sys.executable, "-m", "ruff", "format", *options, "--line-length", "140", "--diff", *modules)
    assert formatted.returncode == 0, formatted.stdout


def test_mypy_accepts_the_modules(glue_folder: Path, tmp_path: Path) -> None:
    options = ["--strict", "--python-version", "3.11", "--config-file", "", "--cache-dir", tmp_path]
    done = run(sys.executable, "-m", "mypy", *map(str, options), *sorted(glue_folder.glob("*.py")))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("work", works(), ids=lambda work: f"{work.case.name}-{'x'.join(map(str, work.shapes['x']))}")
def test_the_evaluator_gives_the_oracles_outputs(work: Work) -> None:
    kernel = kernel_of(work.case)
    words = {name: np.frombuffer(data, np.uint32) for name, data in work.inputs.items()}
    found = kernel.run_words(words, kernel.plan(work.shapes), "cpu")
    assert {name: found[name].tobytes() for name in work.outputs} == dict(work.outputs)
