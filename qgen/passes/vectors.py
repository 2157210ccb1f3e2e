"""Codes of elements out of whole words and back, four at a time.

Eight bits apart are `unpack4xU8`; narrower codes are spread to eight bits first, by a mask: of the word 0x76543210, `word & 0x0f0f0f0f` has
the even nibbles, 0, 2, 4 and 6, a byte each, and `(word >> 4) & 0x0f0f0f0f` the odd ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qgen.dtypes import WORD_BITS, DType
from qgen.ir import nodes as ir
from qgen.ir.types import LANES, Scalar, Vector
from qgen.passes.words import binary, u32

_U32X4 = Vector(Scalar.U32)
_BYTES = 0x01010101


def codes_of_words(dtype: DType, words: Sequence[ir.Expr], fresh: Callable[[], str]) -> tuple[list[ir.Stmt], list[ir.Expr]]:
    """Return what to name first, and the codes of all elements of `words`, in vectors of four."""
    if dtype.bits >= 16:
        parts = [part for word in words for part in _halves(word)] if dtype.bits == 16 else list(words)
        return [], [_vector(parts[start : start + LANES]) for start in range(0, len(parts), LANES)]
    if dtype.bits == 8:
        return [], [_bytes(word) for word in words]
    stmts: list[ir.Stmt] = []
    quads: list[ir.Expr] = []
    for word in words:
        spread: list[ir.Expr] = []
        for part in range(8 // dtype.bits):
            vector = ir.Name(fresh(), _U32X4)
            shifted = word if part == 0 else binary(">>", word, u32(dtype.bits * part))
            stmts.append(ir.Let(vector.name, _bytes(binary("&", shifted, u32(dtype.mask * _BYTES)))))
            spread.append(vector)
        codes = [ir.Component(vector, number, Scalar.U32) for number in range(LANES) for vector in spread]
        quads += [ir.Compose(tuple(codes[start : start + LANES]), _U32X4) for start in range(0, len(codes), LANES)]
    return stmts, quads


def words_of_codes(dtype: DType, quads: Sequence[ir.Expr]) -> list[ir.Expr]:
    """Return the words of codes that come in vectors of four: whole ones, or a part of one."""
    codes = [ir.Component(quad, number, Scalar.U32) for quad in quads for number in range(LANES)]
    each = min(WORD_BITS // dtype.bits, len(codes))
    words: list[ir.Expr] = []
    for start in range(0, len(codes), each):
        word: ir.Expr = codes[start]
        for number in range(1, each):
            word = binary("|", word, binary("<<", codes[start + number], u32(dtype.bits * number)))
        words.append(word)
    return words


def _bytes(word: ir.Expr) -> ir.Expr:
    return ir.Builtin("unpack4xU8", (word,), _U32X4)


def _halves(word: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    return binary("&", word, u32(0xFFFF)), binary(">>", word, u32(16))


def _vector(parts: Sequence[ir.Expr]) -> ir.Expr:
    """Return four values as a vector: the one that they are the parts of, where they are."""
    first = parts[0]
    if isinstance(first, ir.Component) and list(parts) == [ir.Component(first.operand, number, first.type) for number in range(LANES)]:
        return first.operand
    return ir.Compose(tuple(parts), _U32X4)
