"""What inputs hold: the same in every run, every edge beside every edge, ties and their neighbours, scales and zero points of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.arrays import to_codes
from qgen.check.edges import decode, edge_codes
from qgen.check.inputs import KINDS, make_inputs
from qgen.dtypes import DTYPES, DType
from qgen.errors import QgenError
from qgen.kernel import Kernel
from qgen.shapes import blocked, per_axis
from tests.check.kernels import dequantize, quantize

Array = NDArray[Any]
FLOAT32, FLOAT16, UINT8, INT8 = (DTYPES[name] for name in ("float32", "float16", "uint8", "int8"))


def codes(array: Array, dtype: DType) -> NDArray[np.uint32]:
    return to_codes(array, dtype).reshape(-1)


def pairs(kernel: Kernel, shape: tuple[int, ...], seeds: range, dtypes: tuple[DType, DType]) -> set[tuple[int, int]]:
    """Return the codes of x and of the scale that meet in a kernel per tensor or along axis 0, over all seeds."""
    found: set[tuple[int, int]] = set()
    for seed in seeds:
        x, scale = list(make_inputs(kernel, shape, seed).values())[:2]
        beside = np.broadcast_to(scale.reshape(-1, *(1,) * (x.ndim - 1)), shape)
        found |= set(zip(codes(x, dtypes[0]).tolist(), codes(np.array(beside), dtypes[1]).tolist(), strict=True))
    return found


def test_inputs_are_the_same_for_the_same_arguments_and_others_for_another_seed() -> None:
    kernel = quantize()
    first, again, other = (make_inputs(kernel, (7, 9), seed) for seed in (3, 3, 4))
    assert all(first[name].tobytes() == again[name].tobytes() for name in kernel.inputs)
    assert first["x"].tobytes() != other["x"].tobytes()


@pytest.mark.parametrize("kernel", [quantize("int4", blocked(-1, 3)), dequantize("uint2", per_axis(0)), quantize(zero_point=False)])
@pytest.mark.parametrize("shape", [(1,), (5, 7), (2, 0, 3)])
def test_inputs_have_the_names_the_dtypes_and_the_shapes_that_the_kernel_takes(kernel: Kernel, shape: tuple[int, ...]) -> None:
    inputs = make_inputs(kernel, shape, 1)
    assert tuple(inputs) == kernel.inputs
    kernel.plan({name: array.shape for name, array in inputs.items()})
    assert kernel.reference(inputs)["y"].shape == shape


def test_a_shape_without_the_axis_is_refused() -> None:
    with pytest.raises(QgenError, match="axis 1 is out of range"):
        make_inputs(quantize("uint8", per_axis(1)), (5,), 0)


def test_every_edge_of_x_meets_every_edge_of_a_scale_for_the_whole_tensor() -> None:
    edges = edge_codes(FLOAT32).tolist()
    found = pairs(quantize(), (KINDS * len(edges),), range(KINDS * len(edges)), (FLOAT32, FLOAT32))
    assert {(x, scale) for x in edges for scale in edges} <= found


def test_every_edge_of_x_meets_every_edge_of_a_scale_along_an_axis() -> None:
    x_edges, scale_edges = edge_codes(INT8).tolist(), edge_codes(FLOAT16).tolist()
    shape = (KINDS * len(scale_edges), KINDS * len(x_edges))
    found = pairs(dequantize("int8", per_axis(0), scale="float16"), shape, range(1), (INT8, FLOAT16))
    assert {(x, scale) for x in x_edges for scale in scale_edges} <= found


def test_small_groups_meet_every_pair_of_edges_in_the_end() -> None:
    edges = edge_codes(FLOAT16).tolist()
    kernel = quantize("int4", per_axis(0), x="float16")
    found = pairs(
        kernel, (KINDS * len(edges), 2 * KINDS), range(0, KINDS * len(edges) * len(edges) // 2, KINDS * len(edges)), (FLOAT16, FLOAT16)
    )
    assert {(x, scale) for x in edges for scale in edges} <= found


@pytest.mark.parametrize("y", ["uint2", "int4", "uint8", "int16"])
def test_quotients_lie_on_ties_and_one_unit_on_either_side(y: str) -> None:
    counts = dict.fromkeys((-1, 0, 1), 0)
    for seed in range(0, 40, KINDS):
        inputs = make_inputs(quantize(y), (1000,), seed)
        x, scale = inputs["x"], inputs["y_scale"]
        with np.errstate(all="ignore"):
            quotient = x / scale
            tie = np.floor(quotient) + np.float32(0.5)
        for step in counts:
            beside = np.nextafter(tie, tie + np.float32(step)) if step else tie
            counts[step] += int((quotient == beside).sum())
    assert min(counts.values()) > 200, counts


def test_quotients_reach_both_ends_of_the_range_and_beyond() -> None:
    for y in (DTYPES["uint16"], DTYPES["int8"]):
        inputs = make_inputs(quantize(y.name), (4000,), 0)
        zero_point = int(inputs["y_zero_point"])
        with np.errstate(all="ignore"):
            sums = np.rint(inputs["x"].astype(np.float64) / inputs["y_scale"]) + zero_point
        assert {y.min - 1, y.min, y.max, y.max + 1} <= set(np.clip(sums[np.isfinite(sums)], y.min - 1, y.max + 1).tolist())


def test_products_lie_beside_the_middle_of_two_outputs() -> None:
    near = 0
    for seed in range(1, 81, KINDS):
        inputs = make_inputs(dequantize("int16", scale="float16"), (64,), seed)
        exact = (inputs["x"].astype(np.float64) - int(inputs["x_zero_point"])) * inputs["x_scale"].astype(np.float64)
        with np.errstate(all="ignore"):
            low = exact.astype(np.float16)
            high = np.nextafter(low, np.where(exact > low, np.float16(np.inf), np.float16(-np.inf)))
            middle = (low.astype(np.float64) + high) / 2
        near += int((np.abs(exact - middle) <= np.abs(middle) * 2.0**-10).any())
    assert near >= 15


def test_scales_are_of_every_kind() -> None:
    scales = np.concatenate([make_inputs(quantize(), (3,), seed)["y_scale"].reshape(1) for seed in range(KINDS * len(edge_codes(FLOAT32)))])
    found = set(codes(scales, FLOAT32).tolist())
    assert set(edge_codes(FLOAT32).tolist()) <= found
    ordinary = scales[::KINDS]
    assert np.all(np.isfinite(ordinary))
    assert (ordinary < 0).any()
    assert np.abs(ordinary).min() < 0.01
    assert np.abs(ordinary).max() > 1


def test_zero_points_reach_the_extremes_and_every_edge() -> None:
    found: set[int] = set()
    for seed in range(3 * len(edge_codes(UINT8))):
        found |= set(codes(make_inputs(dequantize("uint8"), (2,), seed)["x_zero_point"], UINT8).tolist())
    assert set(edge_codes(UINT8).tolist()) <= found


def test_narrow_inputs_hold_every_code() -> None:
    x = make_inputs(dequantize("int4", blocked(0, 32)), (2000,), 5)["x"]
    assert set(decode(codes(x, DTYPES["int4"]), DTYPES["int4"]).tolist()) == set(range(-8, 8))


def test_calm_inputs_are_for_the_quick_code_but_for_a_few_elements() -> None:
    for y in ("uint8", "int4"):
        for seed in range(KINDS - 1):
            inputs = make_inputs(quantize(y, zero_point=False), (4000,), seed, calm=True)
            assert np.isfinite(inputs["x"]).all()
            quotient = inputs["x"].astype(np.float64) / inputs["y_scale"].astype(np.float64)
            margin = np.abs(np.abs(quotient - np.rint(quotient)) - 0.5)
            near = margin <= np.abs(quotient) * 2.0**-13
            assert 0.01 < near.mean() < 0.2
            # On both sides of where the quick code of `rint_quotient` gives up, and not far from it.
            few = margin[near] / np.abs(quotient[near])
            assert (few < 2.0**-20).sum() > 10
            assert ((few > 2.0**-20) & (few < 2.0**-18)).sum() > 10


def test_calm_products_are_of_any_code_and_ordinary_scales() -> None:
    scales = np.concatenate([make_inputs(dequantize("int8"), (9,), seed, calm=True)["x_scale"].reshape(1) for seed in range(40)])
    assert np.isfinite(scales[:3]).all()
    assert (np.abs(np.log2(np.abs(scales[scales != 0]))) < 13).mean() >= 0.7
    x = make_inputs(dequantize("int8"), (4000,), 0, calm=True)["x"]
    assert len(set(x.tolist())) == 256


@pytest.mark.parametrize("calm", [False, True])
def test_a_float8_zero_point_of_any_code_takes_no_part(calm: bool) -> None:  # noqa: FBT001 - a parameter of the test
    dtype = DTYPES["float8e5m2"]
    found: set[int] = set()
    for seed in range(3 * len(edge_codes(dtype))):
        inputs = make_inputs(quantize("float8e5m2", per_axis(0)), (5, 8), seed, calm=calm)
        found |= set(codes(inputs["y_zero_point"], dtype).tolist())
    assert {dtype.format.nan_code, dtype.format.overflow_code} <= found if dtype.format else False
