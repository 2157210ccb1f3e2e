"""One kernel on one device against the oracle: the words it writes, element by element and bit for bit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import pack_words, to_codes, unpack_words
from qgen.check.inputs import make_inputs
from qgen.check.shapes import ROUNDS, check_runs, check_shapes
from qgen.dtypes import WORD_BITS, DType
from qgen.evaluate import ArithmeticModel
from qgen.kernel import CPU, Kernel
from qgen.oracle import evaluate_reference
from qgen.oracle.groups import expand_groups
from qgen.runtime import open_device
from qgen.shapes import Granularity, scale_shape

Array = NDArray[Any]
Words = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class CounterExample:
    """One element that is wrong: codes of what the kernel was given there, of what it gave and of what is right.

    In a result with one element for each group, that is the group's first element.
    """

    shape: tuple[int, ...]
    seed: int
    calm: bool
    index: int
    """The element's number in row-major order; one past the last element where it is the padding of the last word that is not zero."""
    inputs: Mapping[str, int]
    got: int
    want: int
    result: str = ""
    """The name of the result, where it has one element for each group."""

    def __str__(self) -> str:
        """Return the counter-example in one line, codes in hexadecimal."""
        given = ", ".join(f"{name} {code:#x}" for name, code in self.inputs.items())
        of = f" of {self.result}" if self.result else ""
        what = f"element {self.index}{of}: {given}" if given else f"the padding of the last word{of}"
        kind = " (calm)" if self.calm else ""
        return f"shape {list(self.shape)}, seed {self.seed}{kind}, {what} gives {self.got:#x} instead of {self.want:#x}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What was compared: `elements` over all shapes, how many of them differ (a padding that is not zero counts as one), the first."""

    kernel: str
    device: str
    elements: int
    mismatches: int
    first: CounterExample | None

    @property
    def ok(self) -> bool:
        """Whether every bit is right."""
        return self.mismatches == 0

    def __str__(self) -> str:
        """Return the result in one line."""
        head = f"{self.kernel} on {self.device}: {self.elements - self.mismatches} of {self.elements} elements are right"
        return head if self.first is None else f"{head}; {self.first}"


def check_kernel(
    kernel: Kernel,
    device: str,
    shapes: Sequence[tuple[int, ...]] | None = None,
    seed: int = 0,
    *,
    rounds: int = ROUNDS,
    model: ArithmeticModel | None = None,
) -> CheckResult:
    """Run `kernel` on inputs of each of `shapes` (`check_shapes` where None), as `check_runs` has them, and compare every bit.

    `device` is `cpu`, where the evaluator runs it under `model`, or as for `open_device`. On an adapter each buffer lies between canaries.
    Raises `InternalError` for a kernel that the stack refuses or that writes where it may not, `EvaluationError` where the evaluator traps,
    and what `make_inputs`, `Kernel.plan` and `open_device` raise.
    """
    elements = mismatches = 0
    first = None
    shapes = check_shapes(kernel) if shapes is None else tuple(shapes)
    for number, shape, calm in check_runs(shapes, rounds, seed):
        inputs = make_inputs(kernel, shape, number, calm=calm)
        words = run_kernel(kernel, device, inputs, model)
        for name, want in find_reference(kernel, inputs).items():
            dtype = kernel.compiled.checked.operand(name).dtype
            wrong = find_mismatches(words[name], want, dtype)
            elements, mismatches = elements + want.size, mismatches + len(wrong)
            if first is None and len(wrong):
                output = (words[name], pack_words(want, dtype), dtype)
                first = describe_mismatch(kernel, inputs, (shape, number, calm), int(wrong[0]), output, name=name)
    return CheckResult(kernel.name, device, elements, mismatches, first)


def find_reference(kernel: Kernel, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return what the oracle gives; unlike `Kernel.reference`, without a warning for a zero point that takes no part."""
    return evaluate_reference(kernel.compiled.checked, kernel.request.granularity, inputs)


def run_kernel(kernel: Kernel, device: str, inputs: Mapping[str, Array], model: ArithmeticModel | None = None) -> dict[str, Words]:
    """Return the words of each output; on an adapter, canaries around every buffer are checked, on the CPU `model` is evaluated."""
    kernel.hold_scale(inputs)
    operands = [operand for operand in kernel.compiled.checked.bound if not operand.is_output]
    words = {operand.name: pack_words(inputs[operand.name], operand.dtype) for operand in operands}
    plan = kernel.plan({name: tuple(array.shape) for name, array in inputs.items()})
    if device == CPU:
        return kernel.run_words(words, plan, CPU, model)
    found = open_device(device).run(
        kernel.wgsl, kernel.sidecar, plan, {name: array.tobytes() for name, array in words.items()}, canaries=True
    )
    return {name: np.frombuffer(data, np.uint32) for name, data in found.items()}


def find_mismatches(words: Words, want: Array, dtype: DType) -> NDArray[np.int64]:
    """Return the numbers of the elements in which `words` differ from the array `want`; `want.size` for padding that is not zero."""
    right = pack_words(want, dtype)
    if words.shape == right.shape and np.array_equal(words, right):
        return np.zeros(0, np.int64)
    differ = to_codes(unpack_words(words, dtype, want.shape), dtype) != to_codes(want, dtype)
    wrong = np.flatnonzero(differ)
    return np.append(wrong, want.size) if _padding(words, want.size, dtype) else wrong


def _padding(words: Words, count: int, dtype: DType) -> int:
    """Return the bits of the last word beyond the last element."""
    used = count * dtype.bits % WORD_BITS
    return int(words[-1]) >> used if used else 0


def describe_mismatch(
    kernel: Kernel,
    inputs: Mapping[str, Array],
    run: tuple[tuple[int, ...], int, bool],
    at: int,
    output: tuple[Words, Words, DType],
    *,
    name: str = "y",
) -> CounterExample:
    """Return the counter-example at element `at` of the result `name`.

    `run` is shape, seed and whether the inputs were calm, `output` what is and should be.
    """
    shape, granularity = run[0], kernel.request.granularity
    got, want, dtype = output
    per_group = kernel.compiled.checked.operand(name).per_group
    count = math.prod(scale_shape(granularity, shape) if per_group else shape)
    result = name if per_group else ""
    if at == count:
        return CounterExample(*run, at, {}, _padding(got, count, dtype), _padding(want, count, dtype), result)
    number = int(np.flatnonzero(_groups(shape, granularity) == at)[0]) if per_group else at
    codes = {
        operand.name: _code_at(inputs[operand.name], operand.dtype, number, shape, granularity if operand.per_group else None)
        for operand in kernel.compiled.checked.operands
        if not operand.is_output
    }
    given, right = (int(to_codes(unpack_words(words, dtype, (count,)), dtype)[at]) for words in (got, want))
    return CounterExample(*run, at, codes, given, right, result)


def _groups(shape: tuple[int, ...], granularity: Granularity) -> NDArray[np.float64]:
    """Return the number of each element's group."""
    groups = scale_shape(granularity, shape)
    numbers = np.arange(float(math.prod(groups))).reshape(groups)
    return expand_groups("groups", numbers, shape, granularity).reshape(-1)


def _code_at(array: Array, dtype: DType, at: int, shape: tuple[int, ...], granularity: Granularity | None) -> int:
    codes = to_codes(array, dtype)
    if granularity is not None:
        codes = expand_groups("codes", codes.astype(np.float64), shape, granularity).astype(np.uint32)
    return int(codes.reshape(-1)[at])
