"""How far the mode `fast` may be off, from the divisions of a CHECKED program.

Where `DOMAIN` is met and f32 `+ - *` round to nearest even, everything but a quotient has the right bits; a native quotient is within
2.5 ULP of the exact one. So a result is wrong where the quotient crosses a midpoint of what it is rounded to next.

Rounded to a type of p bits, by a divisor of d bits: a midpoint m has p + 1 bits, and x - m * divisor is not zero, because x has p bits, too
few for an odd number of p + 1. So it is at least one unit of a product of p + 1 + d bits, and the quotient is more than 2^-(p + 1 + d) of
itself away from m. 2.5 ULP are at most 2.5 * 2^-23 of it, less than 2^-21: with p + 1 + d up to 21 no midpoint is ever crossed.

Otherwise one is, and only one: midpoints lie further apart than 5 ULP. That is a step of the type. A quotient that does not saturate an
integer of b bits is below 2^b, whatever the zero point, so such a step is at most 2^(b - p); and where it is less than a step of y, one
midpoint of y is crossed at most. A quotient that is kept exact is rounded but once, to y.

Of float16s, all 2^20 pairs of significands have been tried (a test does): the midpoints that are crossed do not lie beside a midpoint of y
that has three bits or fewer, so 2-bit integers and float4 have no error.
"""

from __future__ import annotations

from typing import Final

from qgen.dtypes import DTYPES, DType
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Program
from qgen.ir.rewrite import walk_body
from qgen.numerics.library import is_conditional

_FLOAT16: Final = DTYPES["float16"]
_SAFE_BITS: Final = 21
_FEW_BITS: Final = 3


def fast_error(checked: Program, legal: Program) -> int:
    """Return the bound of `fast` for the results of a CHECKED program, in steps from one code of the first of them to the next.

    `legal` is what it became: where no quotient is a native one, there is no error.
    """
    if not any(_divides(function) for function in legal.functions if is_conditional(function.name)):
        return 0
    y = checked.outputs[0].dtype
    bodies = [node for kernel in checked.kernels for node in walk_body(kernel.body)]
    named = {stmt.name: stmt.value for kernel in checked.kernels for stmt in kernel.body if isinstance(stmt, ir.Let)}
    divisions = [node for node in bodies if isinstance(node, ir.Typed) and node.op is ir.Op.DIV]
    return max((_error(y, node, named) for node in divisions), default=0)


def _divides(function: Function) -> bool:
    return any(isinstance(node, ir.Binary) and node.op == "/" for node in walk_body(function.body))


def _error(y: DType, division: ir.Typed, named: dict[str, ir.Expr]) -> int:
    type_ = division.type
    if not isinstance(type_, DType):
        return 1
    if _bits(type_) + 1 + _significant_bits(division.args[1], named) <= _SAFE_BITS:
        return 0
    if type_ == _FLOAT16 and _midpoint_bits(y) <= _FEW_BITS:
        return 0
    if not y.is_integer:
        return 1
    return max(1, 1 << max(0, y.bits - _bits(type_)))


def _significant_bits(expr: ir.Expr, named: dict[str, ir.Expr]) -> int:
    """Return how many bits the significand of a value has at most."""
    match expr:
        case ir.Name(text, _) if text in named:
            return _significant_bits(named[text], named)
        case ir.Typed(ir.Op.CONVERT, (arg,), DType() as type_):
            return min(_bits(type_), _significant_bits(arg, named))
        case ir.Typed(_, _, DType() as type_) | ir.Read(_, DType() as type_):
            return _bits(type_)
        case _:
            return _SAFE_BITS


def _midpoint_bits(y: DType) -> int:
    """Return how many bits there are between the first and the last one of a midpoint between two codes."""
    return y.bits + 1 if y.is_integer else y.mantissa_bits + 2


def _bits(dtype: DType) -> int:
    return dtype.bits if dtype.format is None else dtype.mantissa_bits + 1
