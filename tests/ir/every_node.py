"""One program a stage that has every node which may stand there: for the printer, the walks and the verifier."""

from __future__ import annotations

from qgen.dtypes import DTYPES
from qgen.ir.nodes import (
    Accumulate,
    Assign,
    AtomicMax,
    Binary,
    Bitcast,
    Builtin,
    Call,
    Component,
    Compose,
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
    LoadVector,
    Name,
    Op,
    Read,
    Reduce,
    Require,
    Return,
    Select,
    Store,
    StoreVector,
    Typed,
    Unary,
    Uniform,
    Var,
    Write,
)
from qgen.ir.program import Function, Kernel, Operand, Param, Program, Stage
from qgen.ir.types import Int, Scalar, Struct, Vector

BOOL, U32, I32, F32 = Scalar.BOOL, Scalar.U32, Scalar.I32, Scalar.F32
U32X4 = Vector(U32)
FLOAT32, UINT8 = DTYPES["float32"], DTYPES["uint8"]
PAIR = Struct("Pair", (("code", U32), ("value", F32)))
OPERANDS = (
    Operand("x", FLOAT32),
    Operand("s", FLOAT32, per_group=True),
    Operand("top", FLOAT32, is_output=True, per_group=True, reduction=Op.MAX),
    Operand("y", UINT8, is_output=True),
)


def u(value: int) -> Literal:
    return Literal(value, U32)


def name(text: str, type_: Scalar | Struct | Vector = U32) -> Name:
    return Name(text, type_)


def add(lhs: Expr, rhs: Expr) -> Binary:
    return Binary("+", lhs, rhs, U32)


X, S = Read("x", FLOAT32), Read("s", FLOAT32)
QUOTIENT = Typed(Op.DIV, (X, S), FLOAT32)
ROUNDED = Typed(Op.ROUND_EVEN, (Name("q", FLOAT32),), Int(-(1 << 18), 1 << 18))
SHIFTED = Typed(Op.ADD, (ROUNDED, Literal(-3, Int(-3, -3))), Int(-(1 << 18) - 3, (1 << 18) - 3))

CHECKED = Program(
    "Scale",
    Stage.CHECKED,
    OPERANDS,
    (
        Kernel("reduce", (Accumulate("top", X),)),
        Kernel(
            "main",
            (
                Let("q", QUOTIENT),
                Let("r", Select(Typed(Op.IS_NAN, (X,), BOOL), Reduce(Op.MAX, X, FLOAT32), X, FLOAT32)),
                Write("y", Typed(Op.SATURATE, (SHIFTED,), UINT8)),
            ),
        ),
    ),
)

PARTIAL = Function(
    "partial",
    (Param("x", U32, FLOAT32), Param("k", I32, Int.of_bits(8)), Param("p", PAIR)),
    U32,
    (
        Require(Binary("<", Field(name("p", PAIR), "value", F32), Literal(0.5, F32), BOOL)),
        Let("f", Bitcast(name("x"), F32)),
        Let("n", Unary("-", name("k", I32), I32)),
        If(Unary("!", Binary("==", name("x"), u(0x7FC00000), BOOL), BOOL), (Return(u(1)),), (Let("m", Unary("~", name("x"), U32)),)),
        Return(Select(Literal(value=True, type=BOOL), Convert(name("n", I32), U32), Builtin("min", (name("x"), u(255)), U32), U32)),
    ),
    UINT8,
    "Right where it holds.",
)
MAKE = Function("make", (Param("code", U32),), PAIR, (Return(Construct((name("code"), Convert(name("code"), F32)), PAIR)),))
CALLS = Function(
    "calls",
    (Param("x", U32),),
    U32,
    (Return(Call("partial", (name("x"), Literal(-1, I32), Call("make", (name("x"),), PAIR)), U32)),),
)

REALISED = Program(
    "Scale",
    Stage.REALISED,
    OPERANDS,
    (Kernel("main", (Let("scale", Read("s", U32)), Write("y", Call("calls", (add(Read("x", U32), name("scale")),), U32)))),),
    (CALLS, PARTIAL, MAKE),
)

WIDE_FUNCTION = Function(
    "scaled_4",
    (Param("x", U32X4, FLOAT32), Param("s", U32, FLOAT32)),
    U32X4,
    (
        Let("f", Binary("*", Bitcast(name("x", U32X4), Vector(F32)), Compose((Bitcast(name("s"), F32),), Vector(F32)), Vector(F32))),
        Return(Bitcast(name("f", Vector(F32)), U32X4)),
    ),
    UINT8,
)

LEGAL = Program(
    "Scale",
    Stage.LEGAL,
    OPERANDS,
    (
        Kernel(
            "main",
            (
                Let("unit", add(Binary("*", Invocation("y"), Uniform("row"), U32), Invocation("x"))),
                If(Binary(">=", name("unit"), Uniform("units"), BOOL), (Return(None),)),
                Var("word", u(0)),
                For(
                    "i",
                    name("unit"),
                    Builtin("min", (add(name("unit"), u(4)), Uniform("units")), U32),
                    u(1),
                    (Assign("word", Binary("|", name("word"), Binary("<<", Load("x", name("i")), u(8), U32), U32)),),
                ),
                If(
                    Binary("&&", Binary("==", name("word"), u(0), BOOL), Literal(value=True, type=BOOL), BOOL),
                    (AtomicMax("top", u(0), name("word")), Store("y", name("unit"), u(1024))),
                    (Store("y", name("unit"), name("word")),),
                ),
            ),
            64,
        ),
        Kernel(
            "wide",
            (
                Let("codes", Call("scaled_4", (LoadVector("x", Invocation("x")), Load("s", u(0))), U32X4)),
                Let("low", Binary("<<", name("codes", U32X4), Compose((u(0), u(8), u(16), u(24)), U32X4), U32X4)),
                If(
                    Builtin("all", (Binary("==", name("low", U32X4), name("codes", U32X4), Vector(BOOL)),), BOOL),
                    (StoreVector("y", add(Invocation("x"), Component(name("low", U32X4), 3, U32)), name("low", U32X4)),),
                ),
            ),
            64,
        ),
    ),
    (WIDE_FUNCTION,),
    ("row", "units"),
    frozenset({"x", "y"}),
)

PROGRAMS = {"checked": CHECKED, "realised": REALISED, "legal": LEGAL}
