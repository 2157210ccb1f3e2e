"""The edges of a dtype, and the moves between its codes."""

from __future__ import annotations

import numpy as np
import pytest

from qgen.check.edges import decode, edge_codes, encode, step_codes
from qgen.dtypes import DTYPES, DType

FLOAT32 = DTYPES["float32"]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=lambda dtype: dtype.name)
def test_edges_are_codes_in_order_each_once(dtype: DType) -> None:
    edges = edge_codes(dtype)
    assert edges.dtype == np.uint32
    assert np.array_equal(edges, np.unique(edges))
    assert edges[-1] <= dtype.mask


def test_edges_of_float32() -> None:
    wanted = {
        0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x3F7FFFFF, 0x3F800000, 0xBF800000, 0x3F800001,
        0x7F7FFFFE, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF,
    }  # fmt: skip
    edges = edge_codes(FLOAT32)
    assert wanted <= set(edges.tolist())
    powers = edges[(edges & np.uint32(0x7FFFFF)) == 0]
    assert powers.size > 24


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_edges_of_the_halves_have_the_same_kinds(name: str) -> None:
    dtype = DTYPES[name]
    values = decode(edge_codes(dtype), dtype)
    assert np.isnan(values).sum() >= 6
    assert np.isinf(values).sum() == 2
    assert set(np.signbit(values[values == 0]).tolist()) == {True, False}
    smallest = np.unique(np.abs(values[values != 0]))[0]
    assert decode(np.array([1], np.uint32), dtype)[0] == smallest


def test_edges_of_narrow_types_are_all_codes() -> None:
    for name in ("uint2", "int2", "uint4", "int4", "float4e2m1"):
        assert edge_codes(DTYPES[name]).tolist() == list(range(1 << DTYPES[name].bits))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32"])
def test_edges_of_integers_have_the_extremes_and_the_powers_of_two(name: str) -> None:
    dtype = DTYPES[name]
    values = decode(edge_codes(dtype), dtype)
    powers = 2.0 ** np.arange(dtype.bits - (dtype.min < 0))
    assert {dtype.min, dtype.max, 0, *powers, *(powers - 1)} <= set(values.tolist())


def test_edges_of_int32_have_ties_of_the_conversion_to_float32() -> None:
    values = decode(edge_codes(DTYPES["int32"]), DTYPES["int32"])
    assert {2.0**24 + 1, 2.0**24 + 3, 2.0**25 + 2, 2.0**30 + 64, 2.0**30 + 192, -(2.0**24) - 1} <= set(values.tolist())


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES.values() if dtype.bits <= 16], ids=lambda dtype: dtype.name)
def test_encoding_undoes_decoding(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits, dtype=np.uint32)
    values = decode(codes, dtype)
    known = ~np.isnan(values)
    assert np.array_equal(encode(values, dtype)[known], codes[known])


def test_encoding_saturates_integers_and_rounds_half_to_even() -> None:
    values = np.array([-9.0, -8.5, -0.5, 0.5, 1.5, 7.5, np.inf, -np.inf, np.nan])
    assert encode(values, DTYPES["int4"]).tolist() == [8, 8, 0, 0, 2, 7, 7, 8, 0]


def test_steps_are_units_in_the_last_place_away_from_zero() -> None:
    codes = np.array([0x3F800000, 0xBF800000, 0x00000000, 0x80000000, 0x7FFFFFFF], np.uint32)
    for step, wanted in (
        (1, [0x3F800001, 0xBF800001, 1, 0x80000001, 0x7FFFFFFF]),
        (-1, [0x3F7FFFFF, 0xBF7FFFFF, 0, 0x80000000, 0x7FFFFFFE]),
    ):
        assert step_codes(codes, np.full(5, step, np.int64), FLOAT32).tolist() == wanted


def test_steps_of_integers_are_by_value_and_stop_at_the_ends() -> None:
    codes = np.array([0, 7, 8, 15], np.uint32)
    assert step_codes(codes, np.ones(4, np.int64), DTYPES["int4"]).tolist() == [1, 7, 9, 0]
    assert step_codes(codes, np.ones(4, np.int64), DTYPES["uint4"]).tolist() == [1, 8, 9, 15]
