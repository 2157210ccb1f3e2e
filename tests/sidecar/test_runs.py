"""Tensors larger than a device binds, in runs as the sidecar says: on the evaluator, which traps what is out of bounds, and on lavapipe.

The limits are low on purpose. The right values are the oracle's, of the whole tensor.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import qgen
import qgen.runtime
from qgen.arrays import pack_words
from qgen.check import make_inputs
from qgen.errors import QgenError
from qgen.kernel import CPU, Kernel
from qgen.runtime import Device
from qgen.runtime.opening import _adapters
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, View, make_view, scale_shape
from qgen.sidecar.plan import RunPlan, plan_runs
from qgen.sidecar.text import print_sidecar
from tests.dynamic.formulas import compile_formula
from tests.sidecar.test_schema import VALIDATOR

Words = NDArray[np.uint32]
HUGE: Final = (1 << 53) - 1


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with its shape in uniforms, a tensor, and a limit in bytes that is below the size of one of its buffers."""

    op: str
    x: str
    y: str
    granularity: Granularity
    shape: tuple[int, ...]
    limit: int
    scale: str = "float32"
    zero_point: bool = True


Q: Final = "QuantizeLinear"
DQ: Final = "DequantizeLinear"

CASES: Final = {
    "axis 0": Case(Q, "float32", "uint8", PerAxis(0), (300, 64), 4100),
    "axis 0, rows of no whole word": Case(DQ, "int4", "float16", PerAxis(0), (41, 333), 4100, "float16"),
    "axis 0, rows longer than a run": Case(DQ, "uint2", "float32", PerAxis(0), (3, 7001), 8200),
    "axis 0, one row": Case(Q, "float32", "int8", PerAxis(0), (1, 9001), 4100),
    "axis 0, parts of the scales": Case(DQ, "uint8", "float32", PerAxis(0), (2500, 3), 4100),
    "axis 0, a scale an element": Case(Q, "float32", "int8", PerAxis(0), (5003, 1), 4100),
    "axis 0, 6 bits": Case(Q, "float32", "float6e2m3", PerAxis(0), (90, 101), 8300, zero_point=False),
    "axis -1": Case(DQ, "int8", "bfloat16", PerAxis(-1), (77, 65), 1050, "bfloat16"),
    "axis 1, axes longer than a run": Case(DQ, "uint4", "float32", PerAxis(1), (3, 9, 401), 4100),
    "axis 1, runs of several axes": Case(Q, "float16", "int8", PerAxis(1), (50, 3, 33), 1300, "float16"),
    "blocks, axis 0": Case(Q, "float16", "int4", Blocked(0, 16), (250, 40), 4100, "float16"),
    "blocks, axis 0, rows of no whole word": Case(DQ, "int4", "float16", Blocked(0, 8), (41, 333), 8300, "float16"),
    "blocks, axis 0, rows longer than a run": Case(DQ, "uint2", "float32", Blocked(0, 2), (3, 7001), 57000),
    "blocks, axis 0, 6 bits": Case(Q, "float32", "float6e3m2", Blocked(0, 7), (90, 101), 8300, zero_point=False),
    "blocks, last axis": Case(DQ, "int4", "float16", Blocked(-1, 32), (9, 2048), 4100, "float16"),
    "blocks, last axis, ragged": Case(DQ, "int4", "float16", Blocked(-1, 32), (9, 2050), 4100, "float16"),
    "blocks, one long axis": Case(DQ, "float4e2m1", "float32", Blocked(-1, 32), (1, 60000), 2100, "float8e8m0", zero_point=False),
    "blocks, a scale an element": Case(DQ, "uint8", "float32", Blocked(0, 1), (1001, 5), 8300),
    "blocks, parts of the scales": Case(DQ, "uint8", "float32", Blocked(0, 2), (3000, 3), 4200),
    "blocks, parts of the scales of ragged axes": Case(Q, "float32", "uint8", Blocked(1, 4), (600, 6, 2), 8300),
    "blocks longer than the axis": Case(Q, "float32", "uint8", Blocked(1, 5000), (60, 9, 11), 4200),
    "blocks in the middle": Case(DQ, "uint16", "float32", Blocked(1, 3), (9, 10, 77), 12300),
    "per tensor": Case(Q, "float32", "int2", PerTensor(), (9001,), 4200),
}


@cache
def kernel_of(case: Case) -> Kernel:
    return qgen.compile(case.op, x=case.x, y=case.y, scale=case.scale, zero_point=case.zero_point, granularity=case.granularity, shape=None)


@cache
def inputs_of(case: Case) -> dict[str, Any]:
    return make_inputs(kernel_of(case), case.shape, 3)


@cache
def words_of(case: Case) -> dict[str, Words]:
    operands = kernel_of(case).compiled.checked.bound
    return {each.name: pack_words(inputs_of(case)[each.name], each.dtype) for each in operands if not each.is_output}


@cache
def wanted(case: Case) -> Words:
    kernel = kernel_of(case)
    y = kernel.compiled.checked.outputs[0]
    return pack_words(kernel.reference(inputs_of(case))[y.name], y.dtype)


def runs_of(case: Case) -> tuple[RunPlan, ...]:
    sidecar: dict[str, Any] = json.loads(print_sidecar(kernel_of(case).sidecar))
    runs = plan_runs(sidecar, {name: array.shape for name, array in inputs_of(case).items()}, case.limit)
    assert runs is not None
    return runs


@pytest.mark.parametrize("name", CASES)
def test_the_runs_together_are_the_whole(name: str) -> None:
    case = CASES[name]
    runs, found = runs_of(case), np.full_like(wanted(case), 0xDEADBEEF)
    assert len(runs) > 1
    for run in runs:
        places = {each: slice(run.offsets[each] // 4, (run.offsets[each] + size) // 4) for each, size in run.plan.sizes.items()}
        assert all(size <= case.limit for size in run.plan.sizes.values())
        part = {each: words[places[each]] for each, words in words_of(case).items()}
        found[places["y"]] = kernel_of(case).run_words(part, run.plan, CPU)["y"]
    assert (found == wanted(case)).all()


@cache
def low_device(limit: int) -> Device:
    """Return lavapipe, opened with this limit and no more."""
    (adapter,) = (each for each in _adapters("wgpu") if "llvmpipe" in each.name.lower() and each.backend == "wgpu:vulkan")

    def take() -> SimpleNamespace:
        handle = adapter.take()
        limits = dict(handle.limits) | {"max-storage-buffer-binding-size": limit}
        return SimpleNamespace(features=handle.features, limits=limits, request_device_sync=handle.request_device_sync)

    return Device(replace(adapter, take=take))


@pytest.mark.parametrize("name", CASES)
def test_a_device_with_a_low_limit_computes_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    kernel = kernel_of(case)
    plan = kernel.plan({each: array.shape for each, array in inputs_of(case).items()})
    device = low_device(case.limit)
    words = {each: array.tobytes() for each, array in words_of(case).items()}
    found = device.run(kernel.wgsl, kernel.sidecar, plan, words, canaries=True)
    assert found == {"y": wanted(case).tobytes()}
    monkeypatch.setattr(qgen.runtime, "open_device", lambda _: device)
    y = kernel.compiled.checked.operand("y").dtype
    assert (pack_words(kernel.run(inputs_of(case), device="gpu")["y"], y) == wanted(case)).all()


def test_a_baked_kernel_says_the_way_out() -> None:
    case = CASES["axis 0"]
    kernel = qgen.compile(case.op, x=case.x, y=case.y, scale=case.scale, zero_point=True, granularity=case.granularity, shape=case.shape)
    plan = kernel.plan({each: array.shape for each, array in inputs_of(case).items()})
    with pytest.raises(QgenError, match="leave its shape to uniforms, so that it computes a tensor in parts") as caught:
        low_device(case.limit).run(kernel.wgsl, kernel.sidecar, plan, {})
    assert caught.value.code == "QG612"


def test_a_kernel_whose_least_part_is_too_large_is_refused() -> None:
    case = replace(CASES["axis 0"], limit=512)
    kernel = kernel_of(case)
    shapes = {each: array.shape for each, array in inputs_of(case).items()}
    assert plan_runs(kernel.sidecar, shapes, case.limit) is None
    with pytest.raises(QgenError, match=r"the buffer `x` has 76800 bytes, and .* binds 512") as caught:
        low_device(case.limit).run(kernel.wgsl, kernel.sidecar, kernel.plan(shapes), {})
    assert caught.value.code == "QG612"


def test_the_whole_tensor_is_needed_for_a_scale_that_follows_from_it() -> None:
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32")
    assert kernel.sidecar["chunks"] is None
    assert plan_runs(kernel.sidecar, {"x": (64,)}, HUGE) is None


@pytest.mark.parametrize("granularity", [PerTensor(), PerAxis(1), Blocked(-1, 32)])
def test_a_formula_whose_operands_share_nothing_is_parted_anywhere(granularity: Granularity) -> None:
    text = "op Square(x: X) -> y: Y\n{\n    y = ((x as float32) * (x as float32)) as Y;\n}\n"
    formula = compile_formula(text, {"X": "float32", "Y": "float16"}, granularity)
    VALIDATOR.validate(formula.sidecar)
    runs = plan_runs(formula.sidecar, {"x": (7, 501)}, 4100) or ()
    assert [run.offsets["x"] for run in runs] == [0, 4096, 8192, 12288]
    x = np.random.default_rng(1).normal(size=(7, 501)).astype(np.float32)
    found = [formula.run({"x": part.reshape(1, -1)}, CPU)["y"] for part in np.split(x.reshape(-1), [1024, 2048, 3072])]
    assert (np.concatenate(found, axis=1) == formula.reference({"x": x})["y"].reshape(1, -1)).all()


def test_an_empty_tensor_has_no_run() -> None:
    kernel = kernel_of(CASES["axis 0"])
    assert plan_runs(kernel.sidecar, {"x": (3, 0), "y_scale": (3,), "y_zero_point": (3,)}, HUGE) == ()


_DIMS: Final = st.one_of(st.integers(1, 9), st.sampled_from([16, 33, 64, 100, 1000, 4096, 70000]))


@st.composite
def views(draw: st.DrawFn) -> tuple[Kernel, tuple[int, ...], int]:
    shape = tuple(draw(st.lists(_DIMS, min_size=1, max_size=4)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    granularity: Granularity = draw(
        st.one_of(st.just(PerAxis(axis)), st.builds(Blocked, st.just(axis), st.sampled_from([1, 2, 3, 16, 128, 5000])))
    )
    case = draw(st.sampled_from([CASES["axis 0"], CASES["axis 0, rows of no whole word"], CASES["blocks, axis 0, 6 bits"]]))
    limit = int(2 ** draw(st.floats(11, 28)))
    return kernel_of(replace(case, granularity=granularity, shape=(), limit=0)), shape, max(limit, math.prod(shape) // 20)


def groups_of(view: View, granularity: Granularity, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the scales of elements, as the docstring of `View` defines them."""
    outer, rest = np.divmod(numbers, view.axis * view.inner)
    axis, inner = np.divmod(rest, view.inner)
    return axis if isinstance(granularity, PerAxis) else (outer * view.blocks + axis // view.block_size) * view.inner + inner


def elements_of(count: int) -> NDArray[np.int64]:
    """Return some elements of a run: near its ends, and amid it."""
    some = np.concatenate([np.arange(70), np.arange(0, count, max(1, count // 500)), count - 1 - np.arange(70)])
    return np.unique(np.clip(some, 0, count - 1))


@given(views())
def test_each_element_finds_its_scale_among_those_bound(drawn: tuple[Kernel, tuple[int, ...], int]) -> None:
    kernel, shape, limit = drawn
    granularity = kernel.request.granularity
    groups = scale_shape(granularity, shape)
    if math.prod(shape) > 1 << 32:
        return
    shapes = {name: groups if name != "x" else shape for name in kernel.inputs}
    view, done = make_view(granularity, shape), 0
    bits = {buffer["name"]: buffer["element"]["bits"] for buffer in kernel.sidecar["buffers"] if "element" in buffer}
    for run in plan_runs(kernel.sidecar, shapes, limit) or ():
        values = dict(zip(kernel.compiled.legal.uniforms, map(int, np.frombuffer(run.plan.uniforms["params"], "<u4")), strict=True))
        numbers = elements_of(values["n"])
        first = {name: run.offsets[name] * 8 // bits[name] for name in bits}
        count = {name: run.plan.sizes[name] * 8 // bits[name] for name in bits}
        assert first["x"] == first["y"] == done
        assert done % kernel.sidecar["chunks"]["multiple"] == 0
        assert values["axis_start"] + values["n"] <= 1 << 32
        place = numbers + values["axis_start"]
        row = place // values["inner"]
        found = row % values["axis"]
        if isinstance(granularity, Blocked):
            found = row // values["axis"] * values["blocks"] + found // granularity.block_size
            found = found * values["inner"] + place % values["inner"]
        for name in kernel.inputs[1:]:
            assert (found + first[name] == groups_of(view, granularity, numbers + done)).all()
            assert found.max() < count[name]
        assert all(run.plan.sizes[name] <= limit and run.offsets[name] % 256 == 0 for name in bits)
        done += values["n"]
    assert done in {0, math.prod(shape)}
    assert done or limit < 1 << 16 or math.prod(groups) * 4 > limit


def test_runs_begin_where_words_of_every_tensor_do() -> None:
    for case in CASES.values():
        elements = {each["name"]: each["element"] for each in kernel_of(case).sidecar["buffers"] if each["role"] in {"input", "output"}}
        for run in runs_of(case):
            for name, element in elements.items():
                assert run.offsets[name] % 256 == 0
                assert run.offsets[name] * 8 // element["bits"] % element["period"][0] == 0
