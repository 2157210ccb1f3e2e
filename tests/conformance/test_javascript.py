"""Kernels in Chromium and in Node, bound and dispatched as their sidecars say, with layouts that the browser derives from the text."""

from __future__ import annotations

from typing import Final

import pytest

from qgen.check import check_kernel
from qgen.kernel import compile_request
from qgen.runtime import open_device
from tests.conformance.sample import sample_matrix, texts_to_run
from tests.conformance.stacks import JAVASCRIPT, RUNTIMES

SEEDS: Final = dict(zip(RUNTIMES, (5, 6), strict=True))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_kernels_are_right(runtime: str) -> None:
    assert "swiftshader" in open_device(runtime).name.lower()
    chosen = sample_matrix(JAVASCRIPT, SEEDS[runtime])
    assert len(chosen) == JAVASCRIPT
    for number, request in chosen:
        # The usual text on four shapes, and another one.
        for text in texts_to_run(request, number):
            result = check_kernel(compile_request(text), runtime, seed=number, rounds=1)
            assert result.ok, str(result)
            assert result.elements > 0
