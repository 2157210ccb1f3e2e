"""What a target lacks is replaced: the kernel says what it needs, and computes the same."""

from __future__ import annotations

from typing import Any

import pytest

import qgen
from qgen.check import check_kernel
from qgen.kernel import Kernel
from qgen.validate import validate_texts
from tests.runtime.stacks import LAVAPIPE

KERNELS: dict[str, dict[str, Any]] = {
    "uint8": {"x": "uint8", "zero_point": True},
    "int4": {"x": "int4", "granularity": qgen.blocked(-1, 32)},
    "uint4": {"x": "uint4", "granularity": qgen.per_axis(0), "shape": (5, 384)},
    "float8": {"x": "float8e5m2", "y": "float16", "shape": (1027,)},
}


def dequantize(choices: dict[str, Any], target: str) -> Kernel:
    return qgen.compile("DequantizeLinear", scale="float32", **choices, target=target)


@pytest.mark.parametrize("name", KERNELS)
def test_a_target_without_language_features_gets_none(name: str) -> None:
    usual, plain = (dequantize(KERNELS[name], target) for target in ("webgpu", "baseline"))
    assert "unpack4xU8" in usual.wgsl
    assert usual.sidecar["requires"]["language_features"] == ["packed_4x8_integer_dot_product"]
    assert "unpack4xU8" not in plain.wgsl
    assert plain.sidecar["requires"]["language_features"] == []
    assert [report for report in validate_texts([(name, plain.wgsl)], engine="all") if not report.ok] == []
    for device in ("cpu", LAVAPIPE):
        assert check_kernel(plain, device).ok


def test_a_kernel_says_what_its_text_needs_and_nothing_else() -> None:
    kernel = qgen.compile("QuantizeLinear", x="float32", numerics="strict")
    assert "unpack" not in kernel.wgsl
    assert kernel.sidecar["requires"]["language_features"] == []
