"""The C headers: compiled as C11 and C++17 without a warning, and run on the library inside the `wgpu` wheel, bit-equal to the oracle."""

from __future__ import annotations

import os
import struct
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.embedding.cases import CASES, Work, check_runs, kernel_of, works

HERE: Final = Path(__file__).parent
WGPU: Final = Path(sysconfig.get_paths()["platlib"]) / "wgpu" / "resources"
MARGIN: Final = 512
WARNINGS: Final = ("-Wall", "-Wextra", "-Werror", "-pedantic")
STANDARDS: Final = {"c11": ("gcc", "-std=c11"), "cxx17": ("g++", "-x", "c++", "-std=c++17")}


@pytest.fixture(scope="module")
def sources(glue_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the headers as a compiler looks for them, and the list of the kernels."""
    folder = tmp_path_factory.mktemp("c")
    (folder / "webgpu").mkdir()
    (folder / "webgpu" / "webgpu.h").symlink_to(WGPU / "webgpu.h")
    lines = ["#ifndef INCLUDE_CASES", *(f'#include "{glue_folder / case.name}.h"' for case in CASES), "#else"]
    for case in CASES:
        has_uniforms = any(buffer["role"] == "uniform" for buffer in kernel_of(case).sidecar["buffers"])
        lines += [f"#define P(name) {case.name}_##name", f"#define U(name) {case.name.upper()}_##name"]
        lines += ["#define HAS_UNIFORMS"] if has_uniforms else []
        lines += ['#include "case.inc"', "#undef P", "#undef U", "#undef HAS_UNIFORMS"]
    lines += ["static int64_t (*const cases[])(FILE *, FILE *, WGPUAdapter) = {", *(f"    {case.name}_work," for case in CASES), "};"]
    (folder / "cases.h").write_text("\n".join([*lines, "#endif", ""]), encoding="utf-8")
    return folder


def compile_host(sources: Path, standard: str, *arguments: str | Path) -> None:
    folders = [f"-I{sources}", f"-I{HERE}", f"-I{WGPU}"]
    command = [*STANDARDS[standard], *WARNINGS, *folders, str(HERE / "host.c"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_headers_are_c_plus_plus_too(sources: Path) -> None:
    compile_host(sources, "cxx17", "-fsyntax-only")


def test_outputs_are_the_oracles(sources: Path, tmp_path: Path) -> None:
    host = tmp_path / "host"
    compile_host(sources, "c11", "-x", "none", WGPU / "libwgpu_native-release.so", f"-Wl,-rpath,{WGPU}", "-o", host)
    (tmp_path / "works").write_bytes(struct.pack("<q", len(works())) + b"".join(map(encode, works())))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VK_")}
    command = [host, tmp_path / "works", tmp_path / "results"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "llvmpipe" in done.stdout
    found = decode((tmp_path / "results").read_bytes())
    for work in works():
        assert check_runs(work, next(found)[0]), work.case.name
        for buffer in kernel_of(work.case).sidecar["buffers"]:
            if buffer["role"] in {"uniform", "ignored"}:
                continue
            _, content = next(found)
            assert content[:MARGIN] == content[-MARGIN:] == b"\xa5" * MARGIN
            if buffer["name"] in work.outputs and not work.is_empty:
                assert content[MARGIN:-MARGIN] == work.outputs[buffer["name"]], work.case.name
    assert next(found, None) is None


def encode(work: Work) -> bytes:
    """Return a work as `host.c` reads it."""
    kernel = kernel_of(work.case)
    buffers = [buffer for buffer in kernel.sidecar["buffers"] if buffer["role"] not in {"uniform", "ignored"}]
    parts = [struct.pack("<qq", CASES.index(work.case), work.limit)]
    for buffer in buffers:
        if buffer["role"] == "input":
            shape = work.shapes[buffer["name"]]
            parts.append(struct.pack(f"<{len(shape) + 1}q", len(shape), *shape))
    for buffer in buffers:
        data = work.inputs.get(buffer["name"], b"")
        parts += [struct.pack("<q", len(data)), data]
    return b"".join(parts)


def decode(results: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers of the results, each with the bytes after it where it is a size."""
    position = 0
    for work in works():
        yield struct.unpack_from("<q", results, position)[0], b""
        position += 8
        for buffer in kernel_of(work.case).sidecar["buffers"]:
            if buffer["role"] not in {"uniform", "ignored"}:
                (size,) = struct.unpack_from("<q", results, position)
                yield size, results[position + 8 : position + 8 + size]
                position += 8 + size
    assert position == len(results)
