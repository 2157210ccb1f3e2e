"""Where the bits of an element lie in the words of its tensor, as expressions and statements of the LEGAL stage.

A layout has `elements` in `words`; where that is one word an element never straddles two. Elsewhere (6 bits: 16 in 3 words) it may, and is
put together from two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from qgen.dtypes import WORD_BITS, DType
from qgen.ir import nodes as ir
from qgen.ir.types import Scalar

TRUE: Final = ir.Literal(value=True, type=Scalar.BOOL)


def u32(value: int) -> ir.Expr:
    """Return a u32 literal."""
    return ir.Literal(value, Scalar.U32)


def name(text: str) -> ir.Expr:
    """Return a name of type u32."""
    return ir.Name(text, Scalar.U32)


def binary(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    """Return an operation on u32."""
    return ir.Binary(op, lhs, rhs, Scalar.U32)


def minimum(lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    """Return the lesser of two u32."""
    return ir.Builtin("min", (lhs, rhs), Scalar.U32)


def all_of(terms: Sequence[ir.Expr]) -> ir.Expr:
    """Return whether all conditions hold; there is one at least."""
    result = terms[0]
    for term in terms[1:]:
        result = ir.Binary("&&", result, term, Scalar.BOOL)
    return result


def at_word(piece: ir.Expr, each: int, number: int) -> ir.Expr:
    """Return the index of word (or vector) `number` of a piece that has `each` of them."""
    return binary("+", binary("*", u32(each), piece), u32(number))


def let(target: ir.Expr, value: ir.Expr) -> ir.Stmt:
    """Return the statement that names a value."""
    if not isinstance(target, ir.Name):
        raise TypeError(target)
    return ir.Let(target.name, value)


def bit_offset(dtype: DType, index: ir.Expr) -> ir.Expr:
    """Return the bit at which element `index` begins, counted from the start of its period."""
    return binary("*", u32(dtype.bits), binary("%", index, u32(dtype.layout.elements)))


def load_code(buffer: str, dtype: DType, index: ir.Expr, fresh: Callable[[str], str]) -> tuple[list[ir.Stmt], ir.Expr]:
    """Return what to name first, and the code of element `index`; reads no word that has none of the element's bits."""
    layout = dtype.layout
    if layout.elements == 1:
        return [], ir.Load(buffer, index)
    if layout.words == 1:
        word = ir.Load(buffer, binary("/", index, u32(layout.elements)))
        return [], code_of_word(dtype, word, index)
    bit, at = fresh(f"{buffer}_bit"), fresh(f"{buffer}_at")
    first = binary("+", binary("*", binary("/", index, u32(layout.elements)), u32(layout.words)), binary("/", name(bit), u32(WORD_BITS)))
    shift = binary("%", name(bit), u32(WORD_BITS))
    straddles = ir.Convert(ir.Binary(">", shift, u32(WORD_BITS - dtype.bits), Scalar.BOOL), Scalar.U32)
    low = binary(">>", ir.Load(buffer, name(at)), shift)
    # Where the element ends in its first word, that word is loaded twice: the second time its bits lie above the mask, or are the same.
    high = binary(
        "<<", ir.Load(buffer, binary("+", name(at), straddles)), binary("&", binary("-", u32(WORD_BITS), shift), u32(WORD_BITS - 1))
    )
    return [ir.Let(bit, bit_offset(dtype, index)), ir.Let(at, first)], binary("&", binary("|", low, high), u32(dtype.mask))


def code_of_word(dtype: DType, word: ir.Expr, index: ir.Expr) -> ir.Expr:
    """Return the code of element `index`, given the word that holds it."""
    return binary("&", binary(">>", word, bit_offset(dtype, index)), u32(dtype.mask))
