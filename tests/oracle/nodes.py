"""One node as ONNX gives it (operator, opset, attributes, arrays in order), evaluated by the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.dtypes import BY_ONNX, DType, parse_dtype
from qgen.oracle import evaluate_reference
from qgen.shapes import classify_granularity
from qgen.signatures import Signature, find_rows
from tests.oracle.programs import build_program

Array = NDArray[Any]


def make_signature(
    op: str,
    opset: int,
    dtypes: tuple[DType, DType, DType],
    *,
    zero_point: bool,
    precision: DType | None = None,
    saturate: bool = True,
    domain: str = "ai.onnx",
) -> Signature:
    """Return the signature of (x, scale, y) whether the compiler has these dtypes yet or not."""
    row = max((row for row in find_rows(domain, op) if row.version <= opset), key=lambda row: row.version)
    x, scale, y = dtypes
    return Signature(domain, op, row.version, x, scale, y, zero_point, precision, row.division(x, scale, precision), saturate)


def name_inputs(op: str, arrays: Sequence[Array]) -> dict[str, Array]:
    """Return the inputs of a node by ONNX's names."""
    prefix = "y" if op == "QuantizeLinear" else "x"
    return dict(zip(("x", f"{prefix}_scale", f"{prefix}_zero_point"), arrays, strict=False))


def evaluate_node(op: str, opset: int, attributes: Mapping[str, int], arrays: Sequence[Array]) -> Array:
    """Return y of the node."""
    x, scale, *rest = arrays
    zero_point = rest[0] if rest else None
    x_dtype, scale_dtype = parse_dtype(x.dtype), parse_dtype(scale.dtype)
    default = scale_dtype if op == "DequantizeLinear" else parse_dtype("uint8") if zero_point is None else parse_dtype(zero_point.dtype)
    y_dtype = BY_ONNX[attributes["output_dtype"]] if attributes.get("output_dtype") else default
    signature = make_signature(
        op,
        opset,
        (x_dtype, scale_dtype, y_dtype),
        zero_point=zero_point is not None,
        precision=BY_ONNX[attributes["precision"]] if attributes.get("precision") else None,
        saturate=bool(attributes.get("saturate", 1)),
    )
    granularity = classify_granularity(
        x.shape,
        scale.shape,
        attributes.get("axis", 1),
        attributes.get("block_size", 0),
        None if zero_point is None else zero_point.shape,
    )
    return evaluate_reference(build_program(signature), granularity, name_inputs(op, arrays))["y"]


def same_bits(got: Array, want: Array) -> bool:
    """Whether two arrays have one type, one shape and the same codes."""
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


def same_numbers(got: Array, want: Array) -> bool:
    """Whether two arrays are equal with the sign of zero, all NaN being one: what other implementations are compared by."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    with np.errstate(invalid="ignore"):  # a signalling NaN
        a, b = got.astype(np.float64), want.astype(np.float64)
    is_nan = np.isnan(a)
    return bool(
        np.array_equal(is_nan, np.isnan(b))
        and np.array_equal(a[~is_nan], b[~is_nan])
        and np.array_equal(np.signbit(a)[~is_nan], np.signbit(b)[~is_nan])
    )
