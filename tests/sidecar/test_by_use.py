"""The sidecar alone is enough: random shapes, planned from the JSON text, run on Dawn with buffers of exactly those sizes.

Bounds are not checked by the driver, so a read or write out of a buffer's bounds is not redirected: canaries lie on both sides of each.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from qgen.arrays import pack_words
from qgen.check import make_inputs
from qgen.check.compare import find_mismatches
from qgen.check.shapes import least_rank
from qgen.errors import InternalError
from qgen.kernel import Kernel, compile_request
from qgen.oracle import evaluate_reference
from qgen.request import Request
from qgen.runtime import Device, open_device
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.sidecar.plan import DispatchPlan, plan_dispatch
from qgen.sidecar.text import print_sidecar
from tests.conformance.sample import sample_matrix
from tests.runtime.stacks import SWIFTSHADER
from tests.sidecar.samples import MODES

_KERNELS: Final = 160
_SHAPES: Final = 7
_BAKED_EVERY: Final = 4
"""Of each kernel's shapes, every fourth is baked too."""
_MOST: Final = 3000
_LONGEST_RANK: Final = 6
_PARTS: Final = 4
_DIMS: Final = (1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 31, 33, 64, 65)
_EMPTY: Final = 12
"""One shape in so many has a dimension of zero."""

Case = tuple[Request, tuple[int, ...]]


@cache
def cases() -> tuple[Case, ...]:
    """Return kernels with a shape each; those of one kernel are together."""
    rng = random.Random(20)
    found: list[Case] = []
    for place, (_, request) in enumerate(sample_matrix(_KERNELS, seed=20)):
        granularity = _random_granularity(rng, request.granularity)
        uniform = replace(request, granularity=granularity, mode=MODES[place % 2])
        for step in range(_SHAPES):
            shape = _random_shape(rng, granularity)
            found.append((uniform, shape))
            if (place + step) % _BAKED_EVERY == 0:
                found.append((replace(uniform, shape=shape), shape))
    return tuple(found)


def _random_granularity(rng: random.Random, like: Granularity) -> Granularity:
    axis = rng.randint(-3, 2)
    match like:
        case PerTensor():
            return like
        case PerAxis():
            return PerAxis(axis)
        case Blocked():
            return Blocked(axis, rng.choice((1, 2, 3, 5, 16, 32, 100)))


def _random_shape(rng: random.Random, granularity: Granularity) -> tuple[int, ...]:
    least = 0 if isinstance(granularity, PerTensor) else least_rank(granularity)
    rank = rng.randint(least, _LONGEST_RANK)
    dims = [rng.choice(_DIMS) for _ in range(rank)]
    while math.prod(dims) > _MOST:
        at = rng.randrange(rank)
        dims[at] = max(1, dims[at] // 2)
    if rank and rng.randrange(_EMPTY) == 0:
        dims[rng.randrange(rank)] = 0
    return tuple(dims)


@cache
def device() -> Device:
    return open_device(SWIFTSHADER, bounds_checks=False)


@cache
def compiled(request: Request) -> Kernel:
    return compile_request(request)


def test_the_cases_are_many_and_of_every_kind() -> None:
    assert len(set(cases())) > 1000
    assert {len(shape) for _, shape in cases()} == set(range(_LONGEST_RANK + 1))
    assert sum(math.prod(shape) == 0 for _, shape in cases()) > 50
    assert sum(math.prod(shape) % 2 for _, shape in cases()) > 300
    assert sum(request.shape is not None for request, _ in cases()) > 200
    assert {request.mode for request, _ in cases()} == {"exact", "strict"}


@pytest.mark.parametrize("part", range(_PARTS))
def test_a_plan_of_the_json_alone_runs_right(part: int) -> None:
    chosen = cases()[part * len(cases()) // _PARTS : (part + 1) * len(cases()) // _PARTS]
    for seed, (request, shape) in enumerate(chosen):
        kernel = compiled(request)
        sidecar: dict[str, Any] = json.loads(print_sidecar(kernel.sidecar))
        inputs = make_inputs(kernel, shape, seed)
        plan = plan_dispatch(sidecar, {name: array.shape for name, array in inputs.items()})
        words = _words(sidecar, inputs, plan)
        found = device().run(kernel.wgsl, sidecar, plan, words, canaries=True)
        wanted = evaluate_reference(kernel.compiled.checked, request.granularity, inputs)
        assert list(found) == list(wanted)
        for name, want in wanted.items():
            assert len(found[name]) == plan.sizes[name]
            assert plan.is_empty == (want.size == 0)
            wrong = find_mismatches(np.frombuffer(found[name], np.uint32), want, kernel.compiled.checked.operand(name).dtype)
            assert not wrong.size, f"{kernel.name}, shape {shape}, seed {seed}: elements {wrong[:10]}"


def test_a_size_that_is_too_small_is_found() -> None:
    kernel = compiled(next(request for request, _ in cases() if request.signature.y.bits == 8 and request.granularity == PerTensor()))
    sidecar: dict[str, Any] = json.loads(print_sidecar(kernel.sidecar))
    output = next(buffer for buffer in sidecar["buffers"] if buffer["role"] == "output")
    output["size_bytes"] = ["sub", output["size_bytes"], 4]
    inputs = make_inputs(kernel, (101,), 0)
    plan = plan_dispatch(sidecar, {name: array.shape for name, array in inputs.items()})
    with pytest.raises(InternalError, match="wrote after the buffer `y`"):
        device().run(kernel.wgsl, sidecar, plan, _words(sidecar, inputs, plan), canaries=True)


def _words(sidecar: dict[str, Any], inputs: dict[str, Any], plan: DispatchPlan) -> dict[str, bytes]:
    """Return the bytes of each input that the sidecar has bound, by its dtype there; each must be as long as the plan says."""
    words = {}
    for buffer in sidecar["buffers"]:
        if buffer["role"] == "input":
            name = buffer["name"]
            words[name] = pack_words(inputs[name], buffer["element"]["dtype"]).tobytes()
            assert len(words[name]) == plan.sizes[name]
    return words
