"""What the cases are timed on: ordinary data, and kinds that send more elements, or other ones, through the slower code.

`random` is N(0, 1) with scale = max / 127 (the greatest magnitude of a group to the greatest of the dtype); in `half-zero` half of the
elements are zero; in `saturating` the scale is an eighth, so that most elements are beyond the range; in `ties` half of the elements lie
in the middle of two results, as far as the dtypes can express it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import numpy_dtype
from qgen.dtypes import DTYPES, DType
from qgen.shapes import Granularity, PerAxis, PerTensor, View, make_view, scale_shape
from qgen.signatures.tables import DYNAMIC
from tests.bench.cases import Case

KINDS: Final = ("random", "half-zero", "saturating", "ties")

_TIE: Final = 3
"""3 · 2^k times 1 + ulp is a tie for every k ≥ 1: the product's last bits are those of 3 · 2^k."""
_BIAS: Final = 1 << 16
"""About the greatest int32 that is dequantized: a bias or the sum of a matrix product."""

Array = NDArray[Any]


def make_data(case: Case, kind: str, shape: tuple[int, ...], seed: int = 0) -> dict[str, Array]:
    """Return logical arrays by ONNX name, x of `shape`; the same for the same arguments."""
    rng = np.random.default_rng([seed, *shape])
    if case.op == DYNAMIC:
        return {"x": _spread(rng.standard_normal(shape, np.float32), kind, np.float32(8 / 255), rng)}
    view = make_view(case.granularity, shape)
    shared = scale_shape(case.granularity, shape)
    zero_points = _zero_points(case, shared, rng)
    values = rng.standard_normal(shape, np.float32)
    scales = _scales(_greatest(values, case.granularity, view).reshape(shared) / _largest(case.quantized), DTYPES[case.scale])
    of_elements = _expand(scales.astype(np.float32), case.granularity, view, shape)
    if case.is_quantize:
        x = _spread(values, kind, of_elements, rng).astype(numpy_dtype(DTYPES[case.x]))
        arrays = {"x": x, "y_scale": scales, "y_zero_point": zero_points}
    else:
        if kind == "ties" and DTYPES[case.scale].mantissa_bits:
            scales = (np.exp2(np.floor(np.log2(scales.astype(np.float32)))) * (1 + np.exp2(-DTYPES[case.scale].mantissa_bits))).astype(
                scales.dtype
            )
        whole = _whole(values / of_elements, kind, case.quantized, rng)
        offset = _expand(zero_points.astype(np.int64), case.granularity, view, shape) if case.quantized.is_integer else 0
        arrays = {"x": _clip(whole + offset, case.quantized), "x_scale": scales, "x_zero_point": zero_points}
    if not case.zero_point:
        del arrays["y_zero_point" if case.is_quantize else "x_zero_point"]
    return arrays


def _largest(dtype: DType) -> float:
    """Return the magnitude that the greatest element of a group becomes."""
    if dtype.bits == DTYPES["int32"].bits:
        return _BIAS
    return float(np.float32(_finfo_max(dtype))) if dtype.is_float else float((1 << (dtype.bits - 1)) - 1)


def _finfo_max(dtype: DType) -> float:
    code = dtype.format.max_code if dtype.format else 0
    return float(np.array([code], np.uint8).view(numpy_dtype(dtype))[0])


def _zero_points(case: Case, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return zero points near the middle of the range; zeros where the case has none."""
    dtype = case.quantized
    if not case.zero_point:
        return np.zeros(shape, numpy_dtype(dtype))
    middle, width = (dtype.min + dtype.max + 1) // 2, max(1, dtype.max // 16)
    return np.asarray(rng.integers(middle - width, middle + width + 1, shape)).astype(numpy_dtype(dtype))


def _scales(exact: Array, dtype: DType) -> Array:
    """Return the scales in their own format; a power of two is rounded up, that nothing saturates."""
    rounded = exact if dtype.mantissa_bits else np.exp2(np.ceil(np.log2(exact)))
    return np.asarray(rounded).astype(numpy_dtype(dtype))


def _greatest(values: Array, granularity: Granularity, view: View) -> Array:
    """Return the greatest magnitude of each group, in the order of the scales."""
    seen = np.abs(values).reshape(view.outer, view.axis, view.inner)
    if isinstance(granularity, PerTensor):
        return np.asarray(seen.max())
    if isinstance(granularity, PerAxis):
        return np.asarray(seen.max(axis=(0, 2)))
    return np.asarray(np.maximum.reduceat(seen, np.arange(0, view.axis, view.block_size), axis=1))


def _expand(groups: Array, granularity: Granularity, view: View, shape: tuple[int, ...]) -> Array:
    """Return for each element what its group has."""
    if isinstance(granularity, PerTensor):
        return np.broadcast_to(groups, shape)
    if isinstance(granularity, PerAxis):
        return np.broadcast_to(groups.reshape(1, view.axis, 1), (view.outer, view.axis, view.inner)).reshape(shape)
    whole = np.repeat(groups.reshape(view.outer, view.blocks, view.inner), view.block_size, axis=1)
    return whole[:, : view.axis].reshape(shape)


def _spread(values: Array, kind: str, scales: Array | np.float32, rng: np.random.Generator) -> Array:
    """Return what is divided by `scales`."""
    chosen = rng.random(values.shape) < 0.5
    match kind:
        case "half-zero":
            return np.where(chosen, np.float32(0), values)
        case "saturating":
            return values * np.float32(8)
        case "ties":
            return np.where(chosen, (np.floor(values / scales) + np.float32(0.5)) * scales, values)
        case _:
            return values


def _whole(quotients: Array, kind: str, dtype: DType, rng: np.random.Generator) -> Array:
    """Return what is multiplied by the scales, before the zero point is added."""
    chosen = rng.random(quotients.shape) < 0.5
    if kind == "half-zero":
        quotients = np.where(chosen, np.float32(0), quotients)
    if kind == "saturating":
        quotients = quotients * np.float32(8)
    if kind == "ties":
        largest = _largest(dtype)
        steps = np.exp2(rng.integers(0, max(1, int(np.log2(largest / _TIE)) + 1), quotients.shape))
        quotients = np.where(chosen, np.sign(quotients) * _TIE * steps, quotients)
    return np.rint(quotients).astype(np.int64) if dtype.is_integer else quotients


def _clip(values: Array, dtype: DType) -> Array:
    if dtype.is_float:
        largest = _largest(dtype)
        return np.clip(values, -largest, largest).astype(numpy_dtype(dtype))
    return np.clip(values, dtype.min, dtype.max).astype(numpy_dtype(dtype))
