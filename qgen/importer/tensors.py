"""Tensors of a model: whether what they say of themselves is so, without reading data that no kernel depends on."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

from onnx import TensorProto

from qgen.errors import QgenError
from qgen.importer.text import printable, read_text

KEPT_BYTES: Final = 1 << 16
"""Larger tensors are dropped after they have been checked: no shape is computed from them."""

_BITS: Final[dict[int, int]] = {
    TensorProto.FLOAT: 32, TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16, TensorProto.INT16: 16, TensorProto.INT32: 32,
    TensorProto.INT64: 64, TensorProto.BOOL: 8, TensorProto.FLOAT16: 16, TensorProto.DOUBLE: 64, TensorProto.UINT32: 32,
    TensorProto.UINT64: 64, TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128, TensorProto.BFLOAT16: 16, TensorProto.FLOAT8E4M3FN: 8,
    TensorProto.FLOAT8E4M3FNUZ: 8, TensorProto.FLOAT8E5M2: 8, TensorProto.FLOAT8E5M2FNUZ: 8, TensorProto.UINT4: 4, TensorProto.INT4: 4,
    TensorProto.FLOAT4E2M1: 4, TensorProto.FLOAT8E8M0: 8, TensorProto.UINT2: 2, TensorProto.INT2: 2, 27: 6, 28: 6,
}  # fmt: skip
_FIELDS: Final[dict[int, tuple[str, int]]] = {
    TensorProto.FLOAT: ("float_data", 1), TensorProto.COMPLEX64: ("float_data", 2), TensorProto.DOUBLE: ("double_data", 1),
    TensorProto.COMPLEX128: ("double_data", 2), TensorProto.INT64: ("int64_data", 1), TensorProto.UINT32: ("uint64_data", 1),
    TensorProto.UINT64: ("uint64_data", 1), TensorProto.STRING: ("string_data", 1),
}  # fmt: skip
"""The field that holds the elements where `raw_data` does not, and entries an element; all other types use `int32_data`."""
_VALUE_FIELDS: Final = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")

_DAMAGED: Final = "the file is damaged, or its exporter is at fault: export the model again"
_OUTSIDE: Final = "put the data file beside the model, and name it by a relative path"


def check_tensor(tensor: TensorProto, folders: tuple[Path, ...], place: str) -> None:
    """Hold a tensor's dims and type against its data, and external data against `folders`, the first of which holds the model.

    Raises `QgenError` QG414 for what cannot be, QG415 for external data elsewhere, QG416 where they are missing or too short.
    """
    dims = tuple(tensor.dims)
    if any(dim < 0 for dim in dims):
        raise QgenError("QG414", f"the tensor has the shape {list(dims)}", hint="dimensions are 0 or more", place=place)
    if tensor.data_type == TensorProto.UNDEFINED:
        raise QgenError("QG414", "the tensor has no element type", hint=_DAMAGED, place=place)
    bits = _BITS.get(tensor.data_type)
    nbytes = None if bits is None else -(-bits * math.prod(dims) // 8)
    if tensor.data_location == TensorProto.EXTERNAL:
        _check_external(tensor, nbytes, folders, place)
    elif tensor.HasField("raw_data"):
        _check_length(len(tensor.raw_data), nbytes, "bytes", tensor, place)
    else:
        field, entries = _FIELDS.get(tensor.data_type, ("int32_data", 1))
        if bits is not None or field == "string_data":
            packed = 8 // bits if bits in {2, 4} else 1
            count = -(-math.prod(dims) * entries // packed)
            given = len(getattr(tensor, field))
            _check_length(given, given if bits == 6 and given else count, f"values in `{field}`", tensor, place)


def drop_large_data(tensor: TensorProto) -> None:
    """Take the data of a large tensor away, in place: its type and dims are what shape inference needs of it."""
    if tensor.data_location == TensorProto.EXTERNAL or tensor.ByteSize() > KEPT_BYTES:
        for field in _VALUE_FIELDS:
            tensor.ClearField(field)
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.EXTERNAL


def read_data(tensor: TensorProto, folders: tuple[Path, ...]) -> bytes:
    """Return the bytes of a tensor that has been checked, of its file where they are external; empty where typed fields hold the elements.

    Raises `QgenError` QG416 where the file can no longer be read.
    """
    data: bytes = tensor.raw_data
    if has_data(tensor):
        return data
    entries = {entry.key: entry.value for entry in tensor.external_data}
    nbytes = -(-_BITS.get(tensor.data_type, 0) * math.prod(tensor.dims) // 8)
    try:
        with (folders[0] / entries["location"]).open("rb") as file:
            file.seek(int(entries.get("offset", "0")))
            data = file.read(nbytes)
    except OSError as error:
        shown = printable(entries["location"])
        raise QgenError("QG416", f"the tensor's data file `{shown}` cannot be read: {error.strerror}", hint=_OUTSIDE) from error
    return data


def has_data(tensor: TensorProto) -> bool:
    """Tell whether the tensor's values are at hand."""
    return tensor.data_location != TensorProto.EXTERNAL


def _check_length(given: int, needed: int | None, what: str, tensor: TensorProto, place: str) -> None:
    if needed is not None and given != needed:
        message = f"the tensor of shape {list(tensor.dims)} needs {needed} {what} and has {given}"
        raise QgenError("QG414", message, hint=_DAMAGED, place=place)


def _check_external(tensor: TensorProto, nbytes: int | None, folders: tuple[Path, ...], place: str) -> None:
    entries = {read_text(entry.key, place): read_text(entry.value, place) for entry in tensor.external_data}
    location = entries.get("location", "")
    shown = printable(location)
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    leaves = windows.is_absolute() or posix.is_absolute() or windows.drive or windows.root or ".." in (*windows.parts, *posix.parts)
    if leaves or not location or "\0" in location:
        raise QgenError("QG415", f"the tensor's data lie outside the model's folder: `{shown}`", hint=_OUTSIDE, place=place)
    try:
        found = Path(os.path.realpath(folders[0] / location))
        if not any(found.is_relative_to(folder) for folder in folders):
            raise QgenError("QG415", f"the tensor's data lie outside the model's folder: `{shown}` is a link", hint=_OUTSIDE, place=place)
        if not found.is_file():
            raise QgenError("QG416", f"the tensor's data file `{shown}` is not there", hint=_OUTSIDE, place=place)
        size = found.stat().st_size
    except OSError as error:
        raise QgenError(
            "QG416", f"the tensor's data file `{shown}` cannot be read: {error.strerror}", hint=_OUTSIDE, place=place
        ) from error
    offset = _whole(entries.get("offset", "0"), "offset", place)
    length = _whole(entries["length"], "length", place) if "length" in entries else nbytes or 0
    if nbytes is not None:
        _check_length(length, nbytes, "bytes", tensor, place)
    if offset + length > size:
        message = f"the tensor's data end at byte {offset + length} of `{shown}`, which has {size}"
        raise QgenError("QG416", message, hint="the data file is cut short, or belongs to another model", place=place)


def _whole(text: str, what: str, place: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < 20:
        return int(text)
    raise QgenError("QG414", f"the {what} of the tensor's data is `{printable(text)}`, no number of bytes", hint=_DAMAGED, place=place)
