"""The mode `fast` against the oracle: within the bound that the sidecar states, on the inputs that it states it for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import pack_words, to_codes, unpack_words
from qgen.check import CheckResult, check_shapes, make_inputs
from qgen.check.compare import describe_mismatch, find_reference, run_kernel
from qgen.check.edges import decode, encode
from qgen.check.shapes import ROUNDS, check_runs
from qgen.dtypes import DType, Family
from qgen.evaluate.worst import worst_models
from qgen.ir.program import Operand
from qgen.kernel import CPU, Kernel
from qgen.oracle.groups import expand_groups
from qgen.shapes import Granularity
from qgen.sidecar.build import DOMAIN

Array = NDArray[Any]
Bools = NDArray[np.bool_]

INSIDE: Final = (2.0**-100, 2.0**100)
"""Magnitudes well inside the normal f32."""
LARGEST: Final = 2.0**16
"""What quotients are below."""


def check_tolerance(kernel: Kernel, stack: str, seed: int) -> CheckResult:
    """Return what was compared: only elements whose inputs are in the domain that the sidecar states count, a wrong one is off too far.

    On `cpu:worst` the evaluator runs the kernel under each model of what WGSL allows, in turn. Raises as `check_kernel` does.
    """
    elements = mismatches = 0
    first = None
    numerics = kernel.sidecar["numerics"]
    bound, has_domain = numerics["max_error"], DOMAIN in numerics["relies_on"]
    models = (None,) if stack != f"{CPU}:worst" else worst_models("exact")
    shapes = check_shapes(kernel)
    rounds = max(ROUNDS, -(-len(models) // len(shapes)) + 1)
    for run, (number, shape, calm) in enumerate(check_runs(shapes, rounds, seed)):
        inputs = make_inputs(kernel, shape, number, calm=calm)
        inside = find_domain(kernel, inputs, shape) if has_domain else np.ones(shape, np.bool_)
        words = run_kernel(kernel, stack.partition(":worst")[0], inputs, models[run % len(models)])
        for name, want in find_reference(kernel, inputs).items():
            dtype = kernel.compiled.checked.operand(name).dtype
            got = unpack_words(words[name], dtype, want.shape)
            counted = inside if want.shape == inside.shape else np.full(want.shape, inside.all())
            wrong = np.flatnonzero(counted & (count_steps(to_codes(got, dtype), to_codes(want, dtype), dtype) > bound))
            elements, mismatches = elements + int(np.count_nonzero(counted)), mismatches + len(wrong)
            if first is None and len(wrong):
                output = (words[name], pack_words(want, dtype), dtype)
                first = describe_mismatch(kernel, inputs, (shape, number, calm), int(wrong[0]), output)
    return CheckResult(kernel.name, stack, elements, mismatches, first)


def find_domain(kernel: Kernel, inputs: Mapping[str, Array], shape: tuple[int, ...]) -> Bools:
    """Return where the sidecar states the bound (`DOMAIN` there): what is divided has been rounded to the type of the division."""
    signature = kernel.request.signature
    operands = [operand for operand in kernel.compiled.checked.operands if not operand.is_output]
    x, *parameters = (_values(operand, inputs[operand.name], shape, kernel.request.granularity) for operand in operands)
    if not parameters:  # DynamicQuantizeLinear finds its scale itself
        whole = bool(np.all((np.abs(x) < INSIDE[1]) & ((np.abs(x) > INSIDE[0]) | (x == 0))))
        return np.full(shape, whole)
    scale = parameters[0]
    with np.errstate(all="ignore"):
        if signature.is_quantize:
            if isinstance(signature.division, DType):
                x, scale = (decode(encode(each.reshape(-1), signature.division), signature.division).reshape(shape) for each in (x, scale))
            result = x / scale
            is_small: Bools = np.abs(result) < LARGEST
            return (_is_inside(result) & is_small | _is_zero(x)) & _is_inside(scale)
        factor = x - parameters[1] if len(parameters) > 1 else x
        return (_is_inside(factor * scale) | _is_zero(factor)) & _is_inside(scale)


def _values(operand: Operand, array: Array, shape: tuple[int, ...], granularity: Granularity) -> NDArray[np.float64]:
    """Return the values of an operand, one for each element of x."""
    codes = to_codes(array, operand.dtype)
    values = decode(codes.reshape(-1), operand.dtype).reshape(codes.shape)
    return np.broadcast_to(expand_groups(operand.name, values, shape, granularity) if operand.per_group else values, shape)


def _is_zero(values: Array) -> Bools:
    zero: Bools = values == 0
    return zero


def _is_inside(values: Array) -> Bools:
    magnitude = np.abs(values)
    inside: Bools = (magnitude > INSIDE[0]) & (magnitude < INSIDE[1])
    return inside


def count_steps(got: NDArray[np.uint32], want: NDArray[np.uint32], dtype: DType) -> NDArray[np.int64]:
    """Return how many codes lie between two codes of each pair, in the order of their values.

    Both zeros have one place, and so has every NaN: beyond the greatest magnitude of either sign.
    """
    places, others = _place(got, dtype), _place(want, dtype)
    steps: NDArray[np.int64] = np.abs(places - others)
    if dtype.format is None or dtype.format.nan_code is None:
        return steps
    beyond = dtype.format.overflow_code + dtype.format.has_infinity
    is_nan, other_is_nan = (np.isnan(decode(codes, dtype)) for codes in (got, want))
    steps = np.where(is_nan, beyond - np.abs(others), steps)
    steps = np.where(other_is_nan, beyond - np.abs(places), steps)
    return np.where(is_nan & other_is_nan, 0, steps)


def _place(codes: NDArray[np.uint32], dtype: DType) -> NDArray[np.int64]:
    """Return each code's place in the order of values."""
    wide = codes.astype(np.int64)
    sign = 1 << (dtype.bits - 1)
    if dtype.family is Family.UNSIGNED:
        return wide
    if dtype.family is Family.SIGNED:
        return (wide ^ sign) - sign
    return np.where(wide & sign, -(wide & (sign - 1)), wide)
