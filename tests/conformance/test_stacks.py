"""A sample of the matrix on each adapter, four texts a kernel: equal to the oracle bit for bit, and nothing written beyond the output."""

from __future__ import annotations

from typing import Final

import pytest

from qgen.check import check_kernel, kernel_variants
from qgen.kernel import compile_request
from tests.conformance.sample import sample_matrix
from tests.conformance.stacks import SAMPLES
from tests.runtime.stacks import open_stack

PARTS: Final = 10


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("stack", SAMPLES)
def test_kernels_are_right(stack: str, part: int) -> None:
    open_stack(stack)
    chosen = sample_matrix(*SAMPLES[stack])[part::PARTS]
    assert chosen
    for number, request in chosen:
        for step, variant in enumerate(kernel_variants(request, number)):
            result = check_kernel(compile_request(variant), stack, seed=number + 5 * step)
            assert result.ok, str(result)
            assert result.elements > 0
