"""The samples that adapters run have every pair of choices, and more."""

from __future__ import annotations

from itertools import product

import pytest

from qgen.check import matrix_requests
from qgen.check.matrix import BAKED, BIT_EXACT, USUAL
from qgen.dtypes import DTYPES
from tests.conformance.sample import MOST, TEXTS, all_features, cover, factors, features, sample_matrix, texts_to_run
from tests.conformance.stacks import SAMPLES


@pytest.mark.parametrize("stack", SAMPLES)
def test_a_sample_has_every_pair_and_is_not_too_large(stack: str) -> None:
    count, seed = SAMPLES[stack]
    chosen = [request for _, request in sample_matrix(count, seed)]
    assert len({id(request) for request in chosen}) == len(chosen) == count
    assert len(chosen) * TEXTS <= MOST
    assert all_features(chosen) == all_features(matrix_requests())


@pytest.mark.parametrize("stack", SAMPLES)
def test_a_sample_has_each_of_the_tuples_that_it_is_held_to(stack: str) -> None:
    chosen = [factors(request) for _, request in sample_matrix(*SAMPLES[stack])]
    floats = ("float32", "float16", "bfloat16")
    quantized = tuple(f"{sign}int{bits}" for sign, bits in product(("", "u"), (2, 4, 8, 16)))
    quantized += tuple(name for name in DTYPES if name.startswith(("float8e4", "float8e5", "float6", "float4")))
    dtypes = {(each["op"], each["x"], each["scale"], each["y"]) for each in chosen}
    assert dtypes == {
        *(("QuantizeLinear", x, scale, y) for x, scale, y in product((*floats, "int32"), (*floats, "int32", "float8e8m0"), quantized)),
        *(("DequantizeLinear", x, scale, y) for x, scale, y in product((*quantized, "int32"), (*floats, "float8e8m0"), floats)),
    }
    kernels = {(each["division"], each["y"], each["granularity"], each["zero_point"]) for each in chosen}
    granularities = ("per_tensor", "per_axis", "blocked")
    wanted = {
        *product((*floats, "EXACT"), quantized, granularities, (True, False)),
        *product(("None",), floats, granularities, (True, False)),
    }
    assert kernels == {each for each in wanted if not (str(each[1]).startswith("float8") and each[3])}


def test_samples_are_the_same_in_every_run_and_differ_between_stacks() -> None:
    assert sample_matrix(50, 1) == sample_matrix(50, 1)
    numbers = [{number for number, _ in sample_matrix(*sample)} for sample in SAMPLES.values()]
    assert len(set[int]().union(*numbers)) > 1400


def test_a_cover_takes_what_adds_most_first() -> None:
    offered = [frozenset({(1,)}), frozenset({(1,), (2,), (3,)}), frozenset({(3,), (4,)}), frozenset({(4,)})]
    assert cover(offered, 0) in ([1, 2], [1, 3])


def test_features_are_pairs_and_two_tuples() -> None:
    request = matrix_requests()[0]
    assert len(features(request)) == 8 * 7 // 2 + 2
    assert ("pair", ("op", "QuantizeLinear"), ("x", "float32")) in features(request)


@pytest.mark.parametrize("stack", SAMPLES)
def test_the_texts_that_a_stack_runs_are_of_every_kind(stack: str) -> None:
    texts = [text for number, request in sample_matrix(*SAMPLES[stack]) for text in texts_to_run(request, number)]
    assert len(set(texts)) == len(texts) <= MOST
    kinds = {(text.mode, text.granularity, text.shape) for text in texts}
    for kind, baked in BAKED.items():
        assert {(mode, USUAL[kind], None) for mode in BIT_EXACT} <= kinds
        assert {(mode, *variant) for mode in BIT_EXACT for variant in baked} <= kinds
