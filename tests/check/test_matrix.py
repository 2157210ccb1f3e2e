"""The matrix as requests: every kernel once, its texts all different, and enough baked ones beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qgen.check.matrix import BAKED, BAKED_EACH, BIT_EXACT, kernel_variants, matrix_requests
from qgen.shapes import Blocked, PerTensor, make_view, normalize_axis
from qgen.signatures import GranularityKind, distinct_key, enumerate_signatures


def test_the_matrix_has_each_distinct_kernel_once() -> None:
    requests = matrix_requests()
    wanted = {distinct_key(signature, kind) for signature, kind in enumerate_signatures()}
    assert len(requests) == len(wanted) == 6918
    assert {distinct_key(request.signature, request.granularity.kind) for request in requests} == wanted
    assert all(request.shape is None for request in requests)
    assert {request.mode for request in requests} == {"exact"}
    assert {request.mode for request in matrix_requests(numerics="strict")} == {"strict"}


def test_the_target_is_that_of_every_request() -> None:
    assert {request.target.workgroup_size for request in matrix_requests("webgpu:workgroup_size=128")} == {128}


@pytest.mark.parametrize("kind", BAKED)
def test_two_kernels_in_a_row_have_every_baked_variant(kind: GranularityKind) -> None:
    request = next(request for request in matrix_requests() if request.granularity.kind == kind)
    for number in range(7):
        first, second = (kernel_variants(request, at) for at in (number, number + 1))
        assert first[:2] == second[:2] == (request, replace(request, mode="strict"))
        assert len(first) == len(second) == len(BIT_EXACT) + BAKED_EACH
        assert {(each.granularity, each.shape) for each in (*first[2:], *second[2:])} == set(BAKED[kind])


@pytest.mark.parametrize("kind", BAKED)
def test_every_baked_variant_comes_in_both_modes(kind: GranularityKind) -> None:
    request = next(request for request in matrix_requests() if request.granularity.kind == kind)
    baked = [each for number in range(2 * len(BAKED[kind])) for each in kernel_variants(request, number)[len(BIT_EXACT) :]]
    assert len(set(baked)) == 2 * len(BAKED[kind])


@pytest.mark.parametrize("kind", BAKED)
def test_baked_variants_have_ranks_from_1_to_4_and_both_ends_of_the_axis(kind: GranularityKind) -> None:
    variants = BAKED[kind]
    assert {1, 2, 3, 4} <= {len(shape) for _, shape in variants}
    axes = [granularity.axis for granularity, _ in variants if not isinstance(granularity, PerTensor)]
    assert kind == "per_tensor" or (min(axes) < 0 <= max(axes))
    blocks = [
        shape[normalize_axis(granularity.axis, len(shape))] % granularity.block_size == 0
        for granularity, shape in variants
        if isinstance(granularity, Blocked)
    ]
    assert kind != "blocked" or set(blocks) == {True, False}
    assert any(make_view(granularity, shape).count % 64 == 1 for granularity, shape in variants)
