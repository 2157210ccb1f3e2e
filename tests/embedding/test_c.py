"""The C headers: compiled as C11 and C++17 without a warning, and run on the library inside the `wgpu` wheel, bit-equal to the oracle."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.embedding.cases import CASES, Work, check_runs, kernel_of, works
from tests.embedding.compilers import WGPU, compile_c, write_c_cases

MARGIN: Final = 512


@pytest.fixture(scope="module")
def sources(glue_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the headers as a compiler looks for them, and the list of the kernels."""
    folder = tmp_path_factory.mktemp("c")
    write_c_cases(folder, glue_folder, "case.inc", "FILE *, FILE *, WGPUAdapter")
    return folder


def test_the_headers_are_c_plus_plus_too(sources: Path) -> None:
    compile_c(sources, "cxx17", "host.c", "-fsyntax-only")


def test_outputs_are_the_oracles(sources: Path, tmp_path: Path) -> None:
    host = tmp_path / "host"
    compile_c(sources, "c11", "host.c", "-x", "none", WGPU / "libwgpu_native-release.so", f"-Wl,-rpath,{WGPU}", "-o", host)
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
