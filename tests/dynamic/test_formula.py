"""Reductions in users' own formulas: over a tensor, an axis and a block, of computed values, beside operands that groups share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.arrays import numpy_dtype
from qgen.oracle import evaluate_reference
from qgen.passes.split import split_reductions
from qgen.shapes import Granularity, blocked, per_axis, per_tensor, scale_shape
from qgen.validate import validate_texts
from tests.dynamic.formulas import Formula, compile_formula
from tests.dynamic.kernels import bits
from tests.runtime.stacks import LAVAPIPE, SWIFTSHADER
from tests.sidecar.test_schema import VALIDATOR

SYMMETRIC = """
op Symmetric(x: X) -> y: Y, y_scale: float32 per group = 1
{
    let zero = 0 as float32;
    let top = reduce max over group (x as float32);
    let bottom = reduce min over group (x as float32);
    let magnitude = max(top, zero - bottom);
    let scale = if magnitude == zero then 1 as float32 else magnitude / (127 as float32);
    y_scale = scale;
    y = round_even((x as float32) / scale) as Y saturating;
}
"""
LIMITED = """
op Limited(x: X, limit: S per group) -> y: Y, square: float32 per group = 0
{
    let top = min(reduce max over group ((x as float32) * (x as float32)), limit as float32);
    square = top;
    y = ((x as float32) - top) as Y;
}
"""
WEIGHTED = """
op Weighted(x: X, weight: S per group) -> y: Y, least: float32 per group = 0
{
    let bottom = reduce min over group ((x as float32) * (weight as float32));
    least = bottom;
    y = if is_nan(bottom) then 0 as Y saturating else round_even((x as float32) - bottom) as Y saturating;
}
"""
CASES = {
    "symmetric": (SYMMETRIC, {"X": "float32", "Y": "int8"}),
    "symmetric-float16": (SYMMETRIC, {"X": "float16", "Y": "int4"}),
    "symmetric-int8": (SYMMETRIC, {"X": "int8", "Y": "int8"}),
    "limited": (LIMITED, {"X": "float32", "S": "float16", "Y": "float32"}),
    "limited-bfloat16": (LIMITED, {"X": "bfloat16", "S": "float8e4m3fn", "Y": "float8e4m3fn"}),
    "weighted": (WEIGHTED, {"X": "float32", "S": "float32", "Y": "uint8"}),
}
GROUPS: dict[str, tuple[Granularity, tuple[int, ...]]] = {
    "tensor": (per_tensor(), (2, 65, 67)),
    "axis": (per_axis(1), (3, 70, 5)),
    "last axis": (per_axis(-1), (70, 9)),
    "block": (blocked(-1, 32), (3, 4, 77)),
    "first block": (blocked(0, 3), (7, 30)),
}


def inputs_of(formula: Formula, shape: tuple[int, ...], seed: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    groups = scale_shape(formula.granularity, shape)
    found: dict[str, NDArray[Any]] = {}
    for operand in formula.checked.operands:
        if not operand.is_output:
            values = rng.normal(0, 20, groups if operand.per_group else shape)
            if operand.dtype.is_float and not operand.per_group and values.size:
                values.reshape(-1)[rng.integers(0, values.size, 2)] = rng.choice([np.nan, np.inf, -0.0], 2)
            found[operand.name] = np.asarray(values).astype(numpy_dtype(operand.dtype))
    return found


@pytest.mark.parametrize("device", ["cpu", LAVAPIPE, SWIFTSHADER])
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("case", CASES)
def test_a_formula_with_a_reduction_is_right(case: str, group: str, device: str) -> None:
    granularity, shape = GROUPS[group]
    for seed, baked in enumerate((None, shape)):
        formula = compile_formula(*CASES[case], granularity, baked)
        inputs = inputs_of(formula, shape, seed)
        assert bits(formula.run(inputs, device)) == bits(formula.reference(inputs))


@pytest.mark.parametrize("mode", ["strict", "fast"])
@pytest.mark.parametrize("case", CASES)
def test_each_mode_takes_them(case: str, mode: str) -> None:
    formula = compile_formula(*CASES[case], blocked(-1, 32), mode=mode)
    inputs = inputs_of(formula, (3, 4, 77), 5)
    found, wanted = formula.run(inputs, "cpu"), formula.reference(inputs)
    if mode == "strict":
        assert bits(found) == bits(wanted)
    assert found.keys() == wanted.keys()


@pytest.mark.parametrize("group", GROUPS)
def test_the_oracle_reduces_as_numpy_does(group: str) -> None:
    granularity, shape = GROUPS[group]
    formula = compile_formula(*CASES["symmetric"], granularity)
    x = np.random.default_rng(8).normal(0, 20, shape).astype(np.float32)
    results = formula.reference({"x": x})
    if granularity.kind == "per_tensor":
        magnitude = np.abs(x).max()
    elif granularity.kind == "per_axis":
        axis = granularity.axis % x.ndim
        magnitude = np.abs(x).max(axis=tuple(each for each in range(x.ndim) if each != axis))
    else:
        axis, size = granularity.axis % x.ndim, granularity.block_size
        parts = [np.abs(part).max(axis=axis) for part in np.split(x, range(size, shape[axis], size), axis=axis)]
        magnitude = np.stack(parts, axis=axis)
    scale = np.asarray(magnitude / np.float32(127), np.float32)
    assert bits({"y_scale": results["y_scale"]}) == bits({"y_scale": scale})


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("case", CASES)
def test_a_program_cut_at_its_reductions_has_the_same_values(case: str, group: str) -> None:
    granularity, shape = GROUPS[group]
    formula = compile_formula(*CASES[case], granularity)
    cut = split_reductions(formula.checked)
    assert len(cut.kernels) == 3
    inputs = inputs_of(formula, shape, 7)
    assert bits(evaluate_reference(cut, granularity, inputs)) == bits(formula.reference(inputs))


def test_both_compilers_accept_them_and_the_schema_their_sidecars() -> None:
    texts = []
    for case, formula_and_types in CASES.items():
        for group, (granularity, shape) in GROUPS.items():
            for baked in (None, shape):
                formula = compile_formula(*formula_and_types, granularity, baked)
                VALIDATOR.validate(formula.sidecar)
                texts.append((f"{case} {group} {baked}", formula.wgsl))
    reports = validate_texts(texts, engine="all")
    assert len(reports) == 2 * len(texts)
    assert [report.label for report in reports if not report.ok] == []


def test_the_scratch_of_a_formula_is_named_by_what_is_reduced() -> None:
    formula = compile_formula(*CASES["limited"], per_axis(0))
    roles = {buffer["name"]: buffer["role"] for buffer in formula.sidecar["buffers"]}
    assert roles == {"x": "input", "limit": "input", "x_max": "scratch", "y": "output", "square": "output", "params": "uniform"}
    assert [entry["entry_point"] for entry in formula.sidecar["passes"]] == ["clear", "reduce", "finish", "main"]
    assert formula.sidecar["on_empty"] == {"square": 0}
