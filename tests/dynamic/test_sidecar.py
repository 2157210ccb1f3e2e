"""What a host is told of a kernel of several passes: the schema, scratch buffers, the order, and that the JSON alone is enough."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import qgen
from qgen.arrays import pack_words
from qgen.check import make_inputs
from qgen.check.compare import find_mismatches
from qgen.check.shapes import least_rank
from qgen.kernel import CPU, Kernel
from qgen.runtime import open_device
from qgen.shapes import Granularity, PerTensor, blocked, per_axis, per_tensor
from qgen.sidecar.plan import plan_dispatch
from qgen.sidecar.text import print_sidecar
from tests.dynamic.kernels import dynamic
from tests.runtime.stacks import SWIFTSHADER
from tests.sidecar.test_schema import VALIDATOR

GRANULARITIES: list[Granularity] = [per_tensor(), per_axis(0), per_axis(-1), blocked(-1, 5), blocked(0, 32)]
SHAPE = (33, 7)


@pytest.mark.parametrize("numerics", ["exact", "strict", "fast"])
@pytest.mark.parametrize("granularity", GRANULARITIES, ids=str)
def test_the_schema_takes_the_sidecar(granularity: Granularity, numerics: str) -> None:
    for shape in (None, SHAPE):
        VALIDATOR.validate(dynamic(granularity, shape, numerics).sidecar)


def test_the_passes_and_what_each_binds() -> None:
    sidecar = dynamic().sidecar
    roles = {buffer["name"]: buffer["role"] for buffer in sidecar["buffers"]}
    assert roles == {
        "x": "input", "x_max": "scratch", "x_min": "scratch", "y": "output", "y_scale": "output", "y_zero_point": "output",
        "params": "uniform",
    }  # fmt: skip
    assert [(entry["entry_point"], [each["buffer"] for each in entry["bindings"]]) for entry in sidecar["passes"]] == [
        ("clear", ["x_max", "x_min", "params"]),
        ("reduce", ["x", "x_max", "x_min", "params"]),
        ("finish", ["x_max", "x_min", "y_scale", "y_zero_point", "params"]),
        ("main", ["x", "y", "y_scale", "y_zero_point", "params"]),
    ]
    assert sidecar["on_empty"] == {"y_scale": 0x3F800000, "y_zero_point": 0}
    assert sidecar["requires"]["limits"]["maxStorageBuffersPerShaderStage"] == 4
    assert sidecar["chunks"] is None


def test_the_last_word_of_a_constant_is_filled_with_zeros() -> None:
    kernel = dynamic(per_axis(1))
    checked = kernel.compiled.checked
    operands = tuple(replace(each, on_empty=7) if each.name == "y_zero_point" else each for each in checked.operands)
    changed = Kernel(replace(kernel.compiled, checked=replace(checked, operands=operands)))
    found = changed.run_words({}, kernel.plan({"x": (0, 6)}), CPU)
    assert {name: list(words) for name, words in found.items()} == {
        "y": [],
        "y_scale": [0x3F800000] * 6,
        "y_zero_point": [0x07070707, 0x0707],
    }


def test_scratch_is_of_words_one_for_each_group() -> None:
    for granularity, groups in ((per_tensor(), 1), (per_axis(1), 7), (blocked(0, 32), 14)):
        kernel = dynamic(granularity)
        scratch = [buffer for buffer in kernel.sidecar["buffers"] if buffer["role"] == "scratch"]
        assert {buffer["element"]["dtype"] for buffer in scratch} == {"uint32"}
        sizes = kernel.plan({"x": SHAPE}).sizes
        assert [sizes[buffer["name"]] for buffer in scratch] == [4 * groups] * 2
        assert sizes["y_scale"] == 4 * groups
        assert sizes["y_zero_point"] == 4 * math.ceil(groups / 4)


def test_a_host_may_choose_group_and_entry_point() -> None:
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32", entry_point="quantize", group=2)
    assert [entry["entry_point"] for entry in kernel.sidecar["passes"]] == [
        "quantize_clear",
        "quantize_reduce",
        "quantize_finish",
        "quantize",
    ]
    assert {each["group"] for entry in kernel.sidecar["passes"] for each in entry["bindings"]} == {2}


def random_shape(rng: random.Random, granularity: Granularity) -> tuple[int, ...]:
    rank = rng.randint(0 if isinstance(granularity, PerTensor) else least_rank(granularity), 5)
    dims = [rng.choice((1, 2, 3, 5, 8, 13, 33, 65)) for _ in range(rank)]
    while math.prod(dims) > 9000:
        at = rng.randrange(rank)
        dims[at] = max(1, dims[at] // 2)
    return tuple(dims)


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=str)
def test_a_plan_of_the_json_alone_runs_right(granularity: Granularity) -> None:
    """Bounds are not checked by the driver: canaries lie on both sides of each buffer of exactly the planned size."""
    device = open_device(SWIFTSHADER, bounds_checks=False)
    kernel, rng = dynamic(granularity), random.Random(4)
    sidecar: dict[str, Any] = json.loads(print_sidecar(kernel.sidecar))
    for seed in range(40):
        inputs = make_inputs(kernel, random_shape(rng, granularity), seed)
        plan = plan_dispatch(sidecar, {"x": inputs["x"].shape})
        found = device.run(kernel.wgsl, sidecar, plan, {"x": pack_words(inputs["x"], "float32").tobytes()}, canaries=True)
        wanted = kernel.reference(inputs)
        assert sorted(found) == sorted(wanted)
        for name, want in wanted.items():
            assert len(found[name]) == plan.sizes[name]
            wrong = find_mismatches(np.frombuffer(found[name], np.uint32), want, kernel.compiled.checked.operand(name).dtype)
            assert not wrong.size, f"{inputs['x'].shape}, seed {seed}, {name}: {wrong[:10]}"
