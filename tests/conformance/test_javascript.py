"""Kernels in Chromium and in Node, bound and dispatched as their sidecars say, with layouts that the browser derives from the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pytest

from qgen.arrays import pack_words
from qgen.check import check_shapes, make_inputs
from qgen.check.compare import find_mismatches, find_reference
from qgen.kernel import Kernel, compile_request
from tests.conformance.sample import sample_matrix
from tests.conformance.stacks import JAVASCRIPT
from tests.runtime import chromium, node
from tests.runtime.jobs import Job, make_job

RUNNERS: Final[dict[str, Callable[[Sequence[Job]], list[dict[str, bytes]]]]] = {"chromium": chromium.run_jobs, "node": node.run_jobs}
SEEDS: Final = {"chromium": 5, "node": 6}


@pytest.mark.parametrize("runner", RUNNERS)
def test_kernels_are_right(runner: str) -> None:
    chosen = [(number, compile_request(request)) for number, request in sample_matrix(JAVASCRIPT, SEEDS[runner])]
    runs = [(kernel, shape, number + step) for number, kernel in chosen for step, shape in enumerate(check_shapes(kernel))]
    assert len({kernel.wgsl for kernel, _, _ in runs}) == JAVASCRIPT
    found = RUNNERS[runner]([_make_job(*run) for run in runs])
    for (kernel, shape, seed), outputs in zip(runs, found, strict=True):
        want = find_reference(kernel, make_inputs(kernel, shape, seed))["y"]
        wrong = find_mismatches(np.frombuffer(outputs["y"], np.uint32), want, kernel.request.signature.y)
        assert not wrong.size, f"{kernel.name}, shape {shape}, seed {seed}: elements {wrong[:10]}"


def _make_job(kernel: Kernel, shape: tuple[int, ...], seed: int) -> Job:
    inputs = make_inputs(kernel, shape, seed)
    plan = kernel.plan({name: array.shape for name, array in inputs.items()})
    operands = [operand for operand in kernel.compiled.checked.bound if not operand.is_output]
    words = {operand.name: pack_words(inputs[operand.name], operand.dtype).tobytes() for operand in operands}
    return make_job(kernel.wgsl, kernel.sidecar, plan, words)
