"""The kernels that a person reads: few, and together of every dtype, layout, granularity, division and mode."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import qgen
from qgen.check import kernel_variants, matrix_requests
from qgen.check.matrix import BIT_EXACT
from qgen.kernel import Kernel, compile_request
from qgen.request import Request
from qgen.sidecar.text import print_sidecar
from tests.conformance.sample import Feature, cover

MATRIX: Final = "matrix.txt"
MOST: Final = 150
SEED: Final = 2

_HASH: Final = re.compile(r"_[0-9a-f]{8}$")


def read_kernels() -> dict[str, Kernel]:
    """Return the kernels whose texts are goldens, by the name of their files: their own without the hash."""
    texts = [text for number, request in enumerate(matrix_requests()) for text in _offered(request, number)]
    chosen = [compile_request(texts[number]) for number in cover([_features(text) for text in texts], SEED)]
    kernels = {kernel.name: kernel for kernel in (*chosen, *_usual())}
    named = {_HASH.sub("", name): kernel for name, kernel in kernels.items()}
    if len(named) != len(kernels):
        raise ValueError("two kernels have one name but for the hash")
    return named | _with_options()


def print_line(kernel: Kernel) -> str:
    """Return a kernel's line of the matrix: its name, and the hash of its sidecar, which has the text's."""
    return f"{kernel.name} {hashlib.sha256(print_sidecar(kernel.sidecar).encode()).hexdigest()[:32]}"


def _offered(request: Request, number: int) -> Iterable[Request]:
    """Return the texts of a kernel for every shape, and one that is baked."""
    variants = kernel_variants(request, number)
    return variants[: len(BIT_EXACT) + 1]


def _features(text: Request) -> frozenset[Feature]:
    signature, kind, baked = text.signature, text.granularity.kind, text.shape is not None
    op, x, scale, y = signature.op, signature.x.name, signature.scale.name, signature.y.name
    quantized, wide = (signature.y, x) if signature.is_quantize else (signature.x, y)
    division = str(signature.division)
    return frozenset({
        ("wide", op, wide, text.mode),
        ("scale", op, scale, text.mode),
        ("quantized", op, quantized.name, text.mode),
        ("zero point", op, quantized.name, signature.zero_point),
        ("layout", op, quantized.bits, kind, baked),
        ("division of x", division, x),
        ("division by scale", division, scale),
        ("saturate", y, signature.saturate),
    })  # fmt: skip


def _usual() -> list[Kernel]:
    """Return what most models have: bytes per tensor and per channel, nibbles in blocks of 32, with a shape and without."""
    kernels = []
    for shape in (None, (64, 96)):
        kernels += [
            qgen.compile("QuantizeLinear", x="float32", y="uint8", zero_point=True, shape=shape),
            qgen.compile("QuantizeLinear", x="float32", y="int8", granularity=qgen.per_axis(1), shape=shape),
            qgen.compile("QuantizeLinear", x="float16", y="uint4", zero_point=True, granularity=qgen.blocked(-1, 32), shape=shape),
            qgen.compile("DequantizeLinear", x="uint8", zero_point=True, shape=shape),
            qgen.compile("DequantizeLinear", x="int8", granularity=qgen.per_axis(1), shape=shape),
            qgen.compile("DequantizeLinear", x="uint4", scale="float16", zero_point=True, granularity=qgen.blocked(-1, 32), shape=shape),
        ]
    return kernels


def _with_options() -> dict[str, Kernel]:
    """Return kernels with what a host may choose, and in the mode `fast`."""
    chosen = {
        "any_entry_point_and_group": qgen.compile(
            "QuantizeLinear", x="float32", y="int8", zero_point=True, entry_point="quantize", group=2, name="any_entry_point_and_group"
        ),
        "rows_of_7_workgroups": qgen.compile(
            "DequantizeLinear", x="uint4", shape=(3, 10_000), target="webgpu:max_workgroups_per_dimension=7", name="rows_of_7_workgroups"
        ),
        "workgroups_of_256": qgen.compile("QuantizeLinear", x="float16", target="webgpu:workgroup_size=256", name="workgroups_of_256"),
    }
    fast = [
        qgen.compile("QuantizeLinear", x="float32", y="uint8", zero_point=True, granularity=qgen.per_axis(1), numerics="fast"),
        qgen.compile("DequantizeLinear", x="int4", scale="float16", granularity=qgen.blocked(-1, 32), numerics="fast"),
    ]
    return chosen | {_HASH.sub("", kernel.name): kernel for kernel in fast}
