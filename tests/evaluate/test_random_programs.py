"""Random kernels, run in lockstep and one invocation after the other: masks, narrow frames, loops, calls and returns must not show."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qgen.evaluate import compile_stmt, evaluate_function, evaluate_kernel
from qgen.ir.nodes import (
    Assign,
    Binary,
    Bitcast,
    Builtin,
    Call,
    Construct,
    Convert,
    Expr,
    Field,
    For,
    If,
    Invocation,
    Let,
    Literal,
    Load,
    Name,
    Require,
    Return,
    Select,
    Stmt,
    Store,
    Unary,
    Uniform,
    Var,
)
from qgen.ir.program import Function
from qgen.ir.types import Machine, Scalar, Struct
from tests.evaluate.build import BOOL, I32, U32, function, program, u
from tests.evaluate.scalar import Run

PAIR = Struct("Pair", (("low", U32), ("high", I32)))
WORDS = 8
Names = dict[str, Machine]


class Maker:
    """Makes texts that do not trap, from a seed; every value that steers is small, so that lanes part and meet."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions: list[Function] = []
        self.count = 0
        self.in_kernel = False

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def expr(self, type_: Scalar, names: Names, depth: int) -> Expr:
        """Return an expression of a type."""
        pick = self.random.random()
        if depth == 0 or pick < 0.2:
            return self.leaf(type_, names)
        if pick < 0.3:
            then, otherwise = self.expr(type_, names, depth - 1), self.expr(type_, names, depth - 1)
            return Select(self.expr(BOOL, names, depth - 1), then, otherwise, type_)
        if pick < 0.4 and self.functions and type_ is not BOOL:
            callee = self.random.choice(self.functions)
            args = tuple(self.expr(U32, names, depth - 1) for _ in callee.params)
            return Field(Call(callee.name, args, PAIR), "low" if type_ is U32 else "high", type_)
        if type_ is BOOL:
            return self.condition(names, depth)
        if pick < 0.5:
            source = self.random.choice([U32, I32])
            operand = self.expr(source, names, depth - 1)
            return Convert(operand, type_) if self.random.random() < 0.5 else Bitcast(operand, type_)
        if pick < 0.6:
            title = self.random.choice(["abs", "countLeadingZeros", "countTrailingZeros", "countOneBits", "firstLeadingBit"])
            return Builtin(title, (self.expr(type_, names, depth - 1),), type_)
        lhs, rhs = self.expr(type_, names, depth - 1), self.expr(type_, names, depth - 1)
        if pick < 0.7:
            count = Binary("&", self.expr(U32, names, depth - 1), u(31), U32)
            return Binary(self.random.choice(["<<", ">>"]), lhs, count, type_)
        if pick < 0.8:
            return Binary(self.random.choice("/%"), lhs, Binary("|", rhs, Literal(1, type_), type_), type_)
        return Binary(self.random.choice("+-*&|^"), lhs, rhs, type_)

    def condition(self, names: Names, depth: int) -> Expr:
        """Return a bool; most compare a small remainder of a value."""
        if self.random.random() < 0.2:
            return Unary("!", self.expr(BOOL, names, depth - 1), BOOL)
        modulus = self.random.choice([2, 3, 5, 40])
        small = Binary("%", self.expr(U32, names, depth - 1), u(modulus), U32)
        return Binary(self.random.choice(["==", "!=", "<", ">="]), small, u(self.random.randrange(modulus)), BOOL)

    def leaf(self, type_: Scalar, names: Names) -> Expr:
        known = [key for key, its in names.items() if its is type_]
        if known and self.random.random() < 0.7:
            return Name(self.random.choice(known), type_)
        if type_ is BOOL:
            return Literal(self.random.random() < 0.5, BOOL)
        if self.in_kernel and type_ is U32 and self.random.random() < 0.6:
            given: list[Expr] = [Invocation("x"), Invocation("y"), Uniform("n")]
            return self.random.choice([*given, Load("x", Binary("%", self.random.choice(given), u(WORDS), U32))])
        return Literal(self.random.choice([0, 1, 2, 5, 31, 1 << 20, (1 << 31) - 1]), type_)

    def block(self, names: Names, variables: list[str], depth: int, last: Return | None) -> tuple[Stmt, ...]:
        """Return a block that sees `names` and may set `variables`; `last` is how it may leave early."""
        names, variables = dict(names), list(variables)
        body: list[Stmt] = []
        for _ in range(self.random.randint(1, 4)):
            pick = self.random.random()
            if pick < 0.3:
                type_ = self.random.choice([U32, I32, BOOL])
                body.append(Let(title := self.fresh(), self.expr(type_, names, 3)))
                names[title] = type_
            elif pick < 0.4 and self.in_kernel:
                body.append(Var(title := self.fresh(), self.expr(U32, names, 2)))
                names[title] = U32
                variables.append(title)
            elif pick < 0.6 and variables:
                body.append(Assign(self.random.choice(variables), self.expr(U32, names, 3)))
            elif pick < 0.8 and depth:
                condition = self.expr(BOOL, names, 2)
                body.append(If(condition, self.block(names, variables, depth - 1, last), self.block(names, variables, depth - 1, last)))
            elif pick < 0.9 and depth and self.in_kernel:
                index = self.fresh()
                stop = Binary("%", self.expr(U32, names, 2), u(6), U32)
                inner = self.block({**names, index: U32}, variables, depth - 1, last)
                body.append(For(index, u(self.random.randrange(3)), stop, u(self.random.randint(1, 2)), inner))
            elif pick < 0.93 and not self.in_kernel:
                body.append(Require(self.expr(BOOL, names, 2)))
        if last is not None and self.random.random() < 0.3:
            value = None if self.in_kernel else self.pair(names)
            body.append(If(self.expr(BOOL, names, 2), (Return(value),)) if self.random.random() < 0.7 else Return(value))
        return tuple(body)

    def pair(self, names: Names) -> Expr:
        return Construct((self.expr(U32, names, 2), self.expr(I32, names, 2)), PAIR)

    def function(self) -> Function:
        """Return a function that may call those made before."""
        params: Names = {self.fresh(): U32 for _ in range(2)}
        body = (*self.block(params, [], 2, Return(None)), Return(self.pair(params)))
        made = function(f"f{len(self.functions)}", params, PAIR, *body)
        self.functions.append(made)
        return made

    def kernel(self) -> tuple[Stmt, ...]:
        """Return an entry point that stores two words of its own."""
        self.in_kernel = True
        row = Binary("*", Invocation("y"), Uniform("width"), U32)
        first = Binary("*", Binary("+", row, Invocation("x"), U32), u(2), U32)
        second = Binary("+", first, u(1), U32)
        result = self.fresh()
        return (
            Store("y", second, u(1)),
            Var(result, u(3)),
            *self.block({result: U32}, [result], 3, None),
            Store("y", first, Name(result, U32)),
            *self.block({result: U32}, [result], 3, Return(None)),
            Store("y", second, Name(result, U32)),
        )


@pytest.fixture(params=["as it is", "narrow always"])
def _narrowing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "narrow always":
        monkeypatch.setattr(compile_stmt, "NARROW_LANES", 2)
        monkeypatch.setattr(compile_stmt, "NARROW_WEIGHT", 0)
        monkeypatch.setattr(compile_stmt, "NARROW_SHARE", 1)


@pytest.mark.usefixtures("_narrowing")
@pytest.mark.parametrize("seed", range(60))
def test_kernel_is_as_its_invocations_one_by_one(seed: int) -> None:
    maker = Maker(seed)
    functions = tuple(maker.function() for _ in range(2))
    body = maker.kernel()
    x = np.random.default_rng(seed).integers(0, 1 << 32, WORDS, dtype=np.uint64).astype(np.uint32)
    uniforms = {"n": seed, "width": 24}
    of = program(*body, functions=functions, uniforms=("n", "width"), workgroup=8)
    got = evaluate_kernel(of, of.kernels[0], {"x": x, "y": np.zeros(96, np.uint32)}, uniforms, (3, 2, 1))["y"].tolist()
    scalar = Run({each.name: each for each in functions}, {"x": dict(enumerate(x.tolist())), "y": {}}, uniforms)
    for lane in range(48):
        scalar.invoke(body, lane % 24, lane // 24)
    assert got == [scalar.buffers["y"][index] for index in range(96)]


@pytest.mark.usefixtures("_narrowing")
@pytest.mark.parametrize("seed", range(60))
def test_function_is_as_its_calls_one_by_one(seed: int) -> None:
    maker = Maker(1000 + seed)
    functions = [maker.function() for _ in range(3)]
    rng = np.random.default_rng(seed)
    args = [rng.integers(0, 12 if seed % 2 else 1 << 32, 50, dtype=np.uint64).astype(np.uint32) for _ in range(2)]
    result = evaluate_function(functions[-1], functions, args)
    assert isinstance(result.value, dict)
    for lane, (a, b) in enumerate(zip(*(arg.tolist() for arg in args), strict=True)):
        scalar = Run({each.name: each for each in functions})
        expected = scalar.call(functions[-1], [a, b])
        assert (result.value["low"][lane], result.value["high"][lane]) == expected
        assert result.held[lane] == scalar.held
