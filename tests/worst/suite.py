"""What a kernel is put through to find a fault: the check against the oracle, every small size, hard conversions, and the worst models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import numpy_dtype
from qgen.check import check_kernel, make_inputs
from qgen.check.compare import find_mismatches, find_reference, run_kernel
from qgen.dtypes import Exact
from qgen.evaluate import EvaluationError
from qgen.evaluate.worst import worst_models
from qgen.kernel import Kernel
from qgen.shapes import PerAxis, PerTensor
from tests.worst.harness import check_under_models

SIZES: Final = (*range(1, 34), 257)
"""Every number of elements up to two invocations' and one; and one at which an element each has every kind of scale."""
ROWS: Final = ((32, 24), (30, 24), (16, 26), (32, 26), (31, 40), (2, 3, 64))
"""Shapes whose rows or columns are almost what lets an invocation walk down rows, and one that is, of groups of one axis each."""
_WORST_SHAPES: Final = {"per_tensor": (515,), "per_axis": (29, 23), "blocked": (2, 35)}
"""Of one scale enough elements that some invocations end with four ordinary ones after a hard one."""
_ROUNDS: Final = 4


def find_fault(kernel: Kernel) -> str | None:
    """Return what first shows that the kernel is not right, or None."""
    try:
        return next(_findings(kernel), None)
    except EvaluationError as error:
        return f"a trap: {error}"


def _findings(kernel: Kernel) -> Iterator[str]:
    result = check_kernel(kernel, "cpu")
    if not result.ok:
        yield str(result)
    is_flat = kernel.request.granularity in {PerTensor(), PerAxis(0)}
    if is_flat:
        result = check_kernel(kernel, "cpu", [(size,) for size in SIZES], seed=5, rounds=1)
        if not result.ok:
            yield str(result)
    if kernel.request.granularity == PerAxis(1):
        result = check_kernel(kernel, "cpu", ROWS, seed=6, rounds=1)
        if not result.ok:
            yield str(result)
    if kernel.request.granularity == PerAxis(0):
        yield from _hard_conversions(kernel)
        yield from _hard_quotients(kernel)
    for seed in range(_ROUNDS):
        inputs = make_inputs(kernel, _WORST_SHAPES[kernel.request.granularity.kind], seed, calm=seed % 2 == 1)
        yield from check_under_models(kernel, worst_models(kernel.request.mode), inputs)


def _hard_quotients(kernel: Kernel) -> Iterator[str]:
    """Hold a quantization that divides integers exactly on quotients beside the middle between two integers, of divisors of all sizes."""
    signature = kernel.request.signature
    if not isinstance(signature.division, Exact) or not (signature.x.is_integer and signature.scale.is_integer):
        return
    rng = np.random.default_rng(11)
    count = 1 << 13
    divisors = rng.integers(1 << 30, 1 << 31, count) >> rng.integers(0, 30, count)
    quotients = rng.integers(0, np.minimum((1 << 31) // divisors, 1 << signature.y.bits))
    x = np.clip(quotients * divisors + divisors // 2 + rng.integers(-1, 2, count), 0, (1 << 31) - 1) * rng.choice([-1, 1], count)
    inputs = {"x": x.astype(np.int32), "y_scale": divisors.astype(np.int32)}
    if "y_zero_point" in kernel.inputs:
        inputs["y_zero_point"] = np.zeros(count, numpy_dtype(signature.y))
    share = differing_share(kernel, inputs)
    if share:
        yield f"of quotients beside ties, {share:.2%} are wrong"


def differing_share(kernel: Kernel, inputs: Mapping[str, NDArray[Any]]) -> float:
    """Return which part of the elements differs from the oracle; raises `EvaluationError` where the kernel traps."""
    words = run_kernel(kernel, "cpu", inputs)
    ((name, want),) = find_reference(kernel, inputs).items()
    return len(find_mismatches(words[name], want, kernel.compiled.checked.operand(name).dtype)) / want.size


def _hard_conversions(kernel: Kernel) -> Iterator[str]:
    """Hold a quantization of integers on those beside the middle between two numbers of the type it divides in."""
    signature = kernel.request.signature
    division = signature.division
    if not signature.is_quantize or not signature.x.is_integer or division is None or isinstance(division, Exact):
        return
    bits = np.arange(division.mantissa_bits + 2, signature.x.bits - 1)
    rng = np.random.default_rng(9)
    exponents = np.repeat(bits, 64)
    ulps = exponents - division.mantissa_bits  # log2 of the distance of two numbers
    ties = (1 << exponents) + (rng.integers(0, 1 << division.mantissa_bits, exponents.size) << ulps) + (1 << (ulps - 1))
    x = ties + rng.integers(-1, 2, exponents.size)
    scales = np.ldexp(1.0, exponents - min(division.mantissa_bits, signature.y.bits - 2))
    inputs = {
        "x": (x * rng.choice([-1, 1], x.size)).astype(numpy_dtype(signature.x)),
        "y_scale": scales.astype(numpy_dtype(signature.scale)),
    }
    if signature.zero_point:
        inputs["y_zero_point"] = np.zeros(x.size, np.int8).astype(numpy_dtype(signature.y))
    share = differing_share(kernel, inputs)
    if share:
        yield f"{share:.1%} of hard conversions are wrong"
