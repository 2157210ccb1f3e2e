"""Stores of codes that straddle words: 6-bit ones, of which 16 lie in 3 words."""

from __future__ import annotations

from collections.abc import Sequence

from qgen.dtypes import WORD_BITS
from qgen.ir import nodes as ir
from qgen.ir.program import Operand
from qgen.ir.types import Scalar
from qgen.passes.words import binary, bit_offset, minimum, name, u32


def store_straddling(
    operand: Operand, each: tuple[ir.Stmt, ...], value: ir.Expr, elements: tuple[ir.Expr, ir.Expr], names: Sequence[str]
) -> ir.Stmt:
    """Return the words of one period, each from all elements that have bits in it; one that straddles two is computed for both.

    `value` is that of the element whose index has the last of `names`; those before it are for a word's number, the word, its first bit, an
    element's first bit and its code.
    """
    dtype, layout, (start, end) = operand.dtype, operand.dtype.layout, elements
    number, word, bit, offset, code, index = names
    nbits = binary("*", u32(dtype.bits), binary("-", end, start))
    words = binary("/", binary("+", nbits, u32(WORD_BITS - 1)), u32(WORD_BITS))
    first = binary("+", start, binary("/", name(bit), u32(dtype.bits)))
    past = binary("+", start, binary("/", binary("+", name(bit), u32(WORD_BITS + dtype.bits - 1)), u32(dtype.bits)))
    up = binary("&", binary("-", name(offset), name(bit)), u32(WORD_BITS - 1))
    down = binary("&", binary("-", name(bit), name(offset)), u32(WORD_BITS - 1))
    begins_here = ir.Binary(">=", name(offset), name(bit), Scalar.BOOL)
    placed = ir.Select(begins_here, binary("<<", name(code), up), binary(">>", name(code), down), Scalar.U32)
    inner = (
        *each,
        ir.Let(code, value),
        ir.Let(offset, bit_offset(dtype, name(index))),
        ir.Assign(word, binary("|", name(word), placed)),
    )
    at = binary("+", binary("*", binary("/", start, u32(layout.elements)), u32(layout.words)), name(number))
    body = (
        ir.Let(bit, binary("*", u32(WORD_BITS), name(number))),
        ir.Var(word, u32(0)),
        ir.For(index, first, minimum(past, end), u32(1), inner),
        ir.Store(operand.name, at, name(word)),
    )
    return ir.For(number, u32(0), words, u32(1), body)
