"""`.npy` files and the logical arrays in them.

numpy writes an ml_dtypes array as bytes without a type (`|V1`, `|V2`): these are codes, one element an item. A flat uint8 array, for a
dtype other than uint8, is packed bytes, `ceil(bits * N / 8)` of them. Everything else is a logical array.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes, hint_at_type, numpy_dtype, unpack
from qgen.cli.files import read_bytes
from qgen.dtypes import DType, Family
from qgen.errors import QgenError

Array = NDArray[Any]
Shape = tuple[int, ...]


def load_array(path: str) -> Array:
    """Return the array in a `.npy` file. Raises `QgenError` QG902 for a file that cannot be read, QG905 for one that is no `.npy`."""
    data = io.BytesIO(read_bytes(path))
    try:
        array: Array = np.lib.format.read_array(data, allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise QgenError("QG905", f"this is no .npy file: {reason}", hint="write it with `numpy.save`", place=path) from error
    return array


def dump_array(array: Array) -> bytes:
    """Return the bytes of a `.npy` file."""
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    return data.getvalue()


def is_packed(array: Array, dtype: DType) -> bool:
    """Whether the array holds packed bytes of `dtype`."""
    return array.dtype == np.uint8 and array.ndim == 1 and numpy_dtype(dtype) != np.uint8


def to_logical(array: Array, dtype: DType, shape: Shape | None, place: str) -> Array:
    """Return the logical array of `dtype`: codes and packed bytes are read as such.

    `shape` is needed for packed bytes, and held against any other array where it is known. Raises `QgenError` QG906 where packed bytes have
    no shape, QG907 where the array has another, QG240 where it has another type, QG241 and QG242 as `from_codes` and `unpack` do.
    """
    if is_packed(array, dtype):
        if shape is None:
            message = f"the {array.size} bytes hold packed {dtype.name}, and nothing says of which shape"
            raise QgenError("QG906", message, hint="give it, as --shape-of x=2,3", place=place)
        return _with_place(lambda: unpack(array, dtype, shape), place)
    if shape is not None and array.shape != shape:
        hint = "give an array of this shape; a kernel emitted without --shape takes any"
        raise QgenError("QG907", f"the array has shape {list(array.shape)}, not {list(shape)}", hint=hint, place=place)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize == numpy_dtype(dtype).itemsize:
        return _with_place(lambda: from_codes(_codes(array, dtype), dtype, array.shape), place)
    if array.dtype.newbyteorder("=") != numpy_dtype(dtype):
        hint = f"{hint_at_type(dtype)}, or packed bytes: `qgen run --help`"
        raise QgenError("QG240", f"an array of {array.dtype} was given where {dtype.name} is needed", hint=hint, place=place)
    return array


def _codes(array: Array, dtype: DType) -> NDArray[np.uint32]:
    """Return the codes of untyped items; a signed type of less than a byte may be stored with its sign in the upper bits."""
    items = np.frombuffer(array.tobytes(), f"<u{array.dtype.itemsize}").astype(np.uint32)
    if dtype.family is Family.SIGNED:
        sign_extended = (items & np.uint32(dtype.mask)) | np.uint32((1 << 8 * array.dtype.itemsize) - 1 - dtype.mask)
        is_negative = (items >> np.uint32(dtype.bits - 1)) & np.uint32(1) == 1
        return np.where((items == sign_extended) & is_negative, items & np.uint32(dtype.mask), items)
    return items


def _with_place(read: Callable[[], Array], place: str) -> Array:
    try:
        return read()
    except QgenError as error:
        raise QgenError(error.code, error.message, hint=error.hint, place=place) from error
