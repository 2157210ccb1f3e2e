"""Arrays, codes, bytes and words: round trips, and against `onnx.numpy_helper`, which packs independently."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from qgen.arrays import from_codes, numpy_dtype, pack, pack_words, to_codes, unpack, unpack_words
from qgen.dtypes import DTYPES, DType
from qgen.errors import QgenError
from tests.goldens import Goldens

SHAPES = [(), (0,), (2, 0, 3), (1,), (2,), (3,), (5,), (3, 5), (2, 3, 7), (16,), (17,), (4, 33)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dtype" in metafunc.fixturenames:
        metafunc.parametrize("dtype", DTYPES.values(), ids=DTYPES)
    if "shape" in metafunc.fixturenames:
        metafunc.parametrize("shape", SHAPES, ids=str)


def random_codes(dtype: DType, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    return np.random.default_rng(len(shape)).integers(0, dtype.mask, shape, np.uint32, endpoint=True)


def test_codes_there_and_back(dtype: DType, shape: tuple[int, ...]) -> None:
    codes = random_codes(dtype, shape)
    array = from_codes(codes, dtype, shape)
    assert array.dtype == numpy_dtype(dtype)
    assert array.shape == shape
    back = to_codes(array, dtype)
    assert back.dtype == np.uint32
    assert back.shape == shape
    np.testing.assert_array_equal(back, codes)


def test_bytes_are_onnxs(dtype: DType, shape: tuple[int, ...]) -> None:
    codes = random_codes(dtype, shape)
    array = from_codes(codes, dtype, shape)
    packed = pack(array, dtype)
    assert packed.dtype == np.uint8
    assert packed.shape == (dtype.nbytes(array.size),)
    tensor = numpy_helper.from_array(array)
    assert (tensor.data_type, tensor.raw_data) == (dtype.onnx, packed.tobytes())
    again = numpy_helper.to_array(onnx.helper.make_tensor("t", dtype.onnx, shape, packed.tobytes(), raw=True))
    np.testing.assert_array_equal(to_codes(again, dtype), codes)
    for data in (packed, packed.tobytes(), bytearray(packed.tobytes())):
        np.testing.assert_array_equal(to_codes(unpack(data, dtype, shape), dtype), codes)


def test_words_are_the_bytes_padded_with_zero(dtype: DType, shape: tuple[int, ...]) -> None:
    array = from_codes(random_codes(dtype, shape), dtype, shape)
    words = pack_words(array, dtype)
    assert words.dtype == np.uint32
    assert words.shape == (dtype.words(array.size),)
    packed = pack(array, dtype).tobytes()
    assert words.astype("<u4").tobytes() == packed + bytes(4 * words.size - len(packed))
    for unpacked in (unpack_words(words, dtype, shape), unpack(words, dtype, shape)):
        assert unpacked.dtype == numpy_dtype(dtype)
        np.testing.assert_array_equal(to_codes(unpacked, dtype), to_codes(array, dtype))


def test_element_i_lies_at_bit_i_times_bits(dtype: DType) -> None:
    """The definition itself, in Python's integers."""
    codes = random_codes(dtype, (37,))
    stream = sum(int(code) << (index * dtype.bits) for index, code in enumerate(codes))
    array = from_codes(codes, dtype, (37,))
    assert int.from_bytes(pack(array, dtype).tobytes(), "little") == stream
    assert int.from_bytes(pack_words(array, dtype).astype("<u4").tobytes(), "little") == stream


@pytest.mark.parametrize(
    ("name", "values", "packed"),
    [
        ("uint4", [1, 2, 15], [0x21, 0x0F]),
        ("int4", [-1, -8, 7], [0x8F, 0x07]),
        ("uint2", [1, 2, 3, 0, 3], [0b00111001, 0b11]),
        ("int2", [-1, -2, 1], [0b00011011]),
        ("float4e2m1", [6.0, -0.5, -6.0], [0x97, 0x0F]),
        ("float6e2m3", [7.5, -7.5, 0.125, -0.0], [0xDF, 0x1F, 0x80]),
        ("int16", [-2], [0xFE, 0xFF]),
        ("bfloat16", [1.0], [0x80, 0x3F]),
    ],
)
def test_packed_by_hand(name: str, values: list[float], packed: list[int]) -> None:
    array = np.array(values, np.float32).astype(numpy_dtype(DTYPES[name]))
    assert pack(array, name).tolist() == packed


def test_any_spelling_of_a_dtype_will_do() -> None:
    array = np.array([1, 2, 3], ml_dtypes.uint4)
    assert {pack(array, spec).tobytes() for spec in ("uint4", "u4", ml_dtypes.uint4, array.dtype, DTYPES["uint4"])} == {b"\x21\x03"}


def test_the_order_is_row_major_whatever_the_strides() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (array.T, array[:, ::2], array[::-1], np.asfortranarray(array)):
        np.testing.assert_array_equal(unpack(pack(view, "float32"), "float32", view.shape), view)
    strided = np.zeros(10, np.uint8)
    strided[::2] = pack(np.array([1, 2, 3, 4, 5], np.uint8), "uint8")
    np.testing.assert_array_equal(unpack(strided[::2], "uint8", (5,)), [1, 2, 3, 4, 5])


def test_the_other_byte_order_is_the_same_array() -> None:
    big = np.array([1.5, -2.0], ">f4")
    np.testing.assert_array_equal(to_codes(big, "float32"), [0x3FC00000, 0xC0000000])
    assert pack(big, "float32").tobytes() == np.array([1.5, -2.0], "<f4").tobytes()


def test_nothing_given_is_changed_and_nothing_returned_is_shared() -> None:
    array = np.arange(4, dtype=np.uint32).view(np.float32)
    array.flags.writeable = False
    words = pack_words(array, "float32")
    words[:] = 0
    unpack(pack(array, "float32"), "float32", (4,))[:] = 0
    np.testing.assert_array_equal(array.view(np.uint32), [0, 1, 2, 3])


def test_nan_payloads_and_signs_survive() -> None:
    codes = np.array([0x7FC00000, 0xFFC00001, 0x7F800001, 0x80000000], np.uint32)
    np.testing.assert_array_equal(to_codes(unpack(codes, "float32", (4,)), "float32"), codes)


def test_padding_bits_are_not_looked_at() -> None:
    assert unpack(b"\xf1", "uint4", (1,)).tolist() == [1]
    assert unpack_words(np.array([0xFFFFFFF1], np.uint32), "uint4", (1,)).tolist() == [1]


BAD: dict[str, tuple[str, Callable[[], object]]] = {
    "float64 for float32": ("QG240", lambda: pack(np.array([1.0]), "float32")),
    "uint8 for uint4": ("QG240", lambda: pack(np.array([1], np.uint8), "uint4")),
    "uint8 for int8": ("QG240", lambda: pack(np.array([1], np.uint8), "int8")),
    "int16 for float16": ("QG240", lambda: pack_words(np.array([1], np.int16), "float16")),
    "text": ("QG240", lambda: to_codes(np.array(["a"]), "uint8")),
    "objects": ("QG240", lambda: to_codes(np.array([None]), "uint8")),
    "a code too great": ("QG241", lambda: from_codes(np.array([16]), "uint4", (1,))),
    "a negative code": ("QG241", lambda: from_codes(np.array([-1]), "int4", (1,))),
    "a code that is a float": ("QG241", lambda: from_codes(np.array([1.0]), "uint4", (1,))),
    "too few codes": ("QG242", lambda: from_codes(np.array([1, 2]), "uint4", (3,))),
    "too few bytes": ("QG242", lambda: unpack(b"\0\0", "uint4", (5,))),
    "too many bytes": ("QG242", lambda: unpack(b"\0\0\0\0", "uint4", (5,))),
    "too many words": ("QG242", lambda: unpack_words(np.zeros(2, np.uint32), "uint4", (8,))),
    "bytes that are signed": ("QG243", lambda: unpack(np.zeros(2, np.int8), "uint4", (4,))),
    "words that are bytes": ("QG243", lambda: unpack_words(np.zeros(1, np.uint8), "uint4", (2,))),
    "a negative dimension": ("QG220", lambda: unpack(b"", "uint4", (-1,))),
    "no dtype": ("QG101", lambda: pack(np.array([1.0]), "float64")),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_its_error(what: str) -> None:
    code, call = BAD[what]
    with pytest.raises(QgenError) as caught:
        call()
    assert caught.value.code == code


ERRORS: dict[str, Callable[[], object]] = {
    "QG240": lambda: pack(np.array([1, 2, 3], np.int64), "uint4"),
    "QG241": lambda: from_codes(np.array([3, 16]), "uint4", (2,)),
    "QG242": lambda: unpack(bytes(10), "int4", (3, 7)),
    "QG243": lambda: unpack(np.zeros(3, np.float32), "float16", (6,)),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        ERRORS[code]()
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")
