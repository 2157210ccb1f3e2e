"""What a text does whatever its shape: one text for all ranks, a dispatch folded into rows, and nothing at all for an empty tensor."""

from __future__ import annotations

import math
from typing import Final

import pytest

import qgen
from qgen.check import check_kernel, make_inputs
from qgen.check.compare import run_kernel
from qgen.kernel import Kernel
from qgen.shapes import Granularity, blocked, per_axis, per_tensor, scale_shape
from tests.conformance.stacks import RUNTIMES
from tests.runtime.stacks import STACKS

DEVICES: Final = ("cpu", *STACKS, *RUNTIMES)

ANY_RANK: Final = (
    (), (1,), (2,), (7,), (8,), (9,), (4097,), (3, 5), (64, 40), (1, 129), (2, 3, 5), (1, 1, 1), (17, 1, 31), (2, 3, 4, 5), (3, 1, 2, 7),
    (5, 4, 3, 2, 3), (1, 1, 1, 1, 9), (2, 3, 2, 3, 2, 3), (1, 2, 1, 2, 1, 67), (4, 1, 3, 1, 5, 11),
)  # fmt: skip
"""Twenty shapes of ranks 0 to 6."""
WITH_AXIS: Final = ((5,), *(shape for shape in ANY_RANK if shape))
"""The same without rank 0, which has no axis, and one more of rank 1."""

GRANULARITIES: Final[tuple[Granularity, ...]] = (per_tensor(), per_axis(-1), blocked(-1, 3))


def shapes_for(granularity: Granularity) -> tuple[tuple[int, ...], ...]:
    return ANY_RANK if granularity == per_tensor() else WITH_AXIS


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=lambda granularity: str(granularity.kind))
def test_there_are_twenty_shapes_of_ranks_up_to_6(granularity: Granularity) -> None:
    shapes = shapes_for(granularity)
    assert len(set(shapes)) == 20
    assert {len(shape) for shape in shapes} == set(range(0 if granularity == per_tensor() else 1, 7))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("granularity", GRANULARITIES, ids=lambda granularity: str(granularity.kind))
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_one_text_serves_twenty_shapes(device: str, granularity: Granularity, op: str) -> None:
    x, y = ("float32", "int4") if op == "QuantizeLinear" else ("int4", "float16")
    kernel = qgen.compile(op, x=x, scale="float32", y=y, zero_point=True, granularity=granularity)
    result = check_kernel(kernel, device, shapes_for(granularity), seed=3)
    assert result.ok, str(result)
    assert result.elements >= sum(map(math.prod, shapes_for(granularity)))


@pytest.mark.parametrize("device", DEVICES)
def test_a_blocked_axis_may_lie_anywhere(device: str) -> None:
    for axis in (0, 1, -2):
        kernel = qgen.compile("QuantizeLinear", x="float16", y="uint8", zero_point=True, granularity=blocked(axis, 2))
        result = check_kernel(kernel, device, [shape for shape in ANY_RANK if len(shape) > 1], seed=axis + 2)
        assert result.ok, str(result)


def fold(shape: tuple[int, ...] | None) -> Kernel:
    return qgen.compile(
        "QuantizeLinear",
        x="float32",
        y="uint4",
        zero_point=True,
        granularity=per_axis(0),
        shape=shape,
        target="webgpu:max_workgroups_per_dimension=7,workgroup_size=64,lanes=16",
    )


FOLDED: Final = {(5, 8193): 6, (3, 64 * 16 * 7): 3, (7, 64 * 16 * 4 + 16): 5, (7, 64 * 16 * 7): 7}
"""Shapes, and rows of 7 workgroups of 1,024 elements: 41 workgroups, the last with 5 elements; 21; 29, one in the last row; and 49."""


def dispatch(kernel: Kernel, shape: tuple[int, ...]) -> tuple[int, int, int]:
    shared = scale_shape(kernel.request.granularity, shape)
    return kernel.plan(dict.fromkeys(kernel.inputs[1:], shared) | {"x": shape}).passes[0].dispatch


@pytest.mark.parametrize(("shape", "rows"), FOLDED.items())
def test_the_dispatch_is_folded(shape: tuple[int, ...], rows: int) -> None:
    for kernel in (fold(None), fold(shape)):
        assert dispatch(kernel, shape) == (7, rows, 1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_folded_dispatch_is_right(device: str) -> None:
    for kernel, shapes in [(fold(None), tuple(FOLDED)), *((fold(shape), (shape,)) for shape in FOLDED)]:
        result = check_kernel(kernel, device, shapes, rounds=2)
        assert result.ok, str(result)


EMPTY: Final[tuple[tuple[Granularity, tuple[int, ...]], ...]] = (
    (per_tensor(), (0,)),
    (per_tensor(), (3, 0, 2)),
    (per_axis(1), (2, 0)),
    (per_axis(0), (2, 0)),
    (blocked(-1, 4), (2, 0)),
    (blocked(0, 4), (2, 0, 5)),
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("granularity", "shape"), EMPTY)
def test_an_empty_tensor_dispatches_nothing(device: str, granularity: Granularity, shape: tuple[int, ...]) -> None:
    for baked in (None, shape):
        kernel = qgen.compile("QuantizeLinear", x="float32", y="int2", zero_point=True, granularity=granularity, shape=baked)
        inputs = make_inputs(kernel, shape, 0)
        plan = kernel.plan({name: array.shape for name, array in inputs.items()})
        assert plan.is_empty
        assert plan.passes == ()
        assert run_kernel(kernel, device, inputs)["y"].size == 0
        assert kernel.run(inputs, device)["y"].shape == kernel.reference(inputs)["y"].shape == shape
