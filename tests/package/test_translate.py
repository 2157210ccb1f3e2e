"""Kernels in other shading languages: SPIR-V and GLSL by their own validators, HLSL by glslang's front end, and where naga comes from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import qgen
from qgen.errors import InternalError, QgenError
from qgen.kernel import Kernel
from qgen.package import translate
from qgen.package.translate import LANGUAGES, parse_targets, translate_kernel
from tests.goldens import Goldens
from tests.sidecar.samples import sample_kernels

_SAMPLED = 12


def _kernels() -> list[Kernel]:
    return [*sample_kernels(_SAMPLED, seed=41), qgen.compile("DynamicQuantizeLinear", x="float32", entry_point="quantize")]


def _judge(*command: str | Path) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def test_each_language_is_accepted_by_its_validator(tmp_path: Path) -> None:
    judged = []
    for number, kernel in enumerate(_kernels()):
        for name, data in translate_kernel(kernel, LANGUAGES).items():
            path = tmp_path / f"{number}{Path(name).suffix}"
            path.write_bytes(data)
            judged.append(path.suffix)
            match path.suffix:
                case ".spv":
                    _judge("spirv-val", "--target-env", "vulkan1.1", path)
                case ".comp":
                    _judge("glslangValidator", "-S", "comp", path)
                case ".hlsl":
                    for step in kernel.sidecar["passes"]:
                        _judge("glslangValidator", "-D", "-V", "-S", "comp", "-e", step["entry_point"], "-o", tmp_path / "hlsl.spv", path)
                case _:
                    text = data.decode()
                    assert text.startswith("// language: metal")
                    assert all(f"kernel void {step['entry_point']}" in text for step in kernel.sidecar["passes"])
    assert {suffix: judged.count(suffix) for suffix in set(judged)} == {".spv": 25, ".comp": 24 + 4, ".hlsl": 25, ".metal": 25}


def test_a_text_of_glsl_has_one_entry_point() -> None:
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32", name="dynamic")
    entries = [step["entry_point"] for step in kernel.sidecar["passes"]]
    assert list(translate_kernel(kernel, ["glsl", "spirv"])) == [*(f"dynamic.{entry}.comp" for entry in entries), "dynamic.spv"]


def test_the_command_writes_beside_the_kernel(tmp_path: Path) -> None:
    done = _qgen(tmp_path, "emit", "QuantizeLinear", "--x", "float32", "--name", "k", "-o", "out", "--also", "spirv,glsl,hlsl,msl,spirv")
    assert (done.returncode, done.stderr) == (0, "")
    assert [Path(line).name for line in done.stdout.splitlines()] == ["k.wgsl", "k.json", "k.spv", "k.comp", "k.hlsl", "k.metal"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"k.wgsl", "k.json", "k.spv", "k.comp", "k.hlsl", "k.metal"}


def test_without_naga_the_exit_code_is_3_and_nothing_is_written(tmp_path: Path, golden: Goldens) -> None:
    """Node is not on this PATH, and neither is naga."""
    done = _qgen(tmp_path, "emit", "QuantizeLinear", "--x", "float32", "-o", "out", "--also", "msl", path=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    golden.check("errors/QG952.err", done.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["dxil", "spirv,", "spirf"])
def test_another_language_is_refused(text: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        parse_targets(text)
    assert caught.value.code == "QG953"
    if text == "spirf":
        golden.check("errors/QG953.err", f"{caught.value}\n")


def test_translations_do_not_go_to_standard_output(tmp_path: Path) -> None:
    done = _qgen(tmp_path, "emit", "QuantizeLinear", "--x", "float32", "-o", "-", "--also", "msl")
    assert done.returncode == 2
    assert "translations go beside the kernel" in done.stderr


def test_a_naga_on_path_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "naga"
    program.write_text('#!/bin/sh\nfor output; do :; done\necho "$@" > "$output"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kernel = qgen.compile("QuantizeLinear", x="float32", name="k", entry_point="quantize")
    found = translate_kernel(kernel, ["spirv"])
    assert [name.split("/")[-1] for name in found["k.spv"].decode().split()] == ["kernel.wgsl", "kernel.spv"]
    assert translate._find_writer()(kernel.wgsl, "glsl", "quantize").startswith(b"--entry-point quantize --profile es310 ")
    with pytest.raises(QgenError, match="naga wrote glsl that cannot be bound"):
        translate_kernel(kernel, ["spirv", "glsl"])
    program.write_text("#!/bin/sh\necho no >&2\nexit 1\n", encoding="utf-8")
    with pytest.raises(InternalError, match="naga writes no spirv of this text: no"):
        translate_kernel(kernel, ["spirv"])


def test_what_the_package_refuses_is_a_bug() -> None:
    write = translate._find_writer()
    with pytest.raises(InternalError, match=r"naga writes no hlsl of this text: .*expected global item"):
        write("nothing", "hlsl", "main")
    assert write("@compute @workgroup_size(1) fn main() {}", "msl", "main").startswith(b"// language: metal")


def _qgen(folder: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])} | ({} if path is None else {"PATH": path})
    return subprocess.run(
        [sys.executable, "-m", "qgen", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
