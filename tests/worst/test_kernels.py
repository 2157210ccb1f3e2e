"""Kernels of `strict` and `exact` give the same bits under every model of their mode; those of `fast` do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import qgen
from qgen.check import make_inputs
from qgen.dtypes import DTYPES
from qgen.evaluate import IEEE
from qgen.evaluate.worst import worst_models
from qgen.kernel import Kernel
from tests.worst.harness import check_under_models, evaluate_under
from tests.worst.sweep import check_case, compile_case, sampled_cases

PARTS = 24


@pytest.mark.parametrize("part", range(PARTS))
def test_kernels_give_the_same_bits_under_every_model(part: int) -> None:
    assert [failure for case in sampled_cases()[part::PARTS] for failure in check_case(case, rounds=1)] == []


def test_the_sample_has_every_dtype_in_each_mode() -> None:
    assert len(sampled_cases()) > 250
    for mode in ("strict", "exact"):
        kernels = [compile_case(case)[1].signature for case in sampled_cases() if case[0] == mode]
        assert {dtype for signature in kernels for dtype in (signature.x, signature.scale, signature.y)} == set(DTYPES.values())


def quantize(y: str, numerics: str) -> Kernel:
    return qgen.compile("QuantizeLinear", x="float32", y=y, granularity=qgen.per_axis(0), numerics=numerics)


@pytest.mark.parametrize("kernel", [quantize("uint8", "fast"), quantize("int16", "fast"), quantize("float8e4m3fn", "fast")])
def test_a_fast_kernel_depends_on_the_model(kernel: Kernel) -> None:
    inputs = make_inputs(kernel, (16, 200), 1)
    for mode in ("strict", "exact"):
        found = check_under_models(kernel, worst_models(mode), inputs)
        assert len(found) > len(worst_models("exact")) // 2


def test_an_exact_kernel_depends_on_products_rounded_to_nearest() -> None:
    """What `exact` relies on beyond `strict` is there to be found: without it, its products move."""
    kernel = qgen.compile("DequantizeLinear", x="int16", scale="float32", numerics="exact")
    inputs: dict[str, NDArray[Any]] = {"x": np.arange(-300, 301, dtype=np.int16), "x_scale": np.array(0.1, np.float32)}
    assert check_under_models(kernel, worst_models("exact"), inputs) == []
    assert len(check_under_models(kernel, worst_models("strict"), inputs)) > 10


def test_a_dynamic_quantization_gives_the_same_bits_under_every_model() -> None:
    for mode in ("strict", "exact"):
        kernel = qgen.compile("DynamicQuantizeLinear", x="float32", numerics=mode)
        for seed, count in enumerate((1, 5, 300)):
            x = np.random.default_rng(seed).normal(size=count).astype(np.float32)
            assert check_under_models(kernel, worst_models(mode), {"x": x}) == []


def test_outcomes_of_the_harness_are_those_of_the_kernel() -> None:
    kernel = quantize("uint8", "strict")
    inputs = make_inputs(kernel, (3, 50), 2)
    words = evaluate_under(kernel, IEEE, inputs)
    assert words["y"].tobytes()[:150] == kernel.run(inputs, "cpu")["y"].tobytes()
