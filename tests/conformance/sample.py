"""A part of the matrix that has every pair of choices: small enough for a slow adapter, and the same in every run."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from qgen.check import kernel_variants, matrix_requests
from qgen.request import Request

MOST: Final = 1200
"""Texts that one adapter runs at most."""
TEXTS: Final = 2
"""Texts of a kernel that it runs."""

Feature = tuple[object, ...]


def factors(request: Request) -> dict[str, object]:
    """Return the choices that make up a kernel before shapes."""
    signature = request.signature
    return {
        "op": signature.op,
        "x": signature.x.name,
        "scale": signature.scale.name,
        "y": signature.y.name,
        # That of a float8 output takes no part.
        "zero_point": signature.zero_point and not (signature.is_quantize and signature.y.is_float8),
        "granularity": request.granularity.kind,
        "division": str(getattr(signature.division, "name", signature.division)),
        "saturate": signature.saturate,
    }


def features(request: Request) -> frozenset[Feature]:
    """Return what a sample has to have of `request`: each pair of choices, (op, x, scale, y), (division, y, granularity, zero point)."""
    chosen = factors(request)
    pairs = combinations(sorted(chosen.items()), 2)
    return frozenset({
        *(("pair", *pair) for pair in pairs),
        ("dtypes", *(chosen[name] for name in ("op", "x", "scale", "y"))),
        ("kernel", *(chosen[name] for name in ("division", "y", "granularity", "zero_point"))),
    })  # fmt: skip


def cover(offered: Sequence[frozenset[Feature]], seed: int) -> list[int]:
    """Return numbers of `offered` that together have every feature of all: the one that adds most first, equals as `seed` shuffles them."""
    order = list(range(len(offered)))
    random.Random(seed).shuffle(order)
    missing = frozenset[Feature]().union(*offered)
    queue = [(-len(offered[number]), place, number) for place, number in enumerate(order)]
    heapq.heapify(queue)
    chosen = []
    while missing:
        # What one adds only shrinks, so the first whose count is still right is the best.
        stale, place, number = heapq.heappop(queue)
        gain = len(offered[number] & missing)
        if gain < -stale:
            heapq.heappush(queue, (-gain, place, number))
            continue
        chosen.append(number)
        missing -= offered[number]
    return chosen


def sample_matrix(count: int, seed: int) -> list[tuple[int, Request]]:
    """Return `count` kernels of the matrix with their numbers, those that cover every feature first, then others as `seed` says.

    With a smaller `count` than the cover has, it is the first of the cover.
    """
    requests = matrix_requests()
    first = cover([features(request) for request in requests], seed)
    taken = set(first)
    rest = [number for number in range(len(requests)) if number not in taken]
    random.Random(seed).shuffle(rest)
    return [(number, requests[number]) for number in [*first, *rest][:count]]


def texts_to_run(request: Request, number: int) -> tuple[Request, ...]:
    """Return the two texts of a kernel that an adapter runs: the usual one, and by its number the strict one or one that is baked."""
    usual, *others = kernel_variants(request, number)
    return usual, others[number // 12 % len(others)]


def all_features(requests: Iterable[Request]) -> frozenset[Feature]:
    """Return every feature that any of `requests` has."""
    return frozenset[Feature]().union(*(features(request) for request in requests))
