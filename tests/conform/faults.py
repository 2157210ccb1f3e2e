"""Stacks that are wrong on purpose: a flipped bit, a refusal, in the words of some kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.check import compare
from qgen.errors import InternalError
from qgen.evaluate import ArithmeticModel
from qgen.kernel import Kernel

Words = dict[str, NDArray[np.uint32]]


def inject(monkeypatch: pytest.MonkeyPatch, change: Callable[[Kernel, str, Words], Words], *modules: Any) -> None:  # noqa: ANN401 - modules
    """Let `change` have the words of every run, with the kernel and the device, in `compare` and the modules that import from it."""
    real = compare.run_kernel

    def run(kernel: Kernel, device: str, inputs: Mapping[str, NDArray[Any]], model: ArithmeticModel | None = None) -> Words:
        return change(kernel, device, {name: words.copy() for name, words in real(kernel, device, inputs, model).items()})

    for module in (compare, *modules):
        monkeypatch.setattr(module, "run_kernel", run)


def flip(words: Words, mask: int) -> Words:
    """Return the words with bits of the first one flipped."""
    for each in words.values():
        each[:1] ^= np.uint32(mask)
    return words


def flip_float16_axis(kernel: Kernel, device: str, words: Words) -> Words:
    """Flip two bits on the CPU where x is float16 and there is one scale an index along an axis."""
    request = kernel.request
    is_meant = device == "cpu" and request.signature.x.name == "float16" and request.granularity.kind == "per_axis"
    return flip(words, 0x5) if is_meant else words


def refuse(kernel: Kernel, _device: str, _words: Words) -> Words:
    """Refuse every kernel."""
    raise InternalError(f"`an adapter` refuses the kernel: <script>alert(1)</script>\n{kernel.wgsl}")
