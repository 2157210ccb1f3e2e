"""CHECKED programs of the two operators, built by hand from a signature: a second reading of SEMANTICS 1.2 and 1.3 beside the formulas."""

from __future__ import annotations

from qgen.dtypes import DTYPES, DType, Exact
from qgen.ir.nodes import Expr, Let, Name, Op, Read, Stmt, Typed, Write
from qgen.ir.program import Kernel, Operand, Program, Stage
from qgen.ir.types import Int
from qgen.signatures import Signature

FLOAT32 = DTYPES["float32"]
ROUNDED = Int(-(1 << 18), 1 << 18)
"""What the machine keeps of a rounded quotient: more than any integer type and its zero point reach, so clamping there is not seen."""


def build_program(signature: Signature) -> Program:
    """Return the CHECKED program of a signature; a zero point of float8 is never read (SEMANTICS 2.1, rows 11 and 13)."""
    prefix, build = ("y", _quantize) if signature.is_quantize else ("x", _dequantize)
    quantized = signature.y if signature.is_quantize else signature.x
    zero_point = (
        (Operand(f"{prefix}_zero_point", quantized, per_group=True, is_ignored=quantized.is_float8),) if signature.zero_point else ()
    )
    operands = (
        Operand("x", signature.x),
        Operand(f"{prefix}_scale", signature.scale, per_group=True),
        *zero_point,
        Operand("y", signature.y, is_output=True),
    )
    return Program(signature.op, Stage.CHECKED, operands, (Kernel(signature.op, build(signature)),))


def _quantize(signature: Signature) -> tuple[Stmt, ...]:
    division = signature.division
    assert division is not None
    x, scale, y = Read("x", signature.x), Read("y_scale", signature.scale), signature.y
    quotient = Typed(Op.DIV, (_convert(x, division), _convert(scale, division)), division)
    q = Name("q", division)
    zero_point = Read("y_zero_point", y) if signature.zero_point else None
    result: Expr
    if y.is_integer:
        result = Typed(Op.ROUND_EVEN, (q,), ROUNDED)
        if zero_point:
            shift = Typed(Op.CONVERT, (zero_point,), Int(y.min, y.max))
            result = Typed(Op.ADD, (result, shift), Int(ROUNDED.lo + y.min, ROUNDED.hi + y.max))
        result = Typed(Op.SATURATE, (result,), y)
    elif y.is_float8:
        result = Typed(Op.SATURATE if signature.saturate else Op.CONVERT, (_convert(q, FLOAT32),), y)
    else:
        wide = _convert(q, FLOAT32)
        result = Typed(Op.SATURATE, (Typed(Op.ADD, (wide, _convert(zero_point, FLOAT32)), FLOAT32) if zero_point else wide,), y)
    return (Let("q", quotient), Write("y", result))


def _dequantize(signature: Signature) -> tuple[Stmt, ...]:
    x, scale = Read("x", signature.x), Read("x_scale", signature.scale)
    zero_point = Read("x_zero_point", signature.x) if signature.zero_point else None
    centred: Expr
    if signature.x.is_integer:
        low, high = signature.x.min, signature.x.max
        interval = Int(low, high)
        centred = Typed(Op.CONVERT, (x,), interval)
        if zero_point:
            difference = Int(low - high, high - low)
            centred = Typed(Op.SUB, (centred, Typed(Op.CONVERT, (zero_point,), interval)), difference)
            centred = centred if difference.within(Int.of_bits(32)) else Typed(Op.WRAP, (centred,), Int.of_bits(32))
        centred = Typed(Op.CONVERT, (centred,), FLOAT32)
    else:
        centred = _convert(x, FLOAT32)
        if zero_point and not signature.x.is_float8:
            centred = Typed(Op.SUB, (centred, _convert(zero_point, FLOAT32)), FLOAT32)
    product = Typed(Op.MUL, (centred, _convert(scale, FLOAT32)), FLOAT32)
    return (Write("y", _convert(product, signature.y)),)


def _convert(value: Read | Name | Typed, to: DType | Exact) -> Expr:
    """Return `value as to`, which is the value itself where it has that type; an integer is a number of Z first."""
    if value.type == to:
        return value
    of = value.type
    number = Typed(Op.CONVERT, (value,), Int(of.min, of.max)) if isinstance(of, DType) and of.is_integer else value
    return Typed(Op.CONVERT, (number,), to)
