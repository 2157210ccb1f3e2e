"""The C and Rust compilers on the headers and modules of the cases."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.embedding.cases import CASES, kernel_of

HERE: Final = Path(__file__).parent
WGPU: Final = Path(sysconfig.get_paths()["platlib"]) / "wgpu" / "resources"
_WARNINGS: Final = ("-Wall", "-Wextra", "-Werror", "-pedantic")
_STANDARDS: Final = {"c11": ("gcc", "-std=c11"), "cxx17": ("g++", "-x", "c++", "-std=c++17")}


def write_c_cases(folder: Path, glue_folder: Path, part: str, function: str) -> None:
    """Write into `folder` the headers as a compiler looks for them, and `cases.h`, which has the file `part` for each kernel."""
    (folder / "webgpu").mkdir()
    (folder / "webgpu" / "webgpu.h").symlink_to(WGPU / "webgpu.h")
    lines = ["#ifndef INCLUDE_CASES", *(f'#include "{glue_folder / case.name}.h"' for case in CASES), "#else"]
    for case in CASES:
        has_uniforms = any(buffer["role"] == "uniform" for buffer in kernel_of(case).sidecar["buffers"])
        lines += [f"#define P(name) {case.name}_##name", f"#define U(name) {case.name.upper()}_##name"]
        lines += ["#define HAS_UNIFORMS"] if has_uniforms else []
        lines += [f'#include "{part}"', "#undef P", "#undef U", "#undef HAS_UNIFORMS"]
    lines += [f"static int64_t (*const cases[])({function}) = {{", *(f"    {case.name}_work," for case in CASES), "};"]
    (folder / "cases.h").write_text("\n".join([*lines, "#endif", ""]), encoding="utf-8")


def compile_c(folder: Path, standard: str, source: str, *arguments: str | Path) -> None:
    """Compile a file of this folder as C11 or C++17, and fail at any warning."""
    folders = [f"-I{folder}", f"-I{HERE}", f"-I{WGPU}"]
    _run([*_STANDARDS[standard], *_WARNINGS, *folders, str(HERE / source), *map(str, arguments)])


def compile_rust(source: Path, *arguments: str | Path) -> None:
    """Compile a Rust file, and fail at any warning."""
    _run(["rustc", "--edition", "2021", "-D", "warnings", *map(str, arguments), str(source)])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
