"""The verifier refuses each kind of bad program, says which pass made it, and prints the IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from qgen.dtypes import DTYPES
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.print import print_program
from qgen.ir.program import Function, Kernel, Operand, Param, Program, Stage
from qgen.ir.types import Int, Scalar, Vector
from qgen.ir.verify import verify
from tests.ir.every_node import (
    BOOL,
    CALLS,
    CHECKED,
    F32,
    FLOAT32,
    I32,
    LEGAL,
    MAKE,
    PAIR,
    PROGRAMS,
    QUOTIENT,
    REALISED,
    U32,
    U32X4,
    UINT8,
    name,
    u,
)

TRUE = ir.Literal(value=True, type=BOOL)


def legal(*body: ir.Stmt, functions: tuple[Function, ...] = ()) -> Program:
    return replace(LEGAL, kernels=(Kernel("main", body, 64),), functions=functions)


def legal_expr(value: ir.Expr) -> Program:
    """Return a program that names an expression, where every name of the machine types is defined."""
    values: dict[str, ir.Expr] = {"a": u(1), "m": ir.Literal(1, I32), "f": ir.Literal(1.0, F32), "p": TRUE}
    return legal(
        *(ir.Let(key, each) for key, each in values.items()),
        ir.Let("pair", ir.Call("make", (u(1),), PAIR)),
        ir.Let("it", value),
        functions=(MAKE,),
    )


def checked(*body: ir.Stmt) -> Program:
    return replace(CHECKED, kernels=(Kernel("main", body),))


def realised(*body: ir.Stmt) -> Program:
    return replace(REALISED, kernels=(Kernel("main", body),))


def checked_expr(value: ir.Expr) -> Program:
    return checked(ir.Let("q", QUOTIENT), ir.Let("it", value))


def function(*body: ir.Stmt, stage: Stage = Stage.LEGAL, result: Scalar = U32) -> Program:
    found = Function("f", (Param("x", U32),), result, body)
    kernels = (Kernel("main", (), 64),) if stage is Stage.LEGAL else ()
    return replace(LEGAL if stage is Stage.LEGAL else REALISED, kernels=kernels, functions=(found,))


def fragment(*body: ir.Stmt) -> Program:
    """Return a program of functions alone."""
    return replace(function(*body), kernels=())


A, M, F, P = name("a"), name("m", I32), name("f", F32), name("p", BOOL)
Q = ir.Name("q", FLOAT32)
CODE = ir.Typed(ir.Op.CONVERT, (Q,), UINT8)
BYTE = Int(0, 255)
V, W, T = ir.Compose((u(1),), U32X4), ir.Compose((ir.Literal(1.0, F32),), Vector(F32)), ir.Compose((P,), Vector(BOOL))
X = ir.Read("x", FLOAT32)

BAD: Mapping[str, tuple[Program, str]] = {
    "a load at CHECKED": (checked_expr(ir.Load("x", u(0))), "a Load may not stand here"),
    "a built-in at CHECKED": (checked_expr(ir.Builtin("abs", (u(1),), U32)), "a Builtin may not stand here"),
    "a loop at CHECKED": (checked(ir.For("i", u(0), u(1), u(1), ())), "a For may not stand here"),
    "a function at CHECKED": (replace(CHECKED, functions=(MAKE,)), "a checked program has no functions"),
    "an operation at REALISED": (realised(ir.Let("q", QUOTIENT)), "a Typed may not stand here"),
    "a store at REALISED": (realised(ir.Store("y", u(0), u(0))), "a Store may not stand here"),
    "a variable at REALISED": (realised(ir.Var("v", u(0))), "a Var may not stand here"),
    "a read at LEGAL": (legal_expr(ir.Read("x", U32)), "a Read may not stand here"),
    "a write at LEGAL": (legal(ir.Write("y", u(0))), "a Write may not stand here"),
    "a require at LEGAL": (function(ir.Require(TRUE), ir.Return(u(0))), "a Require may not stand here"),
    "a load in a function": (function(ir.Return(ir.Load("x", u(0)))), "a Load may not stand here"),
    "a load of another buffer in a fragment": (fragment(ir.Return(ir.Load("z", u(0)))), "types do not agree: z"),
    "a load of four words in a fragment": (fragment(ir.Return(ir.LoadVector("x", u(0)))), "a LoadVector may not stand here"),
    "a store in a fragment": (fragment(ir.Store("y", u(0), u(0)), ir.Return(u(0))), "a Store may not stand here"),
    "a uniform in a fragment": (fragment(ir.Return(ir.Uniform("row"))), "a Uniform may not stand here"),
    "a uniform in a function": (function(ir.Return(ir.Uniform("row"))), "a Uniform may not stand here"),
    "an invocation in a function": (function(ir.Return(ir.Invocation("x"))), "a Invocation may not stand here"),
    "a variable in a function": (function(ir.Var("v", u(0)), ir.Return(name("v"))), "a Var may not stand here"),
    "a read in a function": (function(ir.Return(ir.Read("x", U32)), stage=Stage.REALISED), "a Read may not stand here"),
    "an undefined name": (legal_expr(name("z")), "types do not agree: z"),
    "a name of another type": (legal_expr(name("a", I32)), "types do not agree: a"),
    "a name of an inner block": (legal(ir.If(TRUE, (ir.Let("b", u(1)),)), ir.Let("c", name("b"))), "types do not agree: b"),
    "a name defined twice": (legal(ir.Let("b", u(1)), ir.Let("b", u(1))), "`b` is defined twice"),
    "a parameter defined again": (function(ir.Let("x", u(1)), ir.Return(name("x"))), "`x` is defined twice"),
    "a name defined again in a block": (legal(ir.Let("b", u(1)), ir.If(TRUE, (ir.Var("b", u(1)),))), "`b` is defined twice"),
    "an assignment to a let": (legal(ir.Let("b", u(1)), ir.Assign("b", u(2))), "`b` is not a variable of this type"),
    "an assignment of another type": (legal(ir.Var("b", u(1)), ir.Assign("b", ir.Literal(2, I32))), "`b` is not a variable of this type"),
    "an assignment to an inner variable": (legal(ir.If(TRUE, (ir.Var("b", u(1)),)), ir.Assign("b", u(2))), "`b` is not a variable"),
    "a loop that hides a name": (legal(ir.Let("i", u(1)), ir.For("i", u(0), u(1), u(1), ())), "the loop over `i` hides a name"),
    "a loop that does not advance": (legal(ir.For("i", u(0), u(1), u(0), ())), "the loop over `i` hides a name or does not advance"),
    "a loop over integers with a sign": (legal(ir.For("i", ir.Literal(0, I32), u(1), u(1), ())), "0 is i32, wanted is u32"),
    "a loop assigned to": (legal(ir.For("i", u(0), u(1), u(1), (ir.Assign("i", u(2)),))), "`i` is not a variable"),
    "a condition of another type": (legal(ir.If(u(1), ())), "1u is u32, wanted is bool"),
    "a require of another type": (function(ir.Require(u(1)), ir.Return(u(0)), stage=Stage.REALISED), "1u is u32, wanted is bool"),
    "a result of another type": (function(ir.Return(ir.Literal(1, I32))), "1 is i32, wanted is u32"),
    "a function that returns nothing": (function(ir.Return(None)), "a function returns a value"),
    "an entry point that returns a value": (legal(ir.Return(u(1))), "1u is u32, wanted is nothing"),
    "two functions of one name": (replace(REALISED, functions=(*REALISED.functions, MAKE)), "two functions share a name"),
    "a function that is not there": (replace(REALISED, functions=(CALLS, MAKE)), "`calls` calls `partial`, which is not in the program"),
    "a function before its caller": (replace(REALISED, functions=REALISED.functions[::-1]), "stands after"),
    "a function that calls itself": (function(ir.Return(ir.Call("f", (name("x"),), U32))), "`f` stands after `f`, which it calls"),
    "a call of a function that is not there": (legal_expr(ir.Call("none", (), U32)), "types do not agree: none()"),
    "a call with another argument": (legal_expr(ir.Call("make", (M,), PAIR)), "types do not agree: make(m)"),
    "a call with one argument more": (legal_expr(ir.Call("make", (A, A), PAIR)), "types do not agree"),
    "a call of another type": (legal_expr(ir.Call("make", (A,), U32)), "types do not agree"),
    "an accumulation in what is not there": (checked(ir.Accumulate("none", X)), "`none` is not a result"),
    "an accumulation in a result": (checked(ir.Accumulate("y", X)), "`y` is not a scratch operand"),
    "an accumulation of another type": (checked(ir.Let("q", QUOTIENT), ir.Accumulate("top", CODE)), "is uint8, wanted is float32"),
    "an atomic operation on a result": (legal(ir.AtomicMax("y", u(0), u(0))), "`y` is not a scratch operand"),
    "an atomic operation of another type": (legal(ir.AtomicMax("top", u(0), ir.Literal(1, I32))), "1 is i32, wanted is u32"),
    "a reduction that is a sum": (checked_expr(ir.Reduce(ir.Op.ADD, X, FLOAT32)), "types do not agree"),
    "a reduction of another dtype": (checked_expr(ir.Reduce(ir.Op.MAX, CODE, FLOAT32)), "types do not agree"),
    "a comparison of two dtypes": (checked_expr(ir.Typed(ir.Op.EQUAL, (Q, CODE), BOOL)), "types do not agree: equal"),
    "a comparison that is a float": (checked_expr(ir.Typed(ir.Op.EQUAL, (Q, Q), FLOAT32)), "types do not agree: equal"),
    "whether two are NaN": (checked_expr(ir.Typed(ir.Op.IS_NAN, (Q, Q), BOOL)), "types do not agree: is_nan"),
    "a store to an input": (legal(ir.Store("x", u(0), u(0))), "`x` is not a result"),
    "a store to what is not there": (legal(ir.Store("none", u(0), u(0))), "`none` is not a result"),
    "a store of another type": (legal(ir.Store("y", u(0), ir.Literal(1, I32))), "1 is i32, wanted is u32"),
    "a store at another type": (legal(ir.Store("y", ir.Literal(1, I32), u(0))), "1 is i32, wanted is u32"),
    "a load of what is not there": (legal_expr(ir.Load("none", u(0))), "types do not agree: none[0u]"),
    "a load at another type": (legal_expr(ir.Load("x", M)), "types do not agree: x[m]"),
    "a uniform that is not there": (legal_expr(ir.Uniform("none")), "types do not agree"),
    "a component that is not there": (legal_expr(ir.Invocation("z")), "types do not agree"),
    "a write to an input": (checked(ir.Write("x", X)), "`x` is not a result"),
    "a write to what is not there": (checked(ir.Write("none", X)), "`none` is not a result"),
    "a write of another dtype": (checked(ir.Write("y", X)), "read x is float32, wanted is uint8"),
    "a write of a machine type": (realised(ir.Write("y", ir.Literal(1, I32))), "1 is i32, wanted is u32"),
    "a result written twice": (checked(*2 * (ir.Write("y", ir.Typed(ir.Op.SATURATE, (X,), UINT8)),)), "a result is written twice"),
    "a read of what is not there": (checked_expr(ir.Read("none", FLOAT32)), "types do not agree: read none"),
    "a read of another dtype": (checked_expr(ir.Read("x", UINT8)), "types do not agree: read x"),
    "a read of bits at CHECKED": (checked_expr(ir.Read("x", U32)), "types do not agree: read x"),
    "a read of a dtype at REALISED": (realised(ir.Let("q", X)), "types do not agree: read x"),
    "a sum of two dtypes": (checked_expr(ir.Typed(ir.Op.ADD, (Q, CODE), FLOAT32)), "types do not agree: add"),
    "a quotient of integers": (checked_expr(ir.Typed(ir.Op.DIV, 2 * (ir.Literal(1, BYTE),), BYTE)), "types do not agree: div"),
    "a quotient of one": (checked_expr(ir.Typed(ir.Op.DIV, (Q,), FLOAT32)), "types do not agree: div"),
    "a conversion of two": (checked_expr(ir.Typed(ir.Op.CONVERT, (Q, Q), UINT8)), "types do not agree: convert"),
    "a rounded integer": (checked_expr(ir.Typed(ir.Op.ROUND_EVEN, (ir.Literal(1, BYTE),), BYTE)), "types do not agree: round_even"),
    "a wrapped float": (checked_expr(ir.Typed(ir.Op.WRAP, (Q,), BYTE)), "types do not agree: wrap"),
    "an integer beyond its interval": (checked_expr(ir.Literal(256, BYTE)), "types do not agree: 256"),
    "a minus of u32": (legal_expr(ir.Unary("-", A, U32)), "types do not agree: -a"),
    "a complement of a float": (legal_expr(ir.Unary("~", F, F32)), "types do not agree: ~f"),
    "a negation of an integer": (legal_expr(ir.Unary("!", A, U32)), "types do not agree: !a"),
    "a minus of bool": (legal_expr(ir.Unary("-", P, BOOL)), "types do not agree: -p"),
    "a sum of two types": (legal_expr(ir.Binary("+", A, M, U32)), "types do not agree: a + m"),
    "a sum of another type": (legal_expr(ir.Binary("+", A, A, I32)), "types do not agree: a + a"),
    "a sum of bools": (legal_expr(ir.Binary("+", P, P, BOOL)), "types do not agree: p + p"),
    "a remainder of floats": (legal_expr(ir.Binary("%", F, F, F32)), "types do not agree: f % f"),
    "a shift by i32": (legal_expr(ir.Binary("<<", A, M, U32)), "types do not agree: a << m"),
    "a shift of a float": (legal_expr(ir.Binary("<<", F, A, F32)), "types do not agree: f << a"),
    "bits of a float": (legal_expr(ir.Binary("&", F, F, F32)), "types do not agree: f & f"),
    "a comparison that is a number": (legal_expr(ir.Binary("<", A, A, U32)), "types do not agree: a < a"),
    "a comparison of two types": (legal_expr(ir.Binary("<", A, M, BOOL)), "types do not agree: a < m"),
    "a comparison of bools": (legal_expr(ir.Binary("==", P, P, BOOL)), "types do not agree: p == p"),
    "logic of numbers": (legal_expr(ir.Binary("&&", A, A, BOOL)), "types do not agree"),
    "an operator that is not there": (legal_expr(ir.Binary("**", A, A, U32)), "types do not agree"),
    "a selection by a number": (legal_expr(ir.Select(A, A, A, U32)), "types do not agree: if a then a else a"),
    "a selection of two types": (legal_expr(ir.Select(P, A, M, U32)), "types do not agree: if p then a else m"),
    "a built-in that is not there": (legal_expr(ir.Builtin("sqrt", (F,), F32)), "types do not agree: sqrt(f)"),
    "a built-in with one argument": (legal_expr(ir.Builtin("min", (A,), U32)), "types do not agree: min(a)"),
    "leading zeros of a float": (legal_expr(ir.Builtin("countLeadingZeros", (F,), F32)), "types do not agree: countLeadingZeros(f)"),
    "a rounded u32": (legal_expr(ir.Builtin("round", (A,), U32)), "types do not agree: round(a)"),
    "a greater bool": (legal_expr(ir.Builtin("max", (P, P), BOOL)), "types do not agree: max(p, p)"),
    "a conversion to the same type": (legal_expr(ir.Convert(A, U32)), "types do not agree: u32(a)"),
    "a conversion of a struct": (legal_expr(ir.Convert(name("pair", PAIR), U32)), "types do not agree: u32(pair)"),
    "the bits of a bool": (legal_expr(ir.Bitcast(P, U32)), "types do not agree: bitcast<u32>(p)"),
    "a field of a number": (legal_expr(ir.Field(A, "code", U32)), "types do not agree: a.code"),
    "a field that is not there": (legal_expr(ir.Field(name("pair", PAIR), "none", U32)), "types do not agree: pair.none"),
    "a field of another type": (legal_expr(ir.Field(name("pair", PAIR), "code", F32)), "types do not agree: pair.code"),
    "a struct with one field": (legal_expr(ir.Construct((A,), PAIR)), "types do not agree: Pair(a)"),
    "a struct with fields of another type": (legal_expr(ir.Construct((A, A), PAIR)), "types do not agree: Pair(a, a)"),
    "a vector at REALISED": (realised(ir.Let("v", V)), "a Compose may not stand here"),
    "an element of a vector at CHECKED": (checked(ir.Let("v", ir.Component(V, 0, U32))), "a Component may not stand here"),
    "a load of a vector in a function": (function(ir.Return(ir.LoadVector("x", u(0)))), "a LoadVector may not stand here"),
    "a store of a vector in a function": (function(ir.StoreVector("y", u(0), V)), "a StoreVector may not stand here"),
    "a vector loaded of words": (legal_expr(ir.LoadVector("s", u(0))), "`s` is not a buffer of vectors"),
    "a vector loaded of what is not there": (legal_expr(ir.LoadVector("none", u(0))), "`none` is not a buffer of vectors"),
    "a vector loaded at i32": (legal_expr(ir.LoadVector("x", M)), "types do not agree: vector x[m]"),
    "a vector stored in words": (legal(ir.StoreVector("top", u(0), V)), "`top` is not a buffer of vectors"),
    "a vector stored to an input": (legal(ir.StoreVector("x", u(0), V)), "`x` is not a result"),
    "a word stored as a vector": (legal(ir.StoreVector("y", u(0), u(1))), "1u is u32, wanted is vec4<u32>"),
    "a vector stored as a word": (legal(ir.Store("y", u(0), V)), "vec4<u32>(1u) is vec4<u32>, wanted is u32"),
    "a vector of floats stored": (legal(ir.StoreVector("y", u(0), W)), "is vec4<f32>, wanted is vec4<u32>"),
    "a vector stored at a vector": (legal(ir.StoreVector("y", V, V)), "vec4<u32>(1u) is vec4<u32>, wanted is u32"),
    "a vector of three": (legal_expr(ir.Compose((A, A, A), V.type)), "types do not agree: vec4<u32>(a, a, a)"),
    "a vector of none": (legal_expr(ir.Compose((), V.type)), "types do not agree: vec4<u32>()"),
    "a vector of two types": (legal_expr(ir.Compose((A, A, A, M), V.type)), "types do not agree: vec4<u32>(a, a, a, m)"),
    "a vector of vectors": (legal_expr(ir.Compose((V,), V.type)), "types do not agree"),
    "a fifth element": (legal_expr(ir.Component(V, -1, U32)), "types do not agree"),
    "an element of another type": (legal_expr(ir.Component(V, 0, I32)), "types do not agree: vec4<u32>(1u).x"),
    "an element of a number": (legal_expr(ir.Component(A, 0, U32)), "types do not agree: a.x"),
    "a sum of a vector and a number": (legal_expr(ir.Binary("+", V, A, V.type)), "types do not agree: vec4<u32>(1u) + a"),
    "a sum of vectors that is a number": (legal_expr(ir.Binary("+", V, V, U32)), "types do not agree"),
    "a shift of a vector by a number": (legal_expr(ir.Binary("<<", V, A, V.type)), "types do not agree: vec4<u32>(1u) << a"),
    "a shift of a number by a vector": (legal_expr(ir.Binary("<<", A, V, U32)), "types do not agree: a << vec4<u32>(1u)"),
    "a comparison of vectors that is one truth": (legal_expr(ir.Binary("==", V, V, BOOL)), "types do not agree"),
    "logic of vectors in two steps": (legal_expr(ir.Binary("&&", T, T, T.type)), "types do not agree"),
    "a selection of numbers by a vector": (legal_expr(ir.Select(T, A, A, U32)), "types do not agree: if vec4<bool>(p) then a else a"),
    "a selection of a vector and a number": (legal_expr(ir.Select(T, V, A, V.type)), "types do not agree"),
    "a selection by a vector of numbers": (legal_expr(ir.Select(V, V, V, V.type)), "types do not agree"),
    "whether all of one": (legal_expr(ir.Builtin("all", (P,), BOOL)), "types do not agree: all(p)"),
    "whether any of numbers": (legal_expr(ir.Builtin("any", (V,), BOOL)), "types do not agree: any(vec4<u32>(1u))"),
    "whether all, for each": (legal_expr(ir.Builtin("all", (T,), T.type)), "types do not agree"),
    "the least of a vector and a number": (legal_expr(ir.Builtin("min", (V, A), V.type)), "types do not agree: min(vec4<u32>(1u), a)"),
    "a conversion of a vector to a number": (legal_expr(ir.Convert(W, U32)), "types do not agree"),
    "a conversion of a number to a vector": (legal_expr(ir.Convert(F, V.type)), "types do not agree"),
    "a conversion to the same vector": (legal_expr(ir.Convert(V, V.type)), "types do not agree"),
    "the bits of truths": (legal_expr(ir.Bitcast(T, V.type)), "types do not agree"),
    "the bits of a vector as a number": (legal_expr(ir.Bitcast(W, U32)), "types do not agree"),
    "a minus of a vector of u32": (legal_expr(ir.Unary("-", V, V.type)), "types do not agree: -vec4<u32>(1u)"),
    "a branch by a vector": (legal(ir.Let("p", TRUE), ir.If(T, ())), "vec4<bool>(p) is vec4<bool>, wanted is bool"),
    "a loop to a vector": (legal(ir.For("i", u(0), V, u(1), ())), "vec4<u32>(1u) is vec4<u32>, wanted is u32"),
    "a vector for a number": (legal_expr(ir.Call("make", (V,), PAIR)), "types do not agree: make(vec4<u32>(1u))"),
    "a field of a vector": (legal_expr(ir.Field(V, "x", U32)), "types do not agree: vec4<u32>(1u).x"),
    "a negative u32": (legal_expr(ir.Literal(-1, U32)), "types do not agree: -1u"),
    "a u32 of 33 bits": (legal_expr(u(1 << 32)), "types do not agree"),
    "an i32 of 33 bits": (legal_expr(ir.Literal(1 << 31, I32)), "types do not agree"),
    "a truth as u32": (legal_expr(ir.Literal(value=True, type=U32)), "types do not agree"),
    "a number as bool": (legal_expr(ir.Literal(1, BOOL)), "types do not agree"),
    "an integer as f32": (legal_expr(ir.Literal(1, F32)), "types do not agree"),
    "an infinite f32": (legal_expr(ir.Literal(float("inf"), F32)), "types do not agree"),
    "an f32 beyond the greatest": (legal_expr(ir.Literal(1e39, F32)), "types do not agree"),
    "a NaN": (legal_expr(ir.Literal(float("nan"), F32)), "types do not agree"),
}  # fmt: skip


@pytest.mark.parametrize("title", BAD)
def test_bad_programs_are_refused_with_the_pass_and_the_ir(title: str) -> None:
    program, reason = BAD[title]
    with pytest.raises(InternalError) as caught:
        verify(program, "a-pass")
    text = str(caught.value)
    assert text.startswith("after a-pass: ")
    assert reason in text.splitlines()[0]
    assert text.endswith(f"\n\n{print_program(program)}")


@pytest.mark.parametrize("stage", PROGRAMS)
def test_good_programs_are_given_back(stage: str) -> None:
    assert verify(PROGRAMS[stage], "a-pass") is PROGRAMS[stage]


def test_the_expressions_beside_the_bad_ones_are_good() -> None:
    """What BAD builds on is valid, so that each of its programs has one fault."""
    for value in (A, M, F, P, V, W, T, name("pair", PAIR), ir.Literal(-0.0, F32), ir.Literal(float.fromhex("0x1.fffffep127"), F32)):
        verify(legal_expr(value), "the test")
    verify(checked_expr(Q), "the test")
    verify(function(ir.Return(name("x"))), "the test")
    verify(function(ir.Return(name("x")), stage=Stage.REALISED), "the test")


def test_names_of_one_block_may_be_those_of_another() -> None:
    block = (ir.Let("b", u(1)),)
    verify(legal(ir.If(TRUE, block, block), *block), "the test")


def test_functions_of_a_fragment_may_load() -> None:
    program = fragment(ir.Return(ir.Load("x", u(0))))
    assert verify(program, "the test") is program


def test_a_result_may_be_loaded() -> None:
    verify(legal(ir.Store("y", u(0), ir.Load("y", u(0)))), "the test")


def test_operands_are_found_by_name() -> None:
    assert CHECKED.operand("s") == Operand("s", DTYPES["float32"], per_group=True)
    with pytest.raises(KeyError):
        CHECKED.operand("none")
    assert REALISED.function("make") is MAKE
    with pytest.raises(KeyError):
        REALISED.function("none")
