"""A check finds what is wrong, says where, and counts: kernels whose LEGAL program was changed, words that were, and stacks."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest

from qgen.arrays import numpy_dtype, pack_words
from qgen.check import CheckResult, CounterExample, check_kernel, make_inputs
from qgen.check.compare import find_mismatches
from qgen.check.shapes import ROUNDS, check_runs, check_shapes
from qgen.dtypes import DTYPES
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.kernel import Kernel
from qgen.shapes import blocked, per_axis
from tests.check.kernels import dequantize, quantize, ties_to_odd, with_changed
from tests.oracle.nodes import Array
from tests.runtime.stacks import LAVAPIPE, STACKS

SHAPES = [(3,), (5, 13), (2, 3, 5)]


@pytest.mark.parametrize("device", ["cpu", *STACKS])
@pytest.mark.parametrize("kernel", [quantize("uint4", blocked(-1, 3)), dequantize("int16", per_axis(-1), scale="float16")])
def test_a_right_kernel_is_found_right(device: str, kernel: Kernel) -> None:
    assert check_kernel(kernel, device, SHAPES, seed=1) == CheckResult(kernel.name, device, ROUNDS * (3 + 65 + 30), 0, None)


def test_without_shapes_all_that_a_kernel_is_checked_on_are_taken() -> None:
    kernel = quantize()
    result = check_kernel(kernel, "cpu")
    assert result.ok
    assert result.elements == sum(math.prod(shape) for _, shape, _ in check_runs(check_shapes(kernel), ROUNDS, 0))


def test_a_wrong_rounding_is_found_with_the_first_element_that_shows_it() -> None:
    kernel = with_changed(quantize(zero_point=False), ties_to_odd)
    result = check_kernel(kernel, "cpu", [(4000,)], seed=4)
    assert not result.ok
    assert 100 < result.mismatches < 8000
    first = result.first
    assert first is not None
    assert abs(first.got - first.want) == 1
    x, scale = (np.array([first.inputs[name]], np.uint32).view(np.float32)[0] for name in ("x", "y_scale"))
    assert x / scale % 1 == 0.5
    assert str(result) == f"{kernel.name} on cpu: {16000 - result.mismatches} of 16000 elements are right; {first}"
    assert str(first) == (
        f"shape [4000], seed 4, element {first.index}: x {first.inputs['x']:#x}, y_scale {first.inputs['y_scale']:#x} "
        f"gives {first.got:#x} instead of {first.want:#x}"
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(4))
def test_each_shape_has_calm_inputs_once(count: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[tuple[int, ...], bool]] = []

    def make(kernel: Kernel, shape: tuple[int, ...], seed: int, *, calm: bool) -> dict[str, Array]:
        runs.append((shape, calm))
        return make_inputs(kernel, shape, seed, calm=calm)

    monkeypatch.setitem(check_kernel.__globals__, "make_inputs", make)
    shapes = [(1 + number,) for number in range(count)]
    check_kernel(quantize(), "cpu", shapes, seed)
    for shape in shapes:
        assert sorted(calm for each, calm in runs if each == shape) == [False, False, False, True]


def test_code_that_only_calm_elements_reach_is_checked() -> None:
    def floor(expr: ir.Expr) -> ir.Expr:
        return replace(expr, name="floor") if isinstance(expr, ir.Builtin) and expr.name == "round" else expr

    kernel = with_changed(quantize("uint8", per_axis(-1)), floor, only="rint_quotient_4_vv")
    result = check_kernel(kernel, "cpu", [(50, 40)])
    assert result.mismatches > result.elements // 20
    assert result.first is not None
    assert result.first.got == result.first.want - 1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_in_four_rounds_each_shape_has_calm_inputs_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, shapes = quantize(), [(size,) for size in range(1, count + 1)]
    seen: list[tuple[tuple[int, ...], bool]] = []

    def make(_: Kernel, shape: tuple[int, ...], seed: int, *, calm: bool) -> object:
        seen.append((shape, calm))
        return make_inputs(kernel, shape, seed, calm=calm)

    monkeypatch.setitem(check_kernel.__globals__, "make_inputs", make)
    for seed in range(ROUNDS):
        seen.clear()
        check_kernel(kernel, "cpu", shapes, seed)
        assert sorted(shape for shape, calm in seen if calm) == shapes
        assert len(seen) == ROUNDS * count


def test_the_counter_example_has_the_scale_and_the_zero_point_of_its_group() -> None:
    kernel = with_changed(quantize("int8", blocked(1, 2)), ties_to_odd)
    shape = (3, 5, 7)
    result = check_kernel(kernel, "cpu", [shape], seed=0)
    first = result.first
    assert first is not None
    outer, axis, inner = np.unravel_index(first.index, shape)
    inputs = make_inputs(kernel, shape, 0)
    assert first.inputs == {
        "x": int(inputs["x"].view(np.uint32)[outer, axis, inner]),
        "y_scale": int(inputs["y_scale"].view(np.uint32)[outer, axis // 2, inner]),
        "y_zero_point": int(inputs["y_zero_point"].view(np.uint8)[outer, axis // 2, inner]),
    }
    assert first.want == int(kernel.reference(inputs)["y"].view(np.uint8)[outer, axis, inner])


@pytest.mark.parametrize(("name", "count"), [("uint4", 9), ("int2", 17), ("uint8", 5), ("float16", 1), ("float6e2m3", 5)])
def test_padding_that_is_not_zero_is_a_mismatch(name: str, count: int) -> None:
    dtype = DTYPES[name]
    want = np.zeros(count, np.int64).astype(numpy_dtype(dtype))
    words = pack_words(want, dtype)
    assert find_mismatches(words, want, dtype).tolist() == []
    words[-1] |= np.uint32(1 << 31)
    assert find_mismatches(words, want, dtype).tolist() == [count]
    words[0] |= np.uint32(1)
    assert find_mismatches(words, want, dtype).tolist() == [0, count]


def test_a_padding_that_is_not_zero_is_described() -> None:
    example = CounterExample((3,), seed=2, calm=True, index=3, inputs={}, got=0xFF, want=0)
    assert str(example) == "shape [3], seed 2 (calm), the padding of the last word gives 0xff instead of 0x0"


def test_buffers_lie_between_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    class Stub:
        def run(self, *_: object, canaries: bool) -> dict[str, bytes]:
            seen.append(canaries)
            return {"y": bytes(4)}

    monkeypatch.setitem(check_kernel.__globals__, "open_device", lambda _: Stub())
    check_kernel(quantize(), "any", [(3,)])
    assert seen == [True] * 4


def test_a_text_that_the_stack_refuses_is_an_error() -> None:
    kernel = quantize()
    wrong = kernel.wgsl.replace("fn main", "fun main")
    step = kernel.sidecar["passes"][0] | {"wgsl": {"file": "wrong.wgsl", "sha256": hashlib.sha256(wrong.encode()).hexdigest()}}
    sidecar = kernel.sidecar | {"passes": [step]}
    with pytest.raises(InternalError, match="refuses the kernel"):
        check_kernel(Kernel(replace(kernel.compiled, wgsl=wrong, given_sidecar=sidecar)), LAVAPIPE, SHAPES)
