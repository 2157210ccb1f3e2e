"""The functions of fragments, asked for every element: on two devices, by the evaluator, and judged by naga and Tint."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.evaluate import IEEE, ArithmeticModel, evaluate_program, worst_models
from qgen.validate import validate_texts
from tests.fragment.cases import (
    CASES,
    WORKGROUP,
    Case,
    asking_program,
    asking_text,
    bits_of,
    fragment_of,
    has_promise,
    inputs_of,
    values_of,
    words_of,
)
from tests.fragment.devices import STACKS, run_shader
from tests.goldens import Goldens

ALL_CODES = CASES[:4]
GOLDEN = ("int4_blocked", "uint8_strict")


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", ALL_CODES, ids=named)
def test_x_has_all_codes(case: Case) -> None:
    x = fragment_of(case).checked.operand("x").dtype
    words = words_of(fragment_of(case), inputs_of(case))["w_x"]
    codes = (words[:, None] >> np.arange(0, 32, x.bits, dtype=np.uint32)) & np.uint32(x.mask)
    assert set(codes.reshape(-1).tolist()) == set(range(1 << x.bits))


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_devices_agree_with_the_oracle(case: Case, stack: str) -> None:
    fragment, inputs = fragment_of(case), inputs_of(case)
    bits = bits_of(fragment, inputs)
    buffers = list(words_of(fragment, inputs).values())
    found = run_shader(stack, asking_text(fragment, bits.size), buffers, 3 * bits.size, -(-bits.size // WORKGROUP)).reshape(-1, 3)
    np.testing.assert_array_equal(found[:, 0], bits)
    values = values_of(fragment, bits)
    there = has_promise(values)
    np.testing.assert_array_equal(found[there, 1], values[there].view(np.uint32))
    np.testing.assert_array_equal(found[there, 2], values[there].view(np.uint32))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_evaluator_agrees_with_the_oracle(case: Case) -> None:
    bits, found = evaluate(case, IEEE)
    values = values_of(fragment_of(case), bits)
    there = ~np.isnan(values)
    np.testing.assert_array_equal(found["bits"], bits)
    np.testing.assert_array_equal(found["ones"][there], values[there].view(np.uint32))
    fours = found.get("fours", np.zeros(0, np.uint32))
    assert fours.size == bits.size // 4 * 4
    there = there[: fours.size]
    np.testing.assert_array_equal(fours[there], values[: fours.size][there].view(np.uint32))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_bits_withstand_every_freedom_of_wgsl(case: Case) -> None:
    for model in worst_models(case.numerics):
        bits, found = evaluate(case, model)
        np.testing.assert_array_equal(found["bits"], bits)


def test_fast_functions_have_quick_code_alone() -> None:
    fragment = fragment_of(replace(CASES[1], name="fast", numerics="fast"))
    assert "w_mul_f32" not in fragment.wgsl
    assert "if (" not in fragment.wgsl.partition("fn w_at")[0]
    (naga, tint) = validate_texts([("fast", asking_text(fragment, 1))], "all")
    assert naga.ok
    assert tint.ok


def evaluate(case: Case, model: ArithmeticModel) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the oracle's bits, and what the evaluator finds."""
    fragment, inputs = fragment_of(case), inputs_of(case)
    bits = bits_of(fragment, inputs)
    program = asking_program(fragment, bits.size)
    sizes = {"bits": bits.size, "ones": bits.size, "fours": bits.size // 4 * 4}
    sizes = {operand.name: sizes[operand.name] for operand in program.outputs}
    dispatch = (-(-bits.size // WORKGROUP), 1, 1)
    return bits, evaluate_program(program, words_of(fragment, inputs), sizes, {}, [dispatch], model)


def test_naga_and_tint_accept_the_functions() -> None:
    texts = [(case.name, asking_text(fragment_of(case), 1)) for case in CASES]
    reports = validate_texts(texts, "all")
    assert len(reports) == 2 * len(CASES)
    assert not [report.raw for report in reports if not report.ok]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_name_of_the_module_has_the_prefix(case: Case) -> None:
    text = fragment_of(case).wgsl
    declared = re.findall(r"^(?:fn|struct|var\S*|const|override|alias) *(\w+)", text, re.MULTILINE)
    assert declared[0] == "w_load4"
    assert {"w_at", "w_bits"} <= set(declared)
    assert all(name.startswith("w_") for name in declared)
    assert "@" not in "".join(line for line in text.splitlines() if not line.startswith("//"))


@pytest.mark.parametrize("case", [case for case in CASES if case.name in GOLDEN], ids=named)
def test_texts(case: Case, golden: Goldens) -> None:
    golden.check(f"fragment/{case.name}.wgsl", fragment_of(case).wgsl)
