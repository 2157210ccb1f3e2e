"""Kernels of the whole matrix under the models of their mode: which ones, on which inputs, and the shards of the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from qgen.check import make_inputs, matrix_requests
from qgen.evaluate.worst import worst_models
from qgen.kernel import Kernel, compile_request
from qgen.request import Request
from qgen.target import Target, load_target
from tests.conformance.sample import cover, features
from tests.worst.harness import check_under_models

MODES: Final = ("strict", "exact")
SHAPES: Final = {"per_tensor": (67,), "per_axis": (3, 23), "blocked": (2, 35)}
"""Elements of all kinds of inputs, of several groups, with incomplete last words and blocks."""

FEW_LANES: Final = load_target("webgpu:lanes=16")
"""An invocation goes through its elements one after the other: of a quarter of them there are four times as many, which run at once."""

Case = tuple[str, int]
"""A mode, and the number of a kernel of the matrix."""


def all_cases() -> list[Case]:
    """Return every kernel of the matrix in each mode, one mode after the other, so that every shard has both."""
    return [(mode, number) for mode in MODES for number in range(len(matrix_requests()))]


@cache
def sampled_cases() -> tuple[Case, ...]:
    """Return kernels that have every pair of choices (operator, dtypes, zero point, granularity, division), others in each mode."""
    offered = [frozenset(feature for feature in features(request) if feature[0] == "pair") for request in matrix_requests()]
    return tuple((mode, number) for seed, mode in enumerate(MODES) for number in cover(offered, seed))


def compile_case(case: Case, target: Target = FEW_LANES) -> tuple[Kernel, Request]:
    """Return the kernel of a case and its request."""
    mode, number = case
    request = replace(matrix_requests()[number], mode=mode, target=target)
    return compile_request(request), request


def check_case(case: Case, *, rounds: int, target: Target = FEW_LANES) -> Iterator[str]:
    """Yield what goes wrong with a kernel under the models of its mode, on inputs of one seed a round, calm ones every other time."""
    mode, number = case
    kernel, request = compile_case(case, target)
    for step in range(rounds):
        inputs = make_inputs(kernel, SHAPES[request.granularity.kind], number + step, calm=(number + step) % 2 == 1)
        yield from check_under_models(kernel, worst_models(mode), inputs)
