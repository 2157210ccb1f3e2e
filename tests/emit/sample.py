"""A deterministic sample of the matrix: every operator, dtype, granularity and mode, with shapes baked and not."""

from __future__ import annotations

from collections.abc import Iterator

from qgen.passes.realise import MODES
from qgen.request import Request
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.signatures.matrix import distinct_key, enumerate_signatures
from qgen.target import load_target

GRANULARITIES: dict[str, Granularity] = {"per_tensor": PerTensor(), "per_axis": PerAxis(1), "blocked": Blocked(1, 8)}
SHAPES: tuple[tuple[int, ...] | None, ...] = (None, (3, 40), (2, 5, 7))


def sample(step: int) -> Iterator[Request]:
    """Yield a request for every `step`-th distinct kernel; modes, shapes and targets alternate."""
    distinct = {distinct_key(signature, kind): (signature, kind) for signature, kind in enumerate_signatures()}
    targets = (load_target("webgpu"), load_target("webgpu:max_workgroups_per_dimension=7"))
    for number, (signature, kind) in enumerate(list(distinct.values())[::step]):
        mode = tuple(MODES)[number % len(MODES)]
        yield Request(signature, GRANULARITIES[kind], SHAPES[number // 3 % len(SHAPES)], mode, targets[number // 9 % 2])
