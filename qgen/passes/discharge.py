"""REALISED to REALISED: leaves out the conditions that every scale is known to meet.

Before:

    write y = mul_f32(small_to_f32(zero_extend_uint8(read x)), read x_scale)
        quick = scale_product(zero_extend_uint8(read x), read x_scale) where scale_product_takes_s(read x_scale)

After:

    write y = scale_product(zero_extend_uint8(read x), read x_scale)
        quick = scale_product(zero_extend_uint8(read x), read x_scale) where true

Where a condition on the element is left, the sure value stays, and the quick one under that condition. A scale that meets those on it alone
is called *plain*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Operand, Param, Program
from qgen.ir.rewrite import map_expr, reachable_functions, walk_expr
from qgen.ir.types import Scalar

TEST: Final = "is_plain"
"""The name of the function that tells whether a scale is plain."""

_TRUE: Final = ir.Literal(value=True, type=Scalar.BOOL)


@dataclass(frozen=True, slots=True)
class Condition:
    """What every scale must meet: `test` takes the code of one and tells whether it does, `functions` are those that it calls."""

    scale: Operand
    test: Function
    functions: tuple[Function, ...]


def find_condition(program: Program) -> Condition | None:
    """Return the conditions of quick values on the scale alone, as one; None where there are none."""
    terms = [term for quick in _quick(program) for term in _terms(quick.holds) if _scale_of(program, term) is not None]
    if not terms:
        return None
    scale = _scale_of(program, terms[0])
    if scale is None:
        raise TypeError(terms[0])
    code = ir.Name(scale.name, Scalar.U32)
    result = map_expr(_all(terms), lambda node: code if isinstance(node, ir.Read) else node)
    test = Function(TEST, (Param(scale.name, Scalar.U32, scale.dtype),), Scalar.BOOL, (ir.Return(result),))
    return Condition(scale, test, reachable_functions((test.body,), {function.name: function for function in program.functions}))


def discharge_scale(program: Program) -> Program:
    """Return the program for plain scales; the same object where no condition is on the scale alone."""
    if find_condition(program) is None:
        return program
    return replace(program, kernels=tuple(_discharge_kernel(program, kernel) for kernel in program.kernels))


def _discharge_kernel(program: Program, kernel: Kernel) -> Kernel:
    body: list[ir.Stmt] = []
    for stmt in kernel.body:
        if isinstance(stmt, ir.Write) and stmt.quick is not None:
            left = [term for term in _terms(stmt.quick.holds) if _scale_of(program, term) is None]
            quick = ir.Quick(stmt.quick.value, _all(left))
            body.append(ir.Write(stmt.operand, stmt.value if left else quick.value, quick))
        else:
            body.append(stmt)
    return replace(kernel, body=tuple(body))


def _quick(program: Program) -> list[ir.Quick]:
    return [stmt.quick for kernel in program.kernels for stmt in kernel.body if isinstance(stmt, ir.Write) and stmt.quick is not None]


def _scale_of(program: Program, term: ir.Expr) -> Operand | None:
    """Return the scale where `term` reads it and nothing else; it is the first input of the group."""
    scale = next((operand for operand in program.operands if operand.per_group and not operand.is_output), None)
    read = {node.operand for node in walk_expr(term) if isinstance(node, ir.Read)}
    return scale if scale is not None and read == {scale.name} else None


def _terms(holds: ir.Expr | None) -> list[ir.Expr]:
    match holds:
        case None | ir.Literal(True):
            return []
        case ir.Binary("&&", lhs, rhs, _):
            return [*_terms(lhs), *_terms(rhs)]
        case _:
            return [holds]


def _all(terms: list[ir.Expr]) -> ir.Expr:
    result = terms[0] if terms else _TRUE
    for term in terms[1:]:
        result = ir.Binary("&&", result, term, Scalar.BOOL)
    return result
