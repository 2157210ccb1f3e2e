"""Short constructors for hand-built LEGAL programs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from qgen.dtypes import parse_dtype
from qgen.evaluate import IEEE, ArithmeticModel, evaluate_kernel
from qgen.ir.nodes import Binary, Expr, Invocation, Let, Literal, Load, Name, Return, Stmt, Store, Unary
from qgen.ir.program import Function, Kernel, Operand, Param, Program, Stage
from qgen.ir.types import Machine, Scalar

BOOL, U32, I32, F32 = Scalar.BOOL, Scalar.U32, Scalar.I32, Scalar.F32
Words = npt.NDArray[np.uint32]
UINT8 = parse_dtype("uint8")
X = Invocation("x")


def u(value: int) -> Literal:
    return Literal(value, U32)


def name(text: str, type_: Machine = U32) -> Name:
    return Name(text, type_)


def op(lhs: Expr, operator: str, rhs: Expr) -> Binary:
    """Return the operator at the type that WGSL gives it."""
    compares = operator in {"==", "!=", "<", "<=", ">", ">="}
    assert isinstance(lhs.type, Scalar)
    return Binary(operator, lhs, rhs, BOOL if compares else lhs.type)


def negation(condition: Expr) -> Unary:
    return Unary("!", condition, BOOL)


def function(title: str, params: Mapping[str, Machine], result: Machine, *body: Stmt) -> Function:
    return Function(title, tuple(Param(key, type_) for key, type_ in params.items()), result, body)


def expression(value: Expr, **params: Machine) -> Function:
    """Return the function `f` of one expression; its type is the expression's."""
    assert isinstance(value.type, Scalar)
    return function("f", params, value.type, Return(value))


def program(*body: Stmt, functions: tuple[Function, ...] = (), uniforms: tuple[str, ...] = (), workgroup: int = 4) -> Program:
    """Return a program of one kernel, from the operand x to the result y."""
    operands = (Operand("x", UINT8), Operand("y", UINT8, is_output=True))
    return Program("test", Stage.LEGAL, operands, (Kernel("main", body, workgroup),), functions, uniforms)


def run(
    of: Program,
    x: list[int] | Words,
    size: int,
    *,
    uniforms: Mapping[str, int] | None = None,
    workgroups: tuple[int, int, int] = (1, 1, 1),
    model: ArithmeticModel = IEEE,
) -> list[int]:
    """Return the words of y, `size` of them, after one dispatch."""
    buffers = {"x": np.asarray(x, np.uint32), "y": np.zeros(size, np.uint32)}
    result: list[int] = evaluate_kernel(of, of.kernels[0], buffers, uniforms or {}, workgroups, model)["y"].tolist()
    return result


def store_x(value: Expr, *before: Stmt) -> tuple[Stmt, ...]:
    """Return the body that stores a value at y[x]."""
    return (*before, Let("stored", value), Store("y", X, Name("stored", U32)))


def load(index: Expr) -> Load:
    return Load("x", index)
