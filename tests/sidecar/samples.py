"""Kernels for the tests of what sidecars say of them: of every dtype, granularity and division, in each mode, baked and with uniforms."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qgen.check import kernel_variants
from qgen.kernel import Kernel, compile_request
from tests.conformance.sample import sample_matrix

MODES: Final = ("exact", "strict", "fast")


def sample_kernels(count: int, seed: int, *, modes: tuple[str, ...] = MODES) -> list[Kernel]:
    """Return two kernels for each of `count` of the matrix: one that leaves the shape to uniforms, and one with a baked shape."""
    found = []
    for place, (number, request) in enumerate(sample_matrix(count, seed)):
        baked = next(variant for variant in kernel_variants(request, number) if variant.shape is not None)
        found.append(compile_request(replace(request, mode=modes[place % len(modes)])))
        found.append(compile_request(replace(baked, mode=modes[(place + 1) % len(modes)])))
    return found
