"""Every kernel of the matrix, in each mode: as it was, accepted by naga and by Tint, and in the evaluator equal to the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from qgen.check import check_kernel, check_shapes, kernel_variants, matrix_requests
from qgen.check.matrix import BAKED_EACH, BIT_EXACT
from qgen.check.shapes import small_shapes
from qgen.kernel import Kernel, compile_request
from qgen.request import Request
from qgen.target import load_target
from qgen.validate import validate_texts
from tests.conformance.goldens import MATRIX, print_line
from tests.goldens import Goldens

EACH: Final = 100
"""Kernels in one test, so that two workers share the matrix."""
PARTS: Final = -(-len(matrix_requests()) // EACH)
RUN: Final = 3
"""Of nine kernels in a row, how many have a baked text beside those for every shape."""
FEW_LANES: Final = load_target("webgpu:lanes=32")
"""What is evaluated: an invocation goes through its elements one after the other, and half of them make half the time.

The texts are those of the target `webgpu` but for how often their loops go round; samples of these are run as they are (`test_stacks`).
"""


def texts_of(part: int) -> list[tuple[int, Request]]:
    numbered = list(enumerate(matrix_requests()))[part * EACH : (part + 1) * EACH]
    return [(number, text) for number, request in numbered for text in _texts(request, number)]


def _texts(request: Request, number: int) -> tuple[Request, ...]:
    variants = kernel_variants(request, number)
    uniform, baked = variants[: len(BIT_EXACT)], variants[len(BIT_EXACT) :]
    turn = number // RUN
    return (*uniform, *([baked[turn // RUN % BAKED_EACH]] if turn % RUN == 0 else []))


def test_the_parts_have_every_kernel_in_each_mode_and_baked_ones_of_every_kind() -> None:
    texts = [text for part in range(PARTS) for _, text in texts_of(part)]
    assert len(set(texts)) == len(texts)
    assert {text for text in texts if text.shape is None} == {request for mode in BIT_EXACT for request in matrix_requests(numerics=mode)}
    baked = [text for text in texts if text.shape is not None]
    assert len(baked) > len(matrix_requests()) // 4
    assert len({(text.granularity, text.shape, text.mode) for text in baked}) == 3 * 6 * len(BIT_EXACT)


def shapes_of(kernel: Kernel, number: int) -> tuple[tuple[int, ...], ...]:
    """Return the kernel's own shape, or every other of those that kernels are checked on, by turns."""
    shapes = small_shapes(check_shapes(kernel))
    return shapes[number // RUN % 2 :: 2] if len(shapes) > 1 else shapes


@pytest.mark.parametrize("part", range(PARTS))
def test_texts_are_accepted_and_right_in_the_evaluator(part: int, golden: Goldens) -> None:
    kernels = [(number, compile_request(text)) for number, text in texts_of(part)]
    assert len({kernel.name for _, kernel in kernels}) == len(kernels)
    lines = {print_line(kernel) for _, kernel in kernels if kernel.request.shape is None}
    assert golden.update or lines <= set(golden.read(MATRIX).splitlines()), f"`make update-goldens` writes golden/{MATRIX}"
    # DequantizeLinear of a float8 has a zero point that is never read, and the text of the one without.
    texts = {kernel.wgsl: kernel.name for _, kernel in kernels}
    reports = validate_texts([(name, wgsl) for wgsl, name in texts.items()], engine="all")
    assert [report for report in reports if not report.ok] == []
    assert [report.engine for report in reports] == ["naga-wasm"] * len(texts) + ["tint"] * len(texts)
    shorter = [(number, compile_request(replace(kernel.request, target=FEW_LANES))) for number, kernel in kernels]
    results = [check_kernel(kernel, "cpu", shapes_of(kernel, number), number, rounds=1) for number, kernel in shorter]
    assert [str(result) for result in results if not result.ok] == []
    assert min(result.elements for result in results) > 0
