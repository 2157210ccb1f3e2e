"""Every kernel there is before shapes, each as a request: what `qgen emit --all` writes and `qgen check --all` runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Final

from qgen.request import Request
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.signatures import DistinctKey, GranularityKind, distinct_key, enumerate_signatures
from qgen.target import load_target

USUAL: Final[dict[GranularityKind, Granularity]] = {"per_tensor": PerTensor(), "per_axis": PerAxis(1), "blocked": Blocked(-1, 32)}
"""The granularity that stands for its kind where the shape is left to uniforms."""

BAKED: Final[dict[GranularityKind, tuple[tuple[Granularity, tuple[int, ...]], ...]]] = {
    "per_tensor": (
        (PerTensor(), (193,)),
        (PerTensor(), (3, 43)),
        (PerTensor(), (7, 11, 37)),
        (PerTensor(), (2, 3, 5, 7)),
        (PerTensor(), (64, 40)),
        (PerTensor(), ()),
    ),
    "per_axis": (
        (PerAxis(0), (193,)),
        (PerAxis(1), (3, 43)),
        (PerAxis(0), (37, 7, 11)),
        (PerAxis(-2), (2, 3, 5, 7)),
        (PerAxis(1), (2, 10, 128)),
        (PerAxis(-1), (7, 11, 37)),
    ),
    "blocked": (
        (Blocked(0, 32), (193,)),
        (Blocked(0, 2), (3, 43)),
        (Blocked(-1, 16), (7, 11, 37)),
        (Blocked(2, 3), (2, 3, 5, 7)),
        (Blocked(-1, 64), (20, 128)),
        (Blocked(-2, 5), (7, 11, 37)),
    ),
}
"""By kind, granularities with the shape that is baked: ranks, axes from both ends, ragged and whole blocks, lanes in one group or not."""

BAKED_EACH: Final = 3
"""How many of them a kernel is checked with."""

BIT_EXACT: Final = ("exact", "strict")
"""The numerics modes that are held to the oracle, the usual one first."""


@cache
def matrix_requests(target: str = "webgpu", numerics: str = BIT_EXACT[0]) -> tuple[Request, ...]:
    """Return one request for each distinct kernel before shapes, in the tables' order, the shape left to uniforms."""
    found: dict[DistinctKey, Request] = {}
    for signature, kind in enumerate_signatures():
        found.setdefault(distinct_key(signature, kind), Request(signature, USUAL[kind], None, numerics, load_target(target)))
    return tuple(found.values())


def kernel_variants(request: Request, number: int) -> tuple[Request, ...]:
    """Return the texts to check for `request`, the uniform one of the matrix with this number: it in each mode, and baked ones.

    `number` decides which ones are baked, and each in which mode.
    """
    baked = BAKED[request.granularity.kind]
    # Every other one: so three ranks, and with two numbers in a row all of them.
    chosen = [baked[(number + 2 * step) % len(baked)] for step in range(BAKED_EACH)]
    return (
        *(replace(request, mode=mode) for mode in BIT_EXACT),
        *(
            replace(request, granularity=granularity, shape=shape, mode=BIT_EXACT[(number // len(baked) + step) % len(BIT_EXACT)])
            for step, (granularity, shape) in enumerate(chosen)
        ),
    )
