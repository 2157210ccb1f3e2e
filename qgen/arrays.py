"""Logical arrays, element codes, packed bytes and u32 words: the four forms of one tensor, and the ways between them.

A logical array has the numpy or ml_dtypes type of its dtype, one element an item. A code is the element's bits in the low bits of a u32.
Packed bytes are ONNX's `raw_data`: flat over the whole tensor, first element in the lowest bits, padding bits zero. Words are those bytes
read as little-endian u32, as a kernel binds them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from qgen.dtypes import WORD_BITS, DType, Family, parse_dtype
from qgen.errors import QgenError
from qgen.shapes import check_shape

BYTE_BITS: Final = 8
_BYTE: Final = np.dtype("u1")
_WORD: Final = np.dtype("<u4")


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return the numpy dtype, or ml_dtypes' where numpy has none, of a logical array of `dtype`."""
    dtype_of: np.dtype[Any] = np.dtype(getattr(np, dtype.numpy, None) or getattr(ml_dtypes, dtype.numpy))
    return dtype_of


def to_codes(array: NDArray[Any], dtype: object) -> NDArray[np.uint32]:
    """Return the codes of a logical array, in its shape.

    `dtype` is anything that `parse_dtype` takes. Raises `QgenError` QG240 when the array's type is not that of `dtype`: nothing is
    converted, except the byte order.
    """
    parsed = parse_dtype(dtype)
    array = to_logical(array, parsed)
    wanted = numpy_dtype(parsed)
    bits = np.array(array, order="C", copy=None).reshape(-1).view(f"u{wanted.itemsize}").astype(np.uint32)
    return (bits & np.uint32(parsed.mask)).reshape(array.shape)


def to_logical(array: object, dtype: DType, place: str = "the array") -> NDArray[Any]:
    """Return what numpy makes an array of, in this machine's byte order. Raises `QgenError` QG240 when its type is not that of `dtype`."""
    wanted = numpy_dtype(dtype)
    try:
        given: NDArray[Any] = np.asarray(array)
    except ValueError:  # lists of several lengths
        given = np.asarray(None)
    if given.dtype != wanted and given.dtype.newbyteorder("=") != wanted:
        message = f"an array of {given.dtype.name} was given where {dtype.name} is needed"
        raise QgenError("QG240", message, hint=hint_at_type(dtype), place=place)
    return given.astype(wanted, copy=False)


def hint_at_type(dtype: DType) -> str:
    """Return how to come by an array of the type of `dtype`."""
    name = f"{'numpy' if hasattr(np, dtype.numpy) else 'ml_dtypes'}.{dtype.numpy}"
    return f"give an array of type `{name}`, as `array.astype({name})` makes one"


def from_codes(codes: NDArray[Any], dtype: object, shape: Sequence[int]) -> NDArray[Any]:
    """Return the logical array of `shape` whose elements have `codes`, in row-major order.

    Raises `QgenError` QG241 when the codes are not whole numbers within the dtype's bits, QG242 when there are not as many as `shape` says.
    """
    parsed = parse_dtype(dtype)
    dims = check_shape(shape, "the array")
    codes = np.asarray(codes).reshape(-1)
    if codes.dtype.kind not in "ui" or (codes.size and not 0 <= int(codes.min()) <= int(codes.max()) <= parsed.mask):
        raise QgenError(
            "QG241", f"these are not codes of {parsed.name}", hint=f"codes are whole numbers from 0 to {parsed.mask}", place="the codes"
        )
    _check_length(codes.size, math.prod(dims), f"codes of {parsed.name}")
    wanted = numpy_dtype(parsed)
    if parsed.family is Family.SIGNED and parsed.bits < BYTE_BITS:
        sign = 1 << (parsed.bits - 1)
        return ((codes.astype(np.int8) ^ sign) - sign).astype(wanted).reshape(dims)
    return codes.astype(f"u{wanted.itemsize}").view(wanted).reshape(dims)


def pack(array: NDArray[Any], dtype: object) -> NDArray[np.uint8]:
    """Return the packed bytes of a logical array: `ceil(bits * N / 8)` of them. Raises `QgenError` QG240."""
    parsed = parse_dtype(dtype)
    codes = to_codes(array, parsed).reshape(-1)
    if parsed.bits >= BYTE_BITS:
        return codes.astype(f"<u{parsed.bits // BYTE_BITS}").view(_BYTE)
    elements, nbytes = _period(parsed)
    rows = np.zeros((-(-codes.size // elements), elements), np.uint32)
    rows.reshape(-1)[: codes.size] = codes
    joined: NDArray[np.uint32] = np.bitwise_or.reduce(rows << _shifts(elements, parsed.bits), axis=1)
    split = (joined[:, None] >> _shifts(nbytes, BYTE_BITS)).astype(_BYTE)
    return split.reshape(-1)[: parsed.nbytes(codes.size)]


def unpack(data: NDArray[Any] | bytes | bytearray, dtype: object, shape: Sequence[int]) -> NDArray[Any]:
    """Return the logical array of `shape` that `data` packs: bytes (or uint8), or uint32 words. Padding bits are not looked at.

    Raises `QgenError` QG242 when the length is not exactly that of `shape`, QG243 when the data are neither bytes nor words.
    """
    parsed = parse_dtype(dtype)
    dims = check_shape(shape, "the array")
    count = math.prod(dims)
    packed = np.frombuffer(data, _BYTE) if isinstance(data, bytes | bytearray) else np.asarray(data)
    if packed.dtype == np.uint32:
        return unpack_words(packed, parsed, dims)
    if packed.dtype != _BYTE:
        message = f"an array of {packed.dtype.name} holds neither packed bytes nor words"
        raise QgenError("QG243", message, hint="give bytes, a uint8 array, or a uint32 array of words", place="the array")
    _check_length(packed.size, parsed.nbytes(count), f"bytes of packed {parsed.name}")
    return from_codes(_codes_of_bytes(packed.reshape(-1), parsed, count), parsed, dims)


def pack_words(array: NDArray[Any], dtype: object) -> NDArray[np.uint32]:
    """Return the u32 words of a logical array as a kernel binds them: `ceil(bits * N / 32)`, padding zero. Raises `QgenError` QG240."""
    parsed = parse_dtype(dtype)
    packed = pack(array, parsed)
    words = np.zeros(parsed.words(np.asarray(array).size) * (WORD_BITS // BYTE_BITS), _BYTE)
    words[: packed.size] = packed
    return words.view(_WORD).astype(np.uint32, copy=False)


def unpack_words(words: NDArray[Any], dtype: object, shape: Sequence[int]) -> NDArray[Any]:
    """Return the logical array of `shape` in `words`. Raises `QgenError` QG242 for a wrong length, QG243 for another type than uint32."""
    parsed = parse_dtype(dtype)
    dims = check_shape(shape, "the array")
    count = math.prod(dims)
    words = np.asarray(words)
    if words.dtype != np.uint32:
        raise QgenError("QG243", f"an array of {words.dtype.name} does not hold words", hint="give a uint32 array", place="the array")
    _check_length(words.size, parsed.words(count), f"words of packed {parsed.name}")
    packed = words.reshape(-1).astype(_WORD).view(_BYTE)[: parsed.nbytes(count)]
    return from_codes(_codes_of_bytes(packed, parsed, count), parsed, dims)


def _codes_of_bytes(packed: NDArray[np.uint8], dtype: DType, count: int) -> NDArray[np.uint32]:
    if dtype.bits >= BYTE_BITS:
        return np.array(packed, order="C", copy=None).view(f"<u{dtype.bits // BYTE_BITS}").astype(np.uint32)
    elements, nbytes = _period(dtype)
    rows = np.zeros((-(-count // elements), nbytes), np.uint32)
    rows.reshape(-1)[: packed.size] = packed
    joined: NDArray[np.uint32] = np.bitwise_or.reduce(rows << _shifts(nbytes, BYTE_BITS), axis=1)
    split: NDArray[np.uint32] = (joined[:, None] >> _shifts(elements, dtype.bits)) & np.uint32(dtype.mask)
    return split.reshape(-1)[:count]


def _period(dtype: DType) -> tuple[int, int]:
    """Return the least number of elements that fill whole bytes, and those bytes."""
    bits = math.lcm(dtype.bits, BYTE_BITS)
    return bits // dtype.bits, bits // BYTE_BITS


def _shifts(count: int, bits: int) -> NDArray[np.uint32]:
    return np.arange(count, dtype=np.uint32) * np.uint32(bits)


def _check_length(given: int, needed: int, what: str) -> None:
    if given != needed:
        raise QgenError(
            "QG242", f"{given} {what} were given, but the shape needs {needed}", hint="check the shape and the dtype", place="the length"
        )
