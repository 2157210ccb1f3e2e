"""Texts of kernels as goldens: some that a person reads, each accepted by naga and by Tint, and the hashes of all others."""

from __future__ import annotations

import hashlib
from typing import Final

import pytest

from qgen.check import matrix_requests
from qgen.check.matrix import BIT_EXACT
from qgen.kernel import Kernel, compile_request
from qgen.sidecar.text import print_sidecar
from qgen.validate import validate_texts
from tests.conformance.goldens import MOST, read_kernels
from tests.goldens import Goldens

MATRIX: Final = "matrix.txt"
PARTS: Final = 32


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return read_kernels()


def test_texts_that_a_person_reads(kernels: dict[str, Kernel], golden: Goldens) -> None:
    assert 0 < len(kernels) <= MOST
    for name, kernel in kernels.items():
        golden.check(f"wgsl/{name}.wgsl", kernel.wgsl)
        golden.check(f"wgsl/{name}.json", print_sidecar(kernel.sidecar))


def test_naga_and_tint_accept_them(kernels: dict[str, Kernel]) -> None:
    reports = validate_texts([(name, kernel.wgsl) for name, kernel in kernels.items()], engine="all")
    assert [report for report in reports if not report.ok] == []
    assert {report.engine for report in reports} == {"naga-wasm", "tint"}


def print_line(kernel: Kernel) -> str:
    """Return a kernel's line of the matrix: its name, and the hash of its sidecar, which has the text's."""
    return f"{kernel.name} {hashlib.sha256(print_sidecar(kernel.sidecar).encode()).hexdigest()[:32]}"


def test_the_matrix_has_a_line_for_each_kernel_in_each_mode(golden: Goldens) -> None:
    if golden.update:
        lines = [print_line(compile_request(request)) for mode in BIT_EXACT for request in matrix_requests(numerics=mode)]
        golden.check(MATRIX, "".join(f"{line}\n" for line in sorted(lines)))
    lines = golden.read(MATRIX).splitlines()
    assert lines == sorted(set(lines))
    assert len({line.split()[0] for line in lines}) == len(lines) == len(BIT_EXACT) * len(matrix_requests())


@pytest.mark.parametrize("mode", BIT_EXACT)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_other_texts_are_those_of_the_matrix(mode: str, part: int, golden: Goldens) -> None:
    pinned = set() if golden.update else set(golden.read(MATRIX).splitlines())
    lines = [print_line(compile_request(request)) for request in matrix_requests(numerics=mode)[part::PARTS]]
    wrong = [] if golden.update else [line for line in lines if line not in pinned]
    assert not wrong, (
        f"{len(wrong)} of {len(lines)} texts are not those of golden/{MATRIX}, such as {wrong[0]}; `make update-goldens` writes it"
    )
