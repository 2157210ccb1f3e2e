"""Kernels for plain scales on each stack: every end of what they take, and the scales between, against the oracle."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import qgen
from qgen.arrays import from_codes
from qgen.check import check_kernel, make_inputs
from qgen.check.compare import find_mismatches, find_reference, run_kernel
from qgen.compiler import find_condition
from qgen.plain import plain_intervals
from tests.runtime.stacks import STACKS

DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
KERNELS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    (DEQUANTIZE, {"x": "int8", "scale": "float32", "granularity": qgen.per_axis(0), "shape": (64, 32)}),
    (DEQUANTIZE, {"x": "uint8", "scale": "float32", "zero_point": True, "granularity": qgen.per_axis(1), "shape": (10, 64)}),
    (DEQUANTIZE, {"x": "int4", "scale": "float16", "zero_point": True, "granularity": qgen.blocked(-1, 32)}),
    (DEQUANTIZE, {"x": "uint4", "scale": "bfloat16", "y": "bfloat16", "granularity": qgen.blocked(0, 3), "shape": (7, 33)}),
    (DEQUANTIZE, {"x": "int2", "scale": "float8e8m0", "y": "float32", "granularity": qgen.per_axis(-1)}),
    (DEQUANTIZE, {"x": "float8e4m3fn", "scale": "float32", "granularity": qgen.per_axis(0), "shape": (9, 40)}),
    (QUANTIZE, {"x": "float32", "y": "uint8", "zero_point": True, "granularity": qgen.per_axis(0), "shape": (64, 32)}),
    (QUANTIZE, {"x": "float16", "y": "int4", "granularity": qgen.blocked(-1, 16), "shape": (11, 70)}),
)


@pytest.mark.parametrize("stack", ["cpu", *STACKS])
def test_kernels_for_plain_scales_are_right_at_the_ends_of_what_they_take(stack: str) -> None:
    for op, words in KERNELS:
        kernel = qgen.compile(op, plain_scale=True, **words)
        assert check_kernel(kernel, stack).ok, kernel.name
        condition = find_condition(kernel.request)
        assert condition is not None
        ends = np.array(plain_intervals(condition), np.uint32).reshape(-1)
        inputs = make_inputs(kernel, kernel.request.shape or (12, 71), seed=5)
        scale = inputs[kernel.inputs[1]]
        inputs[kernel.inputs[1]] = from_codes(np.resize(ends, scale.shape), condition.scale.dtype, scale.shape)
        found, want = run_kernel(kernel, stack, inputs)["y"], find_reference(kernel, inputs)["y"]
        assert not find_mismatches(found, want, kernel.compiled.checked.operand("y").dtype).size, kernel.name
