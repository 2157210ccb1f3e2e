"""What a kernel is timed on: a size, and inputs as users have them, so that exact kernels fall back as often as theirs do."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import from_codes
from qgen.check.edges import encode, value_range
from qgen.dtypes import DType
from qgen.kernel import Kernel
from qgen.shapes import PerTensor, scale_shape
from qgen.signatures.tables import DEQUANTIZE

_SIDE: Final = 1024
_SPREAD: Final = 4.0
"""A normal distribution of so many elements seldom goes beyond this multiple of its deviation."""


def timing_shape(kernel: Kernel) -> tuple[int, ...]:
    """Return the shape to time a kernel on: its own where it is baked, else one of 2^20 elements that has the granularity's axis."""
    if kernel.request.shape is not None:
        return kernel.request.shape
    granularity = kernel.request.granularity
    axis = -1 if isinstance(granularity, PerTensor) else granularity.axis
    if axis >= 0:
        return (*(1,) * axis, _SIDE, _SIDE)
    return (_SIDE, _SIDE, *(1,) * (-axis - 2)) if axis < -1 else (_SIDE, _SIDE)


def timing_inputs(kernel: Kernel, shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Return inputs by ONNX name: x normal, or integers of all codes; scales that fit; zero points in the middle of their range."""
    signature = kernel.request.signature
    rng = np.random.default_rng(list(shape))
    groups = scale_shape(kernel.request.granularity, shape)
    count, shared = math.prod(shape), math.prod(groups)
    dequantizes = signature.op == DEQUANTIZE
    quantized = signature.x if dequantizes else signature.y
    greatest = value_range(quantized)[1]
    scales = _SPREAD / greatest * rng.uniform(0.5, 1.0, shared)
    if signature.x.is_integer:
        x = rng.integers(0, 1 << signature.x.bits, count).astype(np.uint32)
    else:
        normal = np.clip(rng.standard_normal(count), -_SPREAD, _SPREAD)
        x = encode(normal * (greatest / _SPREAD if dequantizes else 1.0), signature.x)
    codes = {"x": (x, signature.x, shape), "scale": (encode(scales, signature.scale), signature.scale, groups)}
    codes["zero_point"] = (np.full(shared, _middle(quantized), np.uint32), quantized, groups)
    return {name: from_codes(*parts) for name, parts in zip(kernel.inputs, codes.values(), strict=False)}


def _middle(dtype: DType) -> int:
    return 1 << (dtype.bits - 1) if dtype.is_integer and dtype.min == 0 else 0
