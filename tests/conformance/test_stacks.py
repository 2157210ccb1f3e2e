"""A sample of the matrix on each adapter: equal to the oracle bit for bit, and nothing written beyond the output."""

from __future__ import annotations

from typing import Final

import pytest

from qgen.check import check_kernel
from qgen.kernel import compile_request
from tests.conformance.sample import sample_matrix, texts_to_run
from tests.conformance.stacks import SAMPLES
from tests.runtime.stacks import open_stack

PARTS: Final = 10
ROUNDS: Final = 2


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("stack", SAMPLES)
def test_kernels_are_right(stack: str, part: int) -> None:
    open_stack(stack)
    chosen = sample_matrix(*SAMPLES[stack])[part::PARTS]
    assert chosen
    for number, request in chosen:
        for text in texts_to_run(request, number):
            result = check_kernel(compile_request(text), stack, seed=number, rounds=ROUNDS)
            assert result.ok, str(result)
            assert result.elements > 0
