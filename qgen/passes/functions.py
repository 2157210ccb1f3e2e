"""REALISED to LEGAL: writes functions that give elements of the result, in place of an entry point that stores them.

Before:

    let scale: u32 = read x_scale
    write y = dequantize_linear(read x, scale)
        quick = dequantize_linear_quick(read x, scale) where scale_product_takes_s(scale)

After:

    fn bits(i: u32) -> u32 {
        let group: u32 = i / 32u
        let scale: u32 = x_scale[group]
        let x_code: u32 = (x[i / 8u] >> (4u * (i % 8u))) & 15u
        if scale_product_takes_s(scale) { return dequantize_linear_quick(x_code, scale) }
        return dequantize_linear(x_code, scale)
    }

and `at`, the same as an f32, and `load4`, four of them side by side. There is no loop at the end that could redo what quick code may have
got wrong, so each function chooses: `load4` takes quick code where it is right of all four elements, and else asks `at` four times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from qgen.dtypes import DTYPES, DType
from qgen.errors import InternalError
from qgen.frontend.check_fn import instance_name
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_expr
from qgen.ir.names import free_name
from qgen.ir.program import Function, Param, Program, Stage
from qgen.ir.rewrite import drop_unused_lets, map_body, map_expr, reachable_functions, walk_expr
from qgen.ir.types import LANES, Scalar, Vector
from qgen.numerics.library import candidates, closure
from qgen.passes.plan import Plan
from qgen.passes.quads import QuadDecoder, groups_of_four
from qgen.passes.widen import is_widenable, spread
from qgen.passes.words import TRUE, binary, load_code, name, u32

FOUR: Final = "load4"
ONE: Final = "at"
BITS: Final = "bits"
"""The functions for the caller, by their names without the prefix."""

_FLOAT32: Final = DTYPES["float32"]
_F32X4: Final = Vector(Scalar.F32)
_INDEX: Final = "i"


@dataclass(frozen=True, slots=True)
class _Element:
    """What an element is computed from: the kernel's statements, with the plan that says how its group is found."""

    program: Program
    plan: Plan
    groups: tuple[ir.Let, ...]
    write: ir.Write


def place_functions(program: Program, plan: Plan) -> Program:
    """Return the program of functions alone; `plan` is that of its only kernel, whose shape is baked."""
    (kernel,) = program.kernels
    *_, write = kernel.body
    groups = tuple(stmt for stmt in kernel.body if isinstance(stmt, ir.Let))
    if not isinstance(write, ir.Write) or len(groups) != len(kernel.body) - 1:
        raise InternalError("an element program names what a group decides and writes its result")
    dtype = program.operand(write.operand).dtype
    table = {function.name: function for function in program.functions}
    conversion = None if dtype == _FLOAT32 else _conversion(dtype)
    table |= {function.name: function for function in conversion or ()}
    widening = None if conversion is None else conversion[0].name
    operands = tuple(operand for operand in program.operands if not operand.is_output)
    element = _Element(replace(program, functions=tuple(table.values())), plan, groups, write)
    made = [
        _four(element, widening, table),
        _function(ONE, _INDEX, Scalar.F32, (ir.Return(_as_f32(ir.Call(BITS, (name(_INDEX),), Scalar.U32), widening)),)),
        _function(BITS, _INDEX, Scalar.U32, _one(element)),
    ]
    clash = table.keys() & {function.name for function in made}
    if clash:
        raise InternalError(f"functions of the library have the names of a fragment's: {sorted(clash)}")
    table |= {function.name: function for function in made}
    calls = tuple((ir.Return(ir.Call(function.name, (), function.result)),) for function in made)
    return Program(program.name, Stage.LEGAL, operands, (), reachable_functions(calls, table))


def _function(stem: str, param: str, result: Scalar | Vector, body: tuple[ir.Stmt, ...]) -> Function:
    folded = map_body(body, fold_expr)
    return Function(stem, (Param(param, Scalar.U32),), result, drop_unused_lets(folded))


def _conversion(dtype: DType) -> tuple[Function, ...]:
    """Return the library function from the bits of `dtype` to those of float32, and those it needs."""
    for candidate in candidates()[ir.Op.CONVERT, _FLOAT32]:
        root = candidate.pattern.expr
        if isinstance(root, ir.Typed) and root.args[0].type == dtype and candidate.pattern.condition is None:
            functions = closure(candidate.name, candidate.format)
            if functions[0].name == instance_name(candidate.name, candidate.format):
                return functions
    raise InternalError(f"the numerics library does not convert {dtype.name} to float32")


def _as_f32(code: ir.Expr, widening: str | None) -> ir.Expr:
    return ir.Bitcast(code if widening is None else ir.Call(widening, (code,), Scalar.U32), Scalar.F32)


class _Names:
    """Makes names that hide neither a buffer nor a function, nor what a group decides."""

    def __init__(self, element: _Element, param: str) -> None:
        program = element.program
        self._taken = {operand.name for operand in program.operands} | {function.name for function in program.functions}
        self._taken |= {let.name for let in element.groups} | {param, FOUR, ONE, BITS}

    def __call__(self, stem: str) -> str:
        found = free_name(stem, self._taken)
        self._taken.add(found)
        return found


def _one(element: _Element) -> tuple[ir.Stmt, ...]:
    """Return the statements that give the code of element `i`."""
    program, write, fresh = element.program, element.write, _Names(element, _INDEX)
    stmts: list[ir.Stmt] = []
    group = element.plan.group
    if element.groups and not isinstance(group, ir.Literal):
        number = fresh("group")
        stmts.append(ir.Let(number, group))
        group = name(number)
    codes: dict[str, ir.Expr] = {}

    def load(expr: ir.Expr) -> ir.Expr:
        """Return the expression with each read as the name of the code, which is loaded where it is first read."""
        for node in walk_expr(expr):
            if isinstance(node, ir.Read) and node.operand not in codes:
                operand = program.operand(node.operand)
                lets, code = load_code(node.operand, operand.dtype, group if operand.per_group else name(_INDEX), fresh)
                bound = fresh(f"{node.operand}_code")
                stmts.extend([*lets, ir.Let(bound, code)])
                codes[node.operand] = name(bound)
        return map_expr(expr, lambda node: codes[node.operand] if isinstance(node, ir.Read) else node)

    for let in element.groups:
        value = load(let.value)
        stmts.append(ir.Let(let.name, value))
    if write.quick is None or write.quick.holds is None:
        value = load(write.value)
        return (*stmts, ir.Return(value))
    quick, holds = load(write.quick.value), load(write.quick.holds)
    if holds == TRUE:
        return (*stmts, ir.Return(quick))
    sure = load(write.value)
    return (*stmts, ir.If(holds, (ir.Return(quick),)), ir.Return(sure))


def _four(element: _Element, widening: str | None, table: dict[str, Function]) -> Function:
    """Return the function of four elements; adds to `table` the four-lane functions that it calls."""
    index, plan, quick = name("i4"), element.plan, element.write.quick
    first = binary("*", u32(LANES), index)
    each = tuple(ir.Call(ONE, (binary("+", first, u32(number)),), Scalar.F32) for number in range(LANES))
    one_by_one = ir.Return(ir.Compose(each, _F32X4))
    conversion = [] if widening is None else [ir.Call(widening, (), Scalar.U32)]
    if not plan.is_wide or quick is None or not is_widenable(conversion, table):
        return _function(FOUR, "i4", _F32X4, (one_by_one,))
    if plan.view is None:
        raise InternalError("the shape of a fragment is baked")
    level = groups_of_four(plan.granularity, plan.view)
    quads = QuadDecoder(element.program, replace(plan, wide=frozenset()), level, _Names(element, "i4"))
    stmts, holds, codes = quads.decode(list(element.groups), quick, index)
    if widening is not None:
        code = ir.Name("codes", Vector(Scalar.U32))
        codes = quads.widener.expr(ir.Call(widening, (code,), Scalar.U32), lambda node: codes if node == code else None)
    result = ir.Return(ir.Bitcast(spread(codes), _F32X4))
    table |= quads.widener.functions
    return _function(FOUR, "i4", _F32X4, (*stmts, result) if holds is None else (*stmts, ir.If(holds, (result,)), one_by_one))
