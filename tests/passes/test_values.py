"""LEGAL to LEGAL: what a pass makes computes the same words. And quick code, with the sure code behind it, those of the sure code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.arrays import pack_words
from qgen.check.inputs import make_inputs
from qgen.compiler import compile_kernel
from qgen.evaluate import evaluate_program
from qgen.ir.program import Program
from qgen.kernel import Kernel
from qgen.request import Request
from tests.emit.sample import sample
from tests.passes.build import lower
from tests.passes.test_rename import AWKWARD

SHAPE = (3, 40)
REQUESTS = list(sample(37))
Words = NDArray[np.uint32]


def words_by(request: Request) -> dict[str, list[Words]]:
    """Return the outputs' words of one input, by the pass whose LEGAL program computed them."""
    stages: dict[str, Program] = {}
    kernel = Kernel(compile_kernel(request, stages.__setitem__))
    inputs = make_inputs(kernel, request.shape or SHAPE, seed=3)
    plan = kernel.plan({name: array.shape for name, array in inputs.items()})
    uniforms: dict[str, int] = {}
    for data in plan.uniforms.values():
        uniforms = dict(zip(stages["place-words"].uniforms, np.frombuffer(data, "<u4").tolist(), strict=True))
    found: dict[str, list[Words]] = {}
    for name in ("place-words", "fold-constants", "legalise", "rename-reserved"):
        program = stages[name]
        words = {operand.name: pack_words(inputs[operand.name], operand.dtype) for operand in program.bound if operand.name in inputs}
        sizes = {operand.name: plan.sizes[operand.name] // 4 for operand in program.bound if operand.is_output}
        result = evaluate_program(program, words, sizes, uniforms, [step.dispatch for step in plan.passes])
        found[name] = [result[operand.name] for operand in program.outputs]
    return found


def same(ours: list[Words], others: list[Words]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ours, others, strict=True))


@pytest.mark.parametrize("request_", REQUESTS, ids=range(len(REQUESTS)))
def test_passes_on_legal_programs_keep_the_words(request_: Request) -> None:
    found = words_by(request_)
    assert all(same(found["place-words"], words) for words in found.values())


@pytest.mark.parametrize(
    "request_",
    [request for request in REQUESTS if request.mode == "exact"],
    ids=range(sum(request.mode == "exact" for request in REQUESTS)),
)
def test_quick_code_computes_the_words_of_the_sure_code(request_: Request) -> None:
    exact, strict = (words_by(replace(request_, mode=mode))["rename-reserved"] for mode in ("exact", "strict"))
    assert same(exact, strict)


def test_renaming_keeps_the_words() -> None:
    stages = lower(AWKWARD, shape=(37,)).stages
    rng = np.random.default_rng(1)
    codes = {
        "loop": rng.integers(0, 1 << 32, 10, np.uint32),
        "array": np.array([7], np.uint32),
        "var": np.array([0.5], np.float32).view(np.uint32),
    }
    results: list[Words] = []
    for name, suffix in (("legalise", ""), ("rename-reserved", "_")):
        words = {f"{key}{suffix}": value for key, value in codes.items()}
        results.append(evaluate_program(stages[name], words, {f"vec3u{suffix}": 37}, {}, [(1, 1, 1)])[f"vec3u{suffix}"])
    before, after = results
    assert np.array_equal(before, after)
    assert before.any()
