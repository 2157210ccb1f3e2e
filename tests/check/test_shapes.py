"""The shapes that kernels are checked on have what a kernel can go wrong by."""

from __future__ import annotations

import math

import pytest

import qgen
from qgen.check import check_shapes
from qgen.check.shapes import check_runs, least_rank
from qgen.kernel import Kernel
from qgen.shapes import Blocked, Granularity, blocked, per_axis, per_tensor, scale_shape

GRANULARITIES = [
    per_tensor(), per_axis(0), per_axis(1), per_axis(-1), per_axis(-3), per_axis(5),
    blocked(0, 2), blocked(-1, 32), blocked(1, 7), blocked(-2, 5), blocked(-1, 1), blocked(0, 100_000),
]  # fmt: skip
SIGNATURES = [("QuantizeLinear", "float32", "uint2"), ("QuantizeLinear", "bfloat16", "int16"), ("DequantizeLinear", "int32", "float32")]


def compile_kernel(signature: tuple[str, str, str], granularity: Granularity, target: str = "webgpu") -> Kernel:
    op, x, y = signature
    return qgen.compile(op, x=x, scale="float32", y=y, granularity=granularity, target=target)


def workgroups(kernel: Kernel, shape: tuple[int, ...]) -> int:
    shared = scale_shape(kernel.request.granularity, shape)
    return math.prod(kernel.plan(dict.fromkeys(kernel.inputs[1:], shared) | {"x": shape}).passes[0].dispatch)


def lanes(kernel: Kernel) -> int:
    formula: list[int] = kernel.sidecar["let"]["U"]
    return formula[2]


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=str)
@pytest.mark.parametrize("signature", SIGNATURES, ids="-".join)
def test_shapes_have_all_that_is_asked_for(signature: tuple[str, str, str], granularity: Granularity) -> None:
    kernel = compile_kernel(signature, granularity)
    shapes = check_shapes(kernel)
    least = least_rank(granularity)
    assert [len(shape) for shape in shapes] == [max(least, rank) for rank in (1, 2, 3, 4, 2)]
    assert any(math.prod(shape) % 2048 == 0 for shape in shapes)
    assert all(math.prod(shape) for shape in shapes)
    assert any(math.prod(shape) % lanes(kernel) == 1 for shape in shapes)
    assert any(workgroups(kernel, shape) > 1 for shape in shapes)
    if isinstance(granularity, Blocked) and granularity.block_size > 1:
        assert any(shape[granularity.axis] % granularity.block_size for shape in shapes)


def test_many_workgroups_are_reached_whatever_their_size() -> None:
    kernel = compile_kernel(SIGNATURES[0], blocked(-1, 32), "webgpu:workgroup_size=256")
    assert max(workgroups(kernel, shape) for shape in check_shapes(kernel)) > 1


def test_a_baked_kernel_is_checked_on_its_shape() -> None:
    assert check_shapes(qgen.compile("QuantizeLinear", x="float32", shape=(2, 3))) == ((2, 3),)


def test_every_shape_is_run_with_calm_inputs_and_a_large_one_once() -> None:
    shapes = ((3,), (20000,), (2, 7), (64, 64))
    runs = list(check_runs(shapes, 4, 40))
    assert [number for number, _, _ in runs] == [40, 41, 42, 43, 44, 46, 47, 48, 50, 51, 52, 54, 55]
    assert [shape for _, shape, _ in runs].count((20000,)) == 1
    for shape in ((3,), (2, 7), (64, 64)):
        assert [calm for _, found, calm in runs if found == shape].count(True) == 1
