"""The matrix as requests: every kernel once, its texts all different, and enough baked ones beside it."""

from __future__ import annotations

import pytest

from qgen.check.matrix import BAKED, BAKED_EACH, kernel_variants, matrix_requests
from qgen.shapes import Blocked, PerTensor, make_view, normalize_axis
from qgen.signatures import GranularityKind, distinct_key


def test_the_matrix_has_each_distinct_kernel_once() -> None:
    requests = matrix_requests()
    assert len(requests) == 1782
    assert len({distinct_key(request.signature, request.granularity.kind) for request in requests}) == 1782
    assert all(request.shape is None for request in requests)


def test_the_target_is_that_of_every_request() -> None:
    assert {request.target.workgroup_size for request in matrix_requests("webgpu:workgroup_size=128")} == {128}


@pytest.mark.parametrize("kind", BAKED)
def test_two_kernels_in_a_row_have_every_baked_variant(kind: GranularityKind) -> None:
    request = next(request for request in matrix_requests() if request.granularity.kind == kind)
    for number in range(7):
        first, second = (kernel_variants(request, at) for at in (number, number + 1))
        assert first[0] == second[0] == request
        assert len(first) == len(second) == 1 + BAKED_EACH
        assert {(each.granularity, each.shape) for each in (*first[1:], *second[1:])} == set(BAKED[kind])


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
