"""The runners for Node and Chromium: kernels written by hand, with layouts that the WebGPU implementation derives from the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from qgen.errors import InternalError
from qgen.sidecar.plan import plan_dispatch
from tests.runtime import chromium, node
from tests.runtime.jobs import Job, make_job
from tests.runtime.stacks import words
from tests.sidecar.handmade import PAIRS, TIMES, squares_reversed, times_three

RUNNERS: dict[str, Callable[[Sequence[Job]], list[dict[str, bytes]]]] = {"node": node.run_jobs, "chromium": chromium.run_jobs}
COUNTS = (1, 5, 64, 65, 5000)


def _times(count: int, wgsl: str = TIMES) -> Job:
    sidecar = times_three(wgsl, row=7)
    return make_job(wgsl, sidecar, plan_dispatch(sidecar, {"x": (count,)}), {"x": words(count).tobytes()})


def _pairs(count: int) -> Job:
    sidecar = squares_reversed()
    return make_job(PAIRS, sidecar, plan_dispatch(sidecar, {"x": (count,)}), {"x": words(count).tobytes()})


@pytest.mark.parametrize("runner", RUNNERS)
def test_outputs_are_right(runner: str) -> None:
    found = RUNNERS[runner]([make(count) for count in COUNTS for make in (_times, _pairs)])
    assert [list(outputs) for outputs in found] == [["y"]] * (2 * len(COUNTS))
    for count, times, pairs in zip(COUNTS, found[0::2], found[1::2], strict=True):
        assert np.array_equal(np.frombuffer(times["y"], "<u4"), words(count) * np.uint32(3))
        assert np.array_equal(np.frombuffer(pairs["y"], "<u4"), (words(count) * words(count))[::-1])


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize(("old", "new"), [("let i", "lett i"), ("fn main", "fn other"), ("x[i]", "5u"), ("@binding(2)", "@binding(3)")])
def test_a_text_that_is_refused_fails(runner: str, old: str, new: str) -> None:
    with pytest.raises(InternalError, match="refuses the kernel"):
        RUNNERS[runner]([_times(5, TIMES.replace(old, new))])


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_write_into_an_input_is_seen(runner: str) -> None:
    writes = TIMES.replace("<storage, read> x", "<storage, read_write> x").replace("x[i] * 3u;", "x[i]; x[i] = 5u;")
    with pytest.raises(InternalError, match="wrote into `x`"):
        RUNNERS[runner]([_times(5), _times(5, writes)])
