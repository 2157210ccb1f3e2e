"""LEGAL to LEGAL: evaluates what is constant and drops operations that change nothing, on u32 and i32.

Before: `group: u32 = (i / 1u) % 3u * 1u`; after: `group: u32 = i % 3u`. Nothing is folded whose text a compiler would refuse (a shift of
32, a division by zero), and no float is touched.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from qgen.ir.fold import fold_expr
from qgen.ir.program import Kernel, Program
from qgen.ir.rewrite import map_body


def fold_constants(program: Program) -> Program:
    """Return the program with its entry points folded; the same object where nothing changed. Library functions have nothing to fold."""
    kernels = tuple(_fold_kernel(kernel) for kernel in program.kernels)
    return program if all(map(operator.is_, kernels, program.kernels)) else replace(program, kernels=kernels)


def _fold_kernel(kernel: Kernel) -> Kernel:
    body = map_body(kernel.body, fold_expr)
    return kernel if body is kernel.body else replace(kernel, body=body)
