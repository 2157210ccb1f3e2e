"""The deliberate faults: what each is, which kernel has it, and how it is made."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgen.ir import nodes as ir
from qgen.ir.types import Scalar
from qgen.request import Request, make_request
from qgen.shapes import Blocked, PerAxis, PerTensor
from tests.worst.broken import Rewrite, Text

QUANTIZE = "QuantizeLinear"
ELEMENTS = (40_000,)
"""Elements that each have a scale and a zero point of their own."""
ROUND = (64, 64)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a kind in the kernel of `op` and `choices`; uniformly random inputs that hide it have `shape`."""

    kind: str
    title: str
    made_by: Text | Rewrite
    op: str
    choices: dict[str, Any]
    shape: tuple[int, ...]

    def request(self) -> Request:
        """Return the request of its kernel, in the mode `strict` where it does not say otherwise."""
        choices: dict[str, Any] = {"numerics": "strict"} | self.choices
        return make_request(self.op, **choices)


def u32(value: int) -> ir.Literal:
    return ir.Literal(value, Scalar.U32)


def binary(op: str, lhs: ir.Expr, rhs: ir.Expr) -> ir.Expr:
    return ir.Binary(op, lhs, rhs, Scalar.U32)


def unguarded(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary(">=", ir.Name("unit"), limit, Scalar.BOOL):
            return ir.Binary(">", ir.Name("unit", Scalar.U32), limit, Scalar.BOOL)
        case _:
            return expr


def without_tail(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Builtin("min", (ir.Binary("+", ir.Name("first"), _, _) as end, _), _):
            return end
        case _:
            return expr


def floor_blocks(expr: ir.Expr) -> ir.Expr:
    """Count the blocks along the axis as if all were whole."""
    return binary("/", ir.Uniform("axis"), u32(3)) if expr == ir.Uniform("blocks") else expr


def unwrapped_axis(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary("%", row, ir.Uniform("axis"), _):
            return row
        case _:
            return expr


def short_row(expr: ir.Expr) -> ir.Expr:
    """One invocation less in a row of the dispatch."""
    match expr:
        case ir.Binary("*", ir.Uniform("groups_x"), ir.Literal(), _):
            return binary("-", expr, u32(1))
        case _:
            return expr


def long_row(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary("*", ir.Uniform("groups_x"), ir.Literal(), _):
            return binary("+", expr, u32(1))
        case _:
            return expr


def in_tail(change: ir.Expr, expr: ir.Expr, period: int) -> ir.Expr:
    """Return `change` for the elements of the last, incomplete period, else `expr`."""
    start = binary("*", binary("/", ir.Uniform("n"), u32(period)), u32(period))
    return ir.Select(ir.Binary(">=", ir.Name("i", Scalar.U32), start, Scalar.BOOL), change, expr, Scalar.U32)


def swapped_nibbles(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary("*", ir.Literal(4), ir.Binary("%", ir.Name("i"), ir.Literal(8), _), _):
            return in_tail(binary("^", expr, u32(4)), expr, 8)
        case _:
            return expr


def last_whole_word(index: ir.Expr) -> ir.Expr:
    """Store the elements of an incomplete word to the last whole word, which another invocation stores."""
    return ir.Builtin("min", (index, binary("-", binary("/", ir.Uniform("n"), u32(4)), u32(1))), Scalar.U32)


def few_words(expr: ir.Expr) -> ir.Expr:
    """Count the words of an incomplete period of 6-bit codes without the one that its last code straddles into."""
    match expr:
        case ir.Binary("/", ir.Binary("+", ir.Binary("*", ir.Literal(6), count, _), ir.Literal(31), _), ir.Literal(32), _):
            return binary("/", binary("+", binary("*", u32(6), count), u32(26)), u32(32))
        case _:
            return expr


def last_failed(expr: ir.Expr) -> ir.Expr:
    """Forget what failed before the last four elements."""
    match expr:
        case ir.Binary("|", ir.Name("failed"), test, _):
            return test
        case _:
            return expr


def late_axis(expr: ir.Expr) -> ir.Expr:
    """Begin the axis again one element late."""
    match expr:
        case ir.Builtin("min", (ir.Binary("-", ir.Uniform("axis") as axis, place, _), ir.Name("axis_near") as near), _):
            return ir.Builtin("min", (binary("-", binary("+", axis, u32(1)), place), near), Scalar.U32)
        case _:
            return expr


def small_inverse(expr: ir.Expr) -> ir.Expr:
    """Round the inverse of an extent down."""
    match expr:
        case ir.Binary("/", ir.Binary("+", near, ir.Literal(0xFFFF), _), ir.Name("axis_near"), _):
            return binary("/", u32(0xFFFF), near)
        case _:
            return expr


def any_columns(expr: ir.Expr) -> ir.Expr:
    """Walk down rows that are not whole pieces."""
    match expr:
        case ir.Builtin("min", (ir.Binary("&", ir.Uniform("axis"), _, _), ir.Literal() as piece), _):
            return piece
        case _:
            return expr


def long_span(expr: ir.Expr) -> ir.Expr:
    """Take the piece in which a group ends for one of that group."""
    match expr:
        case ir.Builtin("max", (ir.Binary("/", left, piece, _), ir.Literal(1) as one), _):
            return ir.Builtin("max", (binary("/", binary("+", left, binary("-", piece, one)), piece), one), Scalar.U32)
        case _:
            return expr


def any_rows(expr: ir.Expr) -> ir.Expr:
    """Walk down rows of which there are not enough."""
    match expr:
        case ir.Binary("==", ir.Binary("%", ir.Binary("/", ir.Uniform("n"), ir.Uniform("axis"), _), _, _), _, Scalar.BOOL):
            return ir.Literal(value=True, type=Scalar.BOOL)
        case _:
            return expr


def _place(kind: str, title: str, made_by: Rewrite, shape: tuple[int, ...], *, op: str = QUANTIZE, **choices: object) -> Fault:
    return Fault(kind, title, made_by, op, {"x": "float32", "y": "uint8", "zero_point": True, "granularity": PerTensor()} | choices, shape)


WALKING: dict[str, Any] = {"op": "DequantizeLinear", "x": "uint8", "y": "float32", "granularity": PerAxis(1), "numerics": "exact"}
"""A kernel that walks down rows, which `exact` kernels of short texts do where uniforms say that it may."""


def _texts() -> Iterator[Fault]:
    for entry in tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))["fault"]:
        made_by = Text(entry["file"], entry["old"], entry["new"])
        yield Fault(entry["kind"], entry["title"], made_by, entry["op"], {"granularity": PerAxis(0)} | entry["kernel"], ELEMENTS)


FEW_ROWS = "webgpu:max_workgroups_per_dimension=3"
FAULTS = (
    *_texts(),
    _place("fallback", "the last four elements decide for all", Rewrite(last_failed), ROUND, y="int8", numerics="exact"),
    _place("guard", "one invocation too many", Rewrite(unguarded), ROUND),
    _place("tail", "the last invocation computes all its elements", Rewrite(without_tail), ROUND),
    _place("nibbles", "swapped in the last word", Rewrite(swapped_nibbles), ROUND, y="uint4"),
    _place("race", "a word of two invocations", Rewrite(stored_at=last_whole_word), ROUND),
    _place("6 bits", "a word too few for the last codes", Rewrite(few_words), ROUND, y="float6e2m3", zero_point=False),
    _place("group", "incomplete blocks not counted", Rewrite(floor_blocks), (64, 66), granularity=Blocked(-1, 3)),
    _place("group", "the axis does not begin again", Rewrite(unwrapped_axis), (1, 4096), granularity=PerAxis(1)),
    _place("step", "the axis begins again too late", Rewrite(late_axis), (1, 4096), granularity=PerAxis(1), numerics="exact"),
    _place("step", "an inverse rounded down", Rewrite(small_inverse), (1, 4096), granularity=PerAxis(1), numerics="exact"),
    _place("step", "a span too long", Rewrite(long_span), (1, 2, 4096), granularity=PerAxis(1), numerics="exact"),
    _place("walk", "columns that are not whole", Rewrite(any_columns), (30, 90), **WALKING),
    _place("walk", "rows that are too few", Rewrite(any_rows), (30, 3, 45), **WALKING),
    _place("fold", "a row of the dispatch too short", Rewrite(short_row), (500,), target=FEW_ROWS),
    _place("fold", "a row of the dispatch too long", Rewrite(long_row), (500,), target=FEW_ROWS),
)
