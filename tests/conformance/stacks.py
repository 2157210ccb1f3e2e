"""Which kernels each stack runs in CI, by name of the adapter: none of them is left out where the adapter is absent, the suite fails."""

from __future__ import annotations

from typing import Final

from tests.runtime.stacks import LAVAPIPE, OPENGL, SWIFTSHADER

WGPU_SWIFTSHADER: Final = "wgpu:swiftshader"

SAMPLES: Final = {LAVAPIPE: (580, 1), SWIFTSHADER: (580, 2), WGPU_SWIFTSHADER: (580, 3), OPENGL: (580, 4)}
"""By stack, how many kernels of the matrix, two texts each, and the seed of the sample: each stack has every pair, in other kernels."""

RUNTIMES: Final = ("chromium", "node")
"""The WebGPU implementations in JavaScript, by the names of their devices."""

JAVASCRIPT: Final = 100
"""Kernels that Chromium and Node run."""
