"""A kernel under arithmetic models: it must give the bits that it gives under `ieee`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgen.arrays import pack_words
from qgen.evaluate import IEEE, ArithmeticModel, EvaluationError, evaluate_program
from qgen.kernel import Kernel

Inputs = Mapping[str, NDArray[Any]]
Words = dict[str, NDArray[np.uint32]]


def evaluate_under(kernel: Kernel, model: ArithmeticModel, inputs: Inputs) -> Words:
    """Return the words of the outputs for logical inputs by ONNX name; raises `EvaluationError` where the kernel traps."""
    program = kernel.compiled.legal
    bound = [operand for operand in kernel.compiled.checked.bound if not operand.is_output]
    words = {operand.name: pack_words(inputs[operand.name], operand.dtype) for operand in bound}
    plan = kernel.plan({name: tuple(array.shape) for name, array in inputs.items()})
    sizes = {operand.name: plan.sizes[operand.name] // 4 for operand in program.operands if operand.is_output}
    if plan.is_empty:
        return {name: np.zeros(0, np.uint32) for name in sizes}
    fields = [int(value) for data in plan.uniforms.values() for value in np.frombuffer(data, "<u4")]
    uniforms = dict(zip(program.uniforms, fields, strict=True))
    return evaluate_program(program, words, sizes, uniforms, [step.dispatch for step in plan.passes], model)


def check_under_models(kernel: Kernel, models: Sequence[ArithmeticModel], inputs: Inputs) -> list[str]:
    """Return a line for each model under which the kernel traps or gives another word than under `ieee`; nothing where all agree."""
    want = evaluate_under(kernel, IEEE, inputs)
    found = []
    for model in models:
        try:
            got = evaluate_under(kernel, model, inputs)
        except EvaluationError as error:
            found.append(f"{kernel.name} under {model.name}: {error}")
            continue
        for name, words in want.items():
            differ = np.flatnonzero(got[name] != words)
            if differ.size:
                at = int(differ[0])
                found.append(
                    f"{kernel.name} under {model.name}: {differ.size} of {words.size} words of {name} differ, "
                    f"word {at} is {int(got[name][at]):#010x} instead of {int(words[at]):#010x}"
                )
    return found
