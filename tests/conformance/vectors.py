"""Test vectors: inputs and right outputs as JSON of codes, for anyone who computes the operators. The oracle writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import qgen
from qgen.arrays import from_codes, to_codes
from qgen.check import make_inputs
from qgen.check.compare import find_reference
from qgen.dtypes import DTYPES
from qgen.kernel import Kernel
from qgen.shapes import Blocked, PerTensor

Array = NDArray[Any]
_ROW: Final = 12
"""Codes on a line."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A kernel, the shape of x, and the seed of the inputs."""

    kernel: Kernel
    shape: tuple[int, ...]
    seed: int


def _quantize(seed: int, shape: tuple[int, ...], x: str, y: str, *, zero_point: bool = False, **choices: Any) -> Vector:  # noqa: ANN401 - choices of `qgen.compile`
    granularity = choices.pop("granularity", qgen.per_axis(0))
    return Vector(qgen.compile("QuantizeLinear", x=x, y=y, zero_point=zero_point, granularity=granularity, **choices), shape, seed)


def _dequantize(seed: int, shape: tuple[int, ...], x: str, scale: str, *, zero_point: bool = False, **choices: Any) -> Vector:  # noqa: ANN401 - choices of `qgen.compile`
    granularity = choices.pop("granularity", qgen.per_axis(0))
    return Vector(
        qgen.compile("DequantizeLinear", x=x, scale=scale, zero_point=zero_point, granularity=granularity, **choices), shape, seed
    )


_LINE: Final = (96,)
_SCALES: Final = (16, 11)
_CHANNELS: Final = (3, 16, 5)
_NIBBLES: Final = (7, 29)

VECTORS: Final[Mapping[str, Vector]] = {
    "quantize_f32_u8": _quantize(0, _LINE, "float32", "uint8", zero_point=True, granularity=qgen.per_tensor()),
    "quantize_f32_u8_edge_of_scale": _quantize(26, _LINE, "float32", "uint8", zero_point=True, granularity=qgen.per_tensor()),
    "quantize_f32_i8_per_axis": _quantize(1, _CHANNELS, "float32", "int8", granularity=qgen.per_axis(1)),
    "quantize_f32_i16": _quantize(2, _SCALES, "float32", "int16", zero_point=True),
    "quantize_f32_u4_blocked": _quantize(3, _NIBBLES, "float32", "uint4", zero_point=True, granularity=qgen.blocked(-1, 8)),
    "quantize_f32_u2_blocked": _quantize(4, (8, 23), "float32", "uint2", granularity=qgen.blocked(0, 3)),
    "quantize_f16_u16": _quantize(5, _SCALES, "float16", "uint16", zero_point=True),
    "quantize_f16_in_f32_u8": _quantize(6, _SCALES, "float16", "uint8", precision="float32"),
    "quantize_bf16_i2": _quantize(7, (9, 17), "bfloat16", "int2", zero_point=True, granularity=qgen.per_axis(-1)),
    "quantize_f32_by_f16_i4": _quantize(8, _SCALES, "float32", "int4", scale="float16"),
    "quantize_i32_i32_u8": _quantize(9, _SCALES, "int32", "uint8", scale="int32", zero_point=True),
    "quantize_f32_e4m3fn": _quantize(10, _SCALES, "float32", "float8e4m3fn"),
    "quantize_f32_e5m2_unsaturated": _quantize(11, _SCALES, "float32", "float8e5m2", saturate=False),
    "quantize_f32_e2m1": _quantize(12, (5, 37), "float32", "float4e2m1", zero_point=True, granularity=qgen.blocked(1, 16)),
    "dequantize_u8_f32": _dequantize(1, _LINE, "uint8", "float32", zero_point=True, granularity=qgen.per_tensor()),
    "dequantize_i8_f32_per_axis": _dequantize(13, _CHANNELS, "int8", "float32", granularity=qgen.per_axis(1)),
    "dequantize_u4_f16_blocked": _dequantize(14, _NIBBLES, "uint4", "float16", zero_point=True, granularity=qgen.blocked(-1, 8)),
    "dequantize_i2_bf16": _dequantize(15, (9, 17), "int2", "bfloat16", granularity=qgen.per_axis(-1)),
    "dequantize_i16_f32_to_bf16": _dequantize(16, _SCALES, "int16", "float32", y="bfloat16", zero_point=True),
    "dequantize_u16_f16": _dequantize(17, _SCALES, "uint16", "float16"),
    "dequantize_i32_f32": _dequantize(18, _SCALES, "int32", "float32"),
    "dequantize_i32_f32_zero_point": _dequantize(19, _SCALES, "int32", "float32", zero_point=True),
    "dequantize_e5m2_f32": _dequantize(20, _SCALES, "float8e5m2", "float32"),
    "dequantize_e3m2_f16": _dequantize(21, _SCALES, "float6e3m2", "float16", zero_point=True),
}
"""The vectors by name."""


def print_vector(name: str) -> str:
    """Return the vector as JSON: the node, the inputs and what the oracle makes of them."""
    vector = VECTORS[name]
    kernel = vector.kernel
    inputs = make_inputs(kernel, vector.shape, vector.seed)
    operands = {operand.name: operand.dtype for operand in kernel.compiled.checked.operands}
    arrays = {**inputs, **find_reference(kernel, inputs)}
    tensors = [f' "{key}": {_print_tensor(array, operands[key].name)}' for key, array in arrays.items()]
    return "{\n" + ",\n".join([f' "node": {json.dumps(_describe_node(kernel))}', *tensors]) + "\n}\n"


def load_vector(text: str) -> dict[str, Array]:
    """Return the arrays of a vector by name."""
    return {key: _load_tensor(value) for key, value in json.loads(text).items() if key != "node"}


def _describe_node(kernel: Kernel) -> dict[str, Any]:
    signature, granularity = kernel.request.signature, kernel.request.granularity
    attributes: dict[str, Any] = {} if isinstance(granularity, PerTensor) else {"axis": granularity.axis}
    if isinstance(granularity, Blocked):
        attributes["block_size"] = granularity.block_size
    if signature.precision is not None:
        attributes["precision"] = signature.precision.name
    if not signature.saturate:
        attributes["saturate"] = 0
    return {"op": signature.op, "opset": signature.version, "attributes": attributes, "output_dtype": signature.y.name}


def _print_tensor(array: Array, dtype: str) -> str:
    digits = -(-DTYPES[dtype].bits // 4)
    codes = [f"{code:0{digits}x}" for code in to_codes(array, dtype).reshape(-1).tolist()]
    rows = ",\n".join(f'   "{" ".join(codes[start : start + _ROW])}"' for start in range(0, len(codes), _ROW))
    return f'{{"dtype": "{dtype}", "shape": {list(array.shape)}, "codes": [\n{rows}\n ]}}'


def _load_tensor(tensor: Mapping[str, Any]) -> Array:
    codes = np.array([int(code, 16) for row in tensor["codes"] for code in row.split()], np.uint32)
    return from_codes(codes, tensor["dtype"], tensor["shape"])
