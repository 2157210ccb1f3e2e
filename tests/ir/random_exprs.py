"""Random expressions of the LEGAL stage over given names, without anything that a compiler could evaluate to an error."""

from __future__ import annotations

import random

from qgen.ir import nodes as ir
from qgen.ir.types import Scalar
from tests.ir.every_node import BOOL, F32, I32, PAIR, U32

NAMES: dict[Scalar, tuple[str, ...]] = {BOOL: ("p", "q"), U32: ("a", "b"), I32: ("m", "n"), F32: ("f", "g")}
_ARITHMETIC = ("+", "-", "*", "/", "%")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def random_expr(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    """Return an expression of `type_`; a literal stands only on the right of an operator, and is neither zero nor beyond 31."""
    if depth == 0:
        return ir.Name(rng.choice(NAMES[type_]), type_)
    makers = {
        BOOL: (_logic, _comparison, _negation),
        U32: (*_INTEGER, _word, _member),
        I32: _INTEGER,
        F32: (_arithmetic, _minus, _function, _convert),
    }
    return rng.choice((*makers[type_], _select))(rng, type_, depth - 1)


def _right(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    if rng.random() < 0.2:
        value = rng.randint(1, 31)
        return ir.Literal(float(value) / 4 if type_ is F32 else value, type_)
    return random_expr(rng, type_, depth)


def _arithmetic(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Binary(
        rng.choice(_ARITHMETIC[:4] if type_ is F32 else _ARITHMETIC), random_expr(rng, type_, depth), _right(rng, type_, depth), type_
    )


def _bits(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Binary(rng.choice("&|^"), random_expr(rng, type_, depth), _right(rng, type_, depth), type_)


def _shift(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Binary(rng.choice(("<<", ">>")), random_expr(rng, type_, depth), _right(rng, U32, depth), type_)


def _minus(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Unary("~" if type_ is U32 else "-", random_expr(rng, type_, depth), type_)


def _function(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    name, count = rng.choice((("min", 2), ("max", 2), ("abs", 1)))
    return ir.Builtin(name, tuple(random_expr(rng, type_, depth) for _ in range(count)), type_)


def _convert(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    source = rng.choice([other for other in (U32, I32, F32) if other is not type_])
    operand = random_expr(rng, source, depth)
    return ir.Bitcast(operand, type_) if rng.random() < 0.3 else ir.Convert(operand, type_)


def _word(rng: random.Random, _type: Scalar, depth: int) -> ir.Expr:
    return rng.choice((ir.Load("x", random_expr(rng, U32, depth)), ir.Uniform("count"), ir.Invocation(rng.choice("xy"))))


def _member(rng: random.Random, _type: Scalar, depth: int) -> ir.Expr:
    pair = ir.Construct((random_expr(rng, U32, depth), random_expr(rng, F32, depth)), PAIR)
    return ir.Call("code_of", (pair,), U32) if rng.random() < 0.5 else ir.Field(pair, "code", U32)


def _logic(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Binary(rng.choice(("&&", "||")), random_expr(rng, BOOL, depth), random_expr(rng, BOOL, depth), type_)


def _comparison(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    operands = rng.choice((U32, I32, F32))
    return ir.Binary(rng.choice(_COMPARISONS), random_expr(rng, operands, depth), _right(rng, operands, depth), type_)


def _negation(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Unary("!", random_expr(rng, BOOL, depth), type_)


def _select(rng: random.Random, type_: Scalar, depth: int) -> ir.Expr:
    return ir.Select(random_expr(rng, BOOL, depth), random_expr(rng, type_, depth), random_expr(rng, type_, depth), type_)


_INTEGER = (_arithmetic, _bits, _shift, _minus, _function, _convert)
