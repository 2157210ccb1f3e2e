"""The kernel on the evaluator and on adapters against the oracle: granularities, ranks, sizes, and the order of the elements."""

from __future__ import annotations

import math

import numpy as np
import pytest

from qgen.check import check_kernel, make_inputs
from qgen.check.reduced import RANGES
from qgen.kernel import Kernel
from qgen.shapes import Granularity, blocked, per_axis, per_tensor
from qgen.validate import validate_texts
from tests.dynamic.kernels import bits, dynamic
from tests.dynamic.scalar import quantize_groups
from tests.runtime.stacks import LAVAPIPE, SWIFTSHADER, open_stack

DEVICES = ("cpu", LAVAPIPE, SWIFTSHADER)
LARGE = (2, 65, 67)
"""More than 64 invocations of 64 elements."""
GRANULARITIES: list[tuple[Granularity, list[tuple[int, ...]]]] = [
    (per_tensor(), [(), (1,), (7, 9), (2, 3, 4), (2, 3, 2, 5), LARGE]),
    (per_axis(0), [(1,), (5,), (3, 70), (130, 3), (2, 3, 2, 5), LARGE]),
    (per_axis(-1), [(5,), (70, 3), (2, 3, 130), LARGE]),
    (blocked(-1, 4), [(1,), (9,), (3, 70), (2, 3, 4), LARGE]),
    (blocked(0, 32), [(33,), (70, 3), (2, 3, 2, 5), LARGE]),
    (blocked(-2, 3), [(7, 5), (2, 65, 3), LARGE]),
    (blocked(-1, 1), [(3, 5)]),
    (blocked(-1, 1000), [(3, 5), (3, 70)]),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    if request.param != "cpu":
        open_stack(request.param)
    return str(request.param)


@pytest.mark.parametrize("numerics", ["exact", "strict"])
@pytest.mark.parametrize(("granularity", "shapes"), GRANULARITIES, ids=str)
def test_one_text_is_right_on_every_shape(granularity: Granularity, shapes: list[tuple[int, ...]], numerics: str, device: str) -> None:
    """In so many rounds, canaries around each buffer, every kind of range is there."""
    result = check_kernel(dynamic(granularity, numerics=numerics), device, shapes, rounds=len(RANGES))
    assert result.ok, str(result)
    assert result.elements > len(RANGES) * sum(map(math.prod, shapes))


@pytest.mark.parametrize(("granularity", "shapes"), GRANULARITIES, ids=str)
def test_baked_texts_are_right(granularity: Granularity, shapes: list[tuple[int, ...]], device: str) -> None:
    for shape in shapes[::2] if device == "cpu" else shapes[-1:]:
        result = check_kernel(dynamic(granularity, shape), device, rounds=len(RANGES))
        assert result.ok, str(result)


@pytest.mark.parametrize(("granularity", "shapes"), GRANULARITIES, ids=str)
def test_the_oracle_is_what_the_text_of_semantics_says(granularity: Granularity, shapes: list[tuple[int, ...]]) -> None:
    kernel = dynamic(granularity)
    for shape in shapes:
        if math.prod(shape) > 1000:
            continue
        for seed in range(2 * len(RANGES)):
            inputs = make_inputs(kernel, shape, seed)
            assert bits(kernel.reference(inputs)) == bits(dict(quantize_groups(inputs["x"], granularity)))


def ordered(x: np.ndarray) -> list[np.ndarray]:
    """Return the elements in other orders: the extremes first, last, in one invocation, in different ones."""
    rng = np.random.default_rng(3)
    return [np.sort(x), np.sort(x)[::-1], np.roll(x, 1), *(rng.permutation(x) for _ in range(3))]


def results_in_order(kernel: Kernel, x: np.ndarray, device: str) -> tuple[list[str], list[str], list[str]]:
    found = bits(kernel.run({"x": np.ascontiguousarray(x)}, device=device))
    order = np.argsort(x.view(np.uint32), kind="stable")
    return found["y_scale"][2], found["y_zero_point"][2], [found["y"][2][number] for number in order]


@pytest.mark.parametrize("kind", RANGES)
def test_the_order_of_the_elements_does_not_matter(kind: str, device: str) -> None:
    kernel = dynamic()
    x = make_inputs(kernel, (9001,), RANGES.index(kind))["x"]
    wanted = results_in_order(kernel, x, device)
    for other in ordered(x):
        assert results_in_order(kernel, other, device) == wanted


def test_a_text_runs_again_and_again_with_the_same_results(device: str) -> None:
    """What an earlier run left in the scratch buffers does not matter: a wide range, then a narrow one."""
    kernel = dynamic()
    wide = np.linspace(-1000, 1000, 5000, dtype=np.float32)
    for scale in (1, 0.001, 100, 0.5):
        x = wide * np.float32(scale)
        assert bits(kernel.run({"x": x}, device=device)) == bits(kernel.reference({"x": x}))


@pytest.mark.parametrize(
    ("granularity", "shape", "folded"),
    [
        (per_tensor(), (90_000,), "reduce main"),
        (per_axis(0), (6000, 3), "clear finish main"),
        (blocked(-1, 2), (60, 201), "clear finish main"),
    ],
    ids=str,
)
def test_dispatches_are_folded_over_rows_of_workgroups(granularity: Granularity, shape: tuple[int, ...], folded: str, device: str) -> None:
    kernel = dynamic(granularity, target="webgpu:lanes=4,workgroup_size=64,max_workgroups_per_dimension=20")
    assert {step.entry_point for step in kernel.plan({"x": shape}).passes if step.dispatch[1] > 1} == set(folded.split())
    result = check_kernel(kernel, device, [shape], rounds=2)
    assert result.ok, str(result)


def test_both_compilers_accept_every_text() -> None:
    kernels = [
        dynamic(granularity, shape, numerics)
        for granularity, shapes in GRANULARITIES
        for shape in (None, *shapes)
        for numerics in ("exact", "strict", "fast")
    ]
    texts = {kernel.name: kernel.wgsl for kernel in kernels}
    assert len(texts) > 100
    reports = validate_texts(list(texts.items()), engine="all")
    assert len(reports) == 2 * len(texts)
    assert [report.label for report in reports if not report.ok] == []
