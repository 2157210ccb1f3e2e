"""Which kernels each stack runs in CI, by name of the adapter: none of them is left out where the adapter is absent, the suite fails."""

from __future__ import annotations

from typing import Final

from tests.runtime.stacks import LAVAPIPE, OPENGL, SWIFTSHADER

WGPU_SWIFTSHADER: Final = "wgpu:swiftshader"

SAMPLES: Final = {LAVAPIPE: (290, 1), SWIFTSHADER: (290, 2), WGPU_SWIFTSHADER: (290, 3), OPENGL: (290, 4)}
"""By stack, how many kernels of the matrix, four texts each, and the seed of the sample: each stack has every pair, in other kernels."""

JAVASCRIPT: Final = 100
"""Kernels that Chromium and Node run."""
