"""Every kernel of the matrix, four texts each: accepted by naga and by Tint, and in the evaluator equal to the oracle bit for bit."""

from __future__ import annotations

from typing import Final

import pytest

from qgen.check import check_kernel, kernel_variants, matrix_requests
from qgen.check.matrix import BAKED_EACH
from qgen.kernel import Kernel, compile_request
from qgen.validate import validate_texts

PARTS: Final = 27
"""Tests that the matrix is cut into, so that two workers share it."""
EACH: Final = len(matrix_requests()) // PARTS


def test_the_parts_are_the_whole() -> None:
    assert PARTS * EACH == len(matrix_requests()) == 1782


@pytest.mark.parametrize("part", range(PARTS))
def test_texts_are_accepted_and_right_in_the_evaluator(part: int) -> None:
    kernels = _compile(part)
    assert len(kernels) == EACH * (1 + BAKED_EACH) == len({kernel.wgsl for kernel in kernels})
    reports = validate_texts([(kernel.name, kernel.wgsl) for kernel in kernels], engine="all")
    assert [report for report in reports if not report.ok] == []
    assert {report.engine for report in reports} == {"naga-wasm", "tint"}
    assert len(reports) == 2 * len(kernels)
    results = [check_kernel(kernel, "cpu", seed=EACH * part + number) for number, kernel in enumerate(kernels)]
    assert [str(result) for result in results if not result.ok] == []
    assert min(result.elements for result in results) > 0


def _compile(part: int) -> list[Kernel]:
    requests = list(enumerate(matrix_requests()))[part * EACH : (part + 1) * EACH]
    return [compile_request(variant) for number, request in requests for variant in kernel_variants(request, number)]
