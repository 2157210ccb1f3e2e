"""DynamicQuantizeLinear by few words, and the comparison of all of its results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import qgen
from qgen.arrays import to_codes
from qgen.kernel import Kernel
from qgen.shapes import Granularity

OP = "DynamicQuantizeLinear"
NAN, INF = float("nan"), float("inf")


def dynamic(
    granularity: Granularity | None = None, shape: tuple[int, ...] | None = None, numerics: str = "exact", target: str = "webgpu"
) -> Kernel:
    return qgen.compile(OP, x="float32", granularity=granularity, shape=shape, numerics=numerics, target=target)


def float32(values: ArrayLike) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)


def bits(results: dict[str, NDArray[Any]]) -> dict[str, tuple[str, tuple[int, ...], list[str]]]:
    """Return results as what must be the same in all of them: types, shapes, and codes; these as text, so that a difference reads well."""
    return {
        name: (array.dtype.name, array.shape, [hex(code) for code in to_codes(array, array.dtype).reshape(-1)])
        for name, array in results.items()
    }
