"""The tensors that a case is timed on, with the right results: made once, and used on every adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import pack
from qgen.dtypes import DTYPES
from qgen.kernel import Kernel
from tests.bench.cases import Case, shape_of
from tests.bench.data import make_data

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor as ONNX packs it."""

    dtype: str
    shape: tuple[int, ...]
    data: Bytes

    @property
    def padded(self) -> bytes:
        """The bytes that a kernel binds: whole words."""
        return self.data.tobytes() + bytes(-self.data.size % 4)


@dataclass(frozen=True, slots=True)
class Sample:
    """One case on one kind of data; `kernels` by form and mode, `inputs` and `outputs` by ONNX name."""

    case: Case
    data: str
    count: int
    kernels: Mapping[tuple[str, str], Kernel]
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.data.size for tensor in (*self.inputs.values(), *self.outputs.values()))

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs."""
        return {name: tensor.shape for name, tensor in self.inputs.items()}


def make_sample(case: Case, *, data: str, count: int, forms: tuple[str, ...], modes: tuple[str, ...], target: str) -> Sample:
    """Return the sample of about `count` elements; `forms` have one shape. The results are the oracle's."""
    shape = shape_of(count, forms[0])
    inputs = make_data(case, data, shape)
    kernels = {(form, mode): case.compile(form, shape, mode, target) for form in forms for mode in modes if case.has_form(form, mode)}
    outputs = kernels[forms[0], modes[0]].reference(inputs)
    given, right = (
        {name: Tensor(_dtype(case, name), array.shape, pack(array, DTYPES[_dtype(case, name)])) for name, array in arrays.items()}
        for arrays in (inputs, outputs)
    )
    return Sample(case, data, count, kernels, given, right)


def _dtype(case: Case, name: str) -> str:
    if name in {"x", "y"}:
        return case.x if name == "x" else case.y
    return case.scale if name.endswith("scale") else case.quantized.name
