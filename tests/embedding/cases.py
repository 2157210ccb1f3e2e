"""The kernels that every host runs, twelve of one dispatch and one of several.

Each runs on a small tensor; some on an empty one too, and on one that is larger than a limit set low on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import qgen
from qgen.arrays import pack_words
from qgen.check import make_inputs
from qgen.kernel import Kernel
from qgen.shapes import Granularity, blocked, per_axis


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel, baked for `shape` or with shapes in uniforms; then a tensor of `large` is parted where no binding is beyond `limit`.

    No limit is a multiple of 256: the parts have to be less than what fits. There is a zero point where `zero_point` is not empty.
    """

    name: str
    op: str
    x: str
    y: str
    shape: tuple[int, ...]
    scale: str = "float32"
    zero_point: str = ""
    granularity: Granularity | None = None
    large: tuple[int, ...] | None = None
    limit: int = 0
    group: int = 0
    entry_point: str = "main"


Q: Final = "QuantizeLinear"
DQ: Final = "DequantizeLinear"
DQL: Final = "DynamicQuantizeLinear"

CASES: Final = (
    Case("dq_i4_blocked", DQ, "int4", "float16", (3, 5, 70), "float16", "zp", blocked(-1, 32), (100, 512), 33000),
    Case("dq_u8_axis1", DQ, "uint8", "float32", (2, 7, 9), "float32", "zp", per_axis(1), (40, 4, 64), 8300),
    Case("dq_i8_tensor_baked", DQ, "int8", "float32", (5, 13)),
    Case("dq_f8_axis0_baked", DQ, "float8e4m3fn", "float32", (6, 11), "float32", "zp", per_axis(0), entry_point="decode"),
    Case("dq_f4_e8m0", DQ, "float4e2m1", "float32", (4, 96), "float8e8m0", "", blocked(-1, 32), (2, 16384), 66000),
    Case("dq_bf16_tensor", DQ, "int8", "bfloat16", (129,), "bfloat16", "", None, (50, 101), 2120, group=1),
    Case("q_u8_axis1", Q, "float32", "uint8", (2, 3, 21), "float32", "zp", per_axis(1), (9, 64, 16), 8260),
    Case("q_i8_tensor", Q, "float32", "int8", (3, 333), "float32", "", None, (7001,), 4400),
    Case("q_i4_axis0_blocked", Q, "float16", "int4", (37, 24), "float16", "zp", blocked(0, 16), (250, 128), 16900),
    Case("q_f8_tensor", Q, "float32", "float8e5m2", (1000,), "float32", "", None, (64, 65), 1400),
    Case("q_f4_e8m0_baked", Q, "float32", "float4e2m1", (3, 128), "float8e8m0", "", blocked(1, 32)),
    Case("q_bf16_axis0", Q, "bfloat16", "uint8", (10, 31), "bfloat16", "zp", per_axis(0), (1000, 4), 2120),
    Case("dql", DQL, "float32", "uint8", (7, 301)),
)

HOSTS: Final = ("js", "python", "c", "rust")
"""The languages whose glue runs here."""

EMPTY: Final = {"dq_u8_axis1": (2, 7, 0), "q_i8_tensor": (0,), "dql": (3, 0)}
"""Tensors without elements, for some kernels with shapes in uniforms."""


LARGE: Final[Mapping[str, tuple[tuple[tuple[int, ...], int], ...]]] = {
    "dq_i4_blocked": (((3, 9000), 8300), ((1, 100000), 4300)),
    "dq_u8_axis1": (((1, 3, 4999), 8300), ((2, 40, 333), 8300), ((2, 4, 1, 5000), 4200)),
    "q_i4_axis0_blocked": (((37, 1001), 16900), ((700, 5), 4200), ((33, 2, 1, 257), 4300)),
    "q_bf16_axis0": (((3, 5001), 2120), ((3000, 2), 2120), ((5, 7, 33), 1100)),
}
"""More tensors that are parted: rows and axes of no whole words, longer than a run, and scales of which a run binds a part."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a host is given: the shapes and words of the inputs, the words it has to give back, and the limit, 0 for the device's own."""

    case: Case
    shapes: Mapping[str, tuple[int, ...]]
    inputs: Mapping[str, bytes]
    outputs: Mapping[str, bytes]
    limit: int

    @property
    def is_empty(self) -> bool:
        """Whether x has no elements."""
        return 0 in self.shapes["x"]


def check_runs(work: Work, count: int) -> bool:
    """Whether a plan has as many runs as it should: none, one or several."""
    return count == 0 if work.is_empty else count > 1 if work.limit else count == 1


@cache
def kernel_of(case: Case) -> Kernel:
    """Return the kernel of a case."""
    if case.op == DQL:
        return qgen.compile(case.op, x=case.x, name=case.name)
    return qgen.compile(
        case.op,
        x=case.x,
        scale=case.scale,
        y=case.y,
        zero_point=bool(case.zero_point),
        granularity=case.granularity,
        shape=None if case.large or case.name in EMPTY else case.shape,
        name=case.name,
        group=case.group,
        entry_point=case.entry_point,
    )


@cache
def works() -> tuple[Work, ...]:
    """Return the work on every small, empty and large tensor."""
    small = [_work(case, case.shape, 0) for case in CASES]
    empty = [_work(case, EMPTY[case.name], 0) for case in CASES if case.name in EMPTY]
    large = [_work(case, case.large, case.limit) for case in CASES if case.large]
    more = [_work(case, shape, limit) for case in CASES for shape, limit in LARGE.get(case.name, ())]
    return (*small, *empty, *large, *more)


def _work(case: Case, shape: tuple[int, ...], limit: int) -> Work:
    kernel = kernel_of(case)
    arrays = {"x": _normal(shape)} if case.op == DQL else make_inputs(kernel, shape, len(shape))
    results: Mapping[str, Any] = kernel.reference(arrays)
    operands = kernel.compiled.checked.bound
    return Work(
        case,
        {name: tuple(map(int, array.shape)) for name, array in arrays.items()},
        {each.name: pack_words(arrays[each.name], each.dtype).tobytes() for each in operands if not each.is_output},
        {each.name: pack_words(results[each.name], each.dtype).tobytes() for each in operands if each.is_output},
        limit,
    )


def _normal(shape: tuple[int, ...]) -> NDArray[np.float32]:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)
