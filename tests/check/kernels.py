"""Kernels for the tests of the check, a right one by few words and a wrong one made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import qgen
from qgen.ir import nodes as ir
from qgen.ir.rewrite import map_body, map_expr
from qgen.ir.types import Scalar
from qgen.kernel import Kernel
from qgen.shapes import Granularity

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


def quantize(
    y: str = "uint8", granularity: Granularity | None = None, *, x: str = "float32", zero_point: bool = True, numerics: str = "exact"
) -> Kernel:
    return qgen.compile(QUANTIZE, x=x, y=y, zero_point=zero_point, granularity=granularity, numerics=numerics)


def dequantize(x: str = "uint8", granularity: Granularity | None = None, *, scale: str = "float32", zero_point: bool = True) -> Kernel:
    return qgen.compile(DEQUANTIZE, x=x, scale=scale, zero_point=zero_point, granularity=granularity)


def with_changed(kernel: Kernel, change: Callable[[ir.Expr], ir.Expr], *, only: str | None = None) -> Kernel:
    """Return the kernel with each expression in the functions of its LEGAL program changed, or in one of them; the text stays."""

    def walk(expr: ir.Expr) -> ir.Expr:
        return map_expr(expr, change)

    legal = kernel.compiled.legal
    functions = tuple(replace(each, body=map_body(each.body, walk)) if only in {None, each.name} else each for each in legal.functions)
    assert functions != legal.functions
    return Kernel(replace(kernel.compiled, legal=replace(legal, functions=functions)))


def ties_to_odd(expr: ir.Expr) -> ir.Expr:
    """Change `(value >> shift) & 1`, by which `round_shift` rounds half to even."""
    match expr:
        case ir.Binary("&", ir.Binary(">>"), ir.Literal(1, Scalar() as scalar), _):
            return ir.Binary("^", expr, ir.Literal(1, scalar), scalar)
        case _:
            return expr
