"""Texts of kernels as goldens: some that a person reads, each accepted by naga and by Tint, and the hashes of all others."""

from __future__ import annotations

import pytest

from qgen.check import matrix_requests
from qgen.check.matrix import BIT_EXACT
from qgen.kernel import Kernel, compile_request
from qgen.sidecar.text import print_sidecar
from qgen.validate import validate_texts
from tests.conformance.goldens import MATRIX, MOST, print_line, read_kernels
from tests.goldens import Goldens


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


def test_the_matrix_has_a_line_for_each_kernel_in_each_mode(golden: Goldens) -> None:
    """That each line is that of its text is seen in test_matrix.py, where all of them are compiled."""
    if golden.update:
        lines = [print_line(compile_request(request)) for mode in BIT_EXACT for request in matrix_requests(numerics=mode)]
        golden.check(MATRIX, "".join(f"{line}\n" for line in sorted(lines)))
    lines = golden.read(MATRIX).splitlines()
    assert lines == sorted(set(lines))
    assert len({line.split()[0] for line in lines}) == len(lines) == len(BIT_EXACT) * len(matrix_requests())
