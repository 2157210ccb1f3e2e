"""Granularities and shapes: every row of SEMANTICS 1.5 and 2.2, the view against ONNX's reference evaluator, the errors as goldens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from qgen.errors import QgenError
from qgen.shapes import (
    MAX_COUNT,
    Blocked,
    Granularity,
    PerAxis,
    PerTensor,
    View,
    blocked,
    check_operand_shapes,
    check_shape,
    classify_granularity,
    make_view,
    normalize_axis,
    per_axis,
    per_tensor,
    scale_shape,
    scale_shapes_accepted,
)
from tests.goldens import Goldens

Dims = tuple[int, ...]


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(QgenError) as caught:
        call()
    return caught.value.code


def scale_numbers(granularity: Granularity, shape: Dims) -> NDArray[np.int64]:
    """Return the number of each element's scale, by the rule in the docstring of `View`."""
    view = make_view(granularity, shape)
    outer, axis, inner = np.indices((view.outer, view.axis, view.inner))
    numbers: NDArray[np.int64]
    match granularity:
        case PerTensor():
            numbers = np.zeros_like(axis)
        case PerAxis():
            numbers = axis
        case Blocked():
            numbers = (outer * view.blocks + axis // view.block_size) * view.inner + inner
    return numbers.reshape(shape)


def test_kinds_and_constructors() -> None:
    assert (per_tensor(), per_axis(), per_axis(-1), blocked(axis=-1, block_size=32)) == (
        PerTensor(),
        PerAxis(1),
        PerAxis(-1),
        Blocked(-1, 32),
    )
    assert [granularity.kind for granularity in (per_tensor(), per_axis(), blocked(0, 2))] == ["per_tensor", "per_axis", "blocked"]


@pytest.mark.parametrize(
    ("granularity", "shape", "view"),
    [
        (per_tensor(), (), View(1, 1, 1, 1, 1)),
        (per_tensor(), (2, 3), View(1, 1, 6, 1, 1)),
        (per_tensor(), (2, 0), View(1, 1, 0, 1, 1)),
        (per_axis(0), (5,), View(1, 5, 1, 1, 5)),
        (per_axis(1), (2, 3, 4, 5), View(2, 3, 20, 1, 3)),
        (per_axis(-1), (2, 3, 4), View(6, 4, 1, 1, 4)),
        (per_axis(0), (0, 3), View(1, 0, 3, 1, 0)),
        (blocked(-1, 32), (64, 100), View(64, 100, 1, 32, 4)),
        (blocked(0, 2), (5, 3), View(1, 5, 3, 2, 3)),
        (blocked(1, 3), (2, 3), View(2, 3, 1, 3, 1)),
        (blocked(1, 1000), (2, 3), View(2, 3, 1, 3, 1)),
        (blocked(1, 4), (2, 0, 3), View(2, 0, 3, 1, 0)),
    ],
)
def test_views(granularity: Granularity, shape: Dims, view: View) -> None:
    assert make_view(granularity, shape) == view
    assert view.count == math.prod(shape)


@pytest.mark.parametrize(
    ("granularity", "shape", "accepted"),
    [
        (per_tensor(), (), ((), (1,))),
        (per_tensor(), (4,), ((), (1,))),
        (per_tensor(), (2, 3), ((), (1,), (1, 1))),
        (per_axis(), (2, 3), ((3,),)),
        (per_axis(-2), (0, 3), ((0,),)),
        (blocked(-1, 32), (64, 100), ((64, 4),)),
        (blocked(0, 2), (5, 3), ((3, 3),)),
        (blocked(1, 7), (2, 0), ((2, 0),)),
        (blocked(0, 2**53), (4,), ((1,),)),
    ],
)
def test_scale_shapes(granularity: Granularity, shape: Dims, accepted: tuple[Dims, ...]) -> None:
    assert scale_shapes_accepted(granularity, shape) == accepted
    assert scale_shape(granularity, shape) == accepted[0]
    for scale in accepted:
        check_operand_shapes(granularity, shape, scale, None)
        check_operand_shapes(granularity, shape, scale, scale)


@pytest.mark.parametrize(
    ("x", "scale", "axis", "block_size", "granularity"),
    [
        # 1: a block size and the rank of x
        ((2, 5), (2, 3), 1, 2, Blocked(1, 2)),
        ((2, 5), (2, 3), -1, 2, Blocked(1, 2)),
        ((5, 2), (3, 2), -2, 2, Blocked(0, 2)),
        ((4,), (1,), 0, 4, Blocked(0, 4)),
        ((1, 3), (1, 1), 1, 3, Blocked(1, 3)),
        ((2, 3), (2, 1), 1, 1000, Blocked(1, 1000)),
        ((2, 0), (2, 0), 1, 4, Blocked(1, 4)),
        ((0, 3), (0, 1), 1, 4, Blocked(1, 4)),
        # 2: one element
        ((), (), 1, 0, PerTensor()),
        ((), (1,), 7, 0, PerTensor()),
        ((), (), 1, 4, PerTensor()),
        ((2, 3), (), 99, 0, PerTensor()),
        ((2, 3), (1,), -99, 0, PerTensor()),
        ((2, 3), (), 1, 32, PerTensor()),
        ((2, 3), (1,), 9, 32, PerTensor()),
        ((2, 3), (1, 1), 1, 0, PerTensor()),
        ((2, 3), (1, 1, 1), 1, 0, PerTensor()),
        ((0,), (1,), 1, 0, PerTensor()),
        # 3: one dimension
        ((2, 3), (3,), 1, 0, PerAxis(1)),
        ((2, 3), (2,), -2, 0, PerAxis(0)),
        ((3,), (3,), 0, 0, PerAxis(0)),
        ((3,), (3,), -1, 0, PerAxis(0)),
        ((2, 0), (0,), 1, 0, PerAxis(1)),
    ],
)
def test_classification(x: Dims, scale: Dims, axis: int, block_size: int, granularity: Granularity) -> None:
    assert classify_granularity(x, scale, axis, block_size) == granularity
    assert classify_granularity(x, scale, axis, block_size, scale) == granularity
    check_operand_shapes(granularity, x, scale, scale)


@pytest.mark.parametrize(
    ("x", "scale", "axis", "block_size", "code"),
    [
        ((2, 3), (1, 1), 1, 3, "QG225"),
        ((4,), (3,), 0, 2, "QG224"),
        ((4,), (1,), 0, 3, "QG224"),
        ((4,), (0,), 0, 4, "QG224"),
        ((0,), (1,), 0, 4, "QG224"),
        ((2, 3), (2, 3), 1, 0, "QG227"),
        ((2, 3), (2, 1), 1, 0, "QG227"),
        ((2, 3), (3,), 1, 2, "QG227"),
        ((2, 3, 4), (2, 3), 1, 2, "QG227"),
        ((2, 3), (1, 1, 1), 1, 2, "QG227"),
        ((2, 3), (3,), 1, -1, "QG223"),
        ((2, 3), (), 1, -1, "QG223"),
        ((2, 3), (3,), 2, 0, "QG222"),
        ((2, 3), (3,), -3, 0, "QG222"),
        ((3,), (3,), 1, 0, "QG222"),
        ((), (2,), 0, 0, "QG222"),
        ((2, 3), (2, 1), 2, 3, "QG222"),
        ((4,), (1,), 1, 4, "QG222"),
        ((2, 3), (2,), 1, 0, "QG226"),
        ((2, 3), (0,), 1, 0, "QG226"),
        ((2, -3), (3,), 1, 0, "QG220"),
        ((2, 3), (-1,), 1, 0, "QG220"),
    ],
)
def test_shapes_that_mean_nothing(x: Dims, scale: Dims, axis: int, block_size: int, code: str) -> None:
    assert code_of(lambda: classify_granularity(x, scale, axis, block_size)) == code


@pytest.mark.parametrize(
    ("x", "scale", "zero_point", "is_accepted"),
    [
        ((2, 3), (3,), (3,), True),
        ((2, 3), (), (1,), True),
        ((2, 3), (1,), (), True),
        ((2, 3), (1, 1), (), True),
        ((2, 3), (3,), (), False),
        ((2, 3), (3,), (1,), False),
        ((2, 3), (3,), (2,), False),
        ((2, 3), (), (3,), False),
        ((2, 3), (1,), (0,), False),
    ],
)
def test_zero_points_have_the_shape_of_the_scale(x: Dims, scale: Dims, zero_point: Dims, *, is_accepted: bool) -> None:
    granularity = classify_granularity(x, scale)
    if is_accepted:
        assert classify_granularity(x, scale, zero_point_shape=zero_point) == granularity
        check_operand_shapes(granularity, x, scale, zero_point)
    else:
        assert code_of(lambda: classify_granularity(x, scale, zero_point_shape=zero_point)) == "QG228"
        assert code_of(lambda: check_operand_shapes(granularity, x, scale, zero_point)) == "QG228"


@pytest.mark.parametrize(
    ("granularity", "x", "scale", "code"),
    [
        (per_tensor(), (2, 3), (3,), "QG227"),
        (per_tensor(), (2, 3), (0,), "QG227"),
        (per_axis(), (2, 3), (), "QG227"),
        (per_axis(), (2, 3), (1, 3), "QG227"),
        (per_axis(), (2, 3), (2,), "QG226"),
        (per_axis(), (3,), (3,), "QG222"),
        (per_axis(0), (), (1,), "QG222"),
        (blocked(1, 2), (2, 3), (2,), "QG227"),
        (blocked(1, 2), (2, 3), (2, 3), "QG224"),
        (blocked(1, 2), (2, 3), (1, 2), "QG225"),
        (blocked(2, 2), (2, 3), (2, 2), "QG222"),
        (blocked(0, 2), (), (), "QG222"),
    ],
)
def test_operands_that_do_not_fit_a_compiled_kernel(granularity: Granularity, x: Dims, scale: Dims, code: str) -> None:
    assert code_of(lambda: check_operand_shapes(granularity, x, scale, None)) == code


@pytest.mark.parametrize("block_size", [0, -1, MAX_COUNT + 1, True, 2.0])
def test_blocks_hold_something(block_size: Any) -> None:  # noqa: ANN401 - what a user may pass
    assert code_of(lambda: blocked(0, block_size)) == "QG223"


@pytest.mark.parametrize("axis", [1.0, "1", None, True])
def test_an_axis_is_a_whole_number(axis: Any) -> None:  # noqa: ANN401 - what a user may pass
    assert code_of(lambda: per_axis(axis)) == "QG222"
    assert code_of(lambda: blocked(axis, 2)) == "QG222"
    assert code_of(lambda: normalize_axis(axis, 2)) == "QG222"


@pytest.mark.parametrize("shape", [(2, None), ("N", 3), (2.0,), "23", 5, None])
def test_a_shape_is_made_of_whole_numbers(shape: Any) -> None:  # noqa: ANN401 - what a user may pass
    assert code_of(lambda: check_shape(shape)) == "QG220"


def test_a_shape_may_hold_numpy_integers() -> None:
    dims = check_shape([*np.array([2, 3], np.int64), np.uint8(4)])
    assert dims == (2, 3, 4)
    assert all(type(dim) is int for dim in dims)


def test_the_most_elements() -> None:
    assert check_shape((2**26, 2**27)) == (2**26, 2**27)
    assert code_of(lambda: check_shape((2**26, 2**27 + 1))) == "QG221"
    assert code_of(lambda: check_shape((2**54, 0))) == "QG221"
    assert make_view(per_tensor(), (2**53, 0)).count == 0


def reference_model(axis: int, block_size: int) -> ReferenceEvaluator:
    """Return a DequantizeLinear of unknown shapes, in ONNX's reference evaluator."""
    inputs = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, None),
        onnx.helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, None),
    ]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    node = onnx.helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=axis, block_size=block_size)
    graph = onnx.helper.make_graph([node], "g", inputs, outputs)
    return ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 25)]))


@pytest.mark.parametrize(("axis", "block_size"), [*itertools.product([-3, -2, -1, 0, 1, 2], [0, 1, 2, 3, 4])])
def test_the_view_finds_the_scale_that_the_reference_uses(axis: int, block_size: int) -> None:
    """With x = 1 and scales 1, 2, 3, ... the reference's output is each element's scale, so its number plus 1."""
    model = reference_model(axis, block_size)
    for shape in [dims for rank in (1, 2, 3) for dims in itertools.product((1, 2, 5), repeat=rank)]:
        if not -len(shape) <= axis < len(shape):
            continue
        wanted = blocked(axis, block_size) if block_size else per_axis(axis)
        for granularity in (wanted, per_tensor()):
            scale = scale_shape(granularity, shape)
            scales = np.arange(1, math.prod(scale) + 1, dtype=np.float32).reshape(scale)
            (y,) = model.run(None, {"x": np.ones(shape, np.uint8), "s": scales})
            np.testing.assert_array_equal(y, scale_numbers(granularity, shape) + 1)
            found = classify_granularity(shape, scale, axis, block_size)
            assert np.array_equal(scale_numbers(found, shape), scale_numbers(granularity, shape))


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=4).map(tuple).flatmap(
        lambda shape: st.tuples(st.just(shape), st.integers(-len(shape), len(shape) - 1), st.integers(1, 8))
    )
)  # fmt: skip
def test_what_a_granularity_asks_for_is_classified_as_it(case: tuple[Dims, int, int]) -> None:
    shape, axis, block_size = case
    for granularity, size in ((blocked(axis, block_size), block_size), (per_axis(axis), 0)):
        scale = scale_shape(granularity, shape)
        found = classify_granularity(shape, scale, axis, size, scale)
        check_operand_shapes(granularity, shape, scale, scale)
        assert make_view(granularity, shape).count == math.prod(shape)
        if found.kind == granularity.kind:
            assert make_view(found, shape) == make_view(granularity, shape)
        else:
            assert found == PerTensor()
            assert scale == (1,)
        numbers = scale_numbers(granularity, shape)
        assert set(numbers.reshape(-1).tolist()) == (set(range(math.prod(scale))) if math.prod(shape) else set())


@given(st.integers(1, 60), st.integers(1, 60))
def test_the_hint_names_exactly_the_block_sizes_that_fit(length: int, blocks: int) -> None:
    fits = [size for size in range(1, length + 1) if -(-length // size) == blocks]
    wrong = next(size for size in (length + 1, 1) if -(-length // size) != blocks) if (length, blocks) != (1, 1) else None
    if wrong is None:
        return
    with pytest.raises(QgenError) as caught:
        classify_granularity((length,), (blocks,), 0, wrong)
    assert caught.value.code == "QG224"
    match fits:
        case []:
            assert caught.value.hint.startswith("no block size")
        case _ if blocks == 1:
            assert caught.value.hint == f"one block needs a block size of at least {length}"
        case [only]:
            assert caught.value.hint.endswith(f"a block size of {only}")
        case _:
            assert caught.value.hint.endswith(f"a block size of {fits[0]} to {fits[-1]}")


ERRORS: dict[str, Callable[[], object]] = {
    "QG220": lambda: make_view(per_tensor(), (2, -3)),
    "QG221": lambda: make_view(per_tensor(), (2**30, 2**30)),
    "QG222": lambda: classify_granularity((5,), (5,)),
    "QG223": lambda: blocked(-1, 0),
    "QG224": lambda: classify_granularity((64, 100), (64, 3), -1, 32),
    "QG225": lambda: classify_granularity((64, 100), (1, 4), -1, 32),
    "QG226": lambda: classify_granularity((64, 100), (64,)),
    "QG227": lambda: classify_granularity((64, 100), (64, 4)),
    "QG228": lambda: classify_granularity((64, 100), (100,), zero_point_shape=()),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        ERRORS[code]()
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")


def test_whole_numbers_of_numpy_are_taken() -> None:
    granularity = blocked(np.int64(-1), np.uint8(32))
    assert granularity == Blocked(-1, 32)
    assert (type(granularity.axis), type(granularity.block_size)) == (int, int)
    assert per_axis(np.int32(2)) == PerAxis(2)
    for axis in (np.float32(1), np.bool_(1), "1"):
        with pytest.raises(QgenError) as caught:
            per_axis(axis)  # type: ignore[arg-type]  # what a user may give
        assert caught.value.code == "QG222"
