"""REALISED to REALISED: what only a quantization group decides becomes a parameter of the element's function.

Before:

    write y = saturate_int_uint8(rint_f32(div_f32(read x, read y_scale)) + zero_extend_uint8(read y_zero_point))

After:

    let scale: u32 = read y_scale
    let zero_point: i32 = zero_extend_uint8(read y_zero_point)
    write y = quantize_linear(read x, scale, zero_point)

    fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> uint8 {
        return saturate_int_uint8(rint_f32(div_f32(x, scale)) + zero_point)
    }

So scale and zero point are decoded once a group, without any analysis of loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Param, Program
from qgen.ir.rewrite import children, map_expr, walk_expr, with_children
from qgen.ir.types import Machine, Scalar, Struct


def hoist_groups(program: Program) -> Program:
    """Return the program with one function an element, whose parameters are the elements read and what the group decides."""
    functions: list[Function] = []
    kernels: list[Kernel] = []
    for kernel in program.kernels:
        hoister = _Hoister(program)
        body, function = hoister.run(kernel)
        kernels.append(Kernel(kernel.name, body, kernel.workgroup_size))
        functions.append(function)
    return Program(program.name, program.stage, program.operands, tuple(kernels), (*functions, *program.functions), program.uniforms)


def snake_case(name: str) -> str:
    """Return an operator's name as a function is named: `QuantizeLinear` to `quantize_linear`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class _Hoister:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._group = {operand.name for operand in program.operands if operand.per_group and not operand.is_output}
        self._shared: dict[str, ir.Expr] = {}
        self._params: list[tuple[str, ir.Expr]] = []

    def run(self, kernel: Kernel) -> tuple[tuple[ir.Stmt, ...], Function]:
        lets: list[ir.Stmt] = []
        writes: list[ir.Write] = []
        for stmt in kernel.body:
            match stmt:
                case ir.Let(name, value):
                    whole = self._inline(value)
                    if self._is_shared(whole):
                        self._shared[name] = whole
                    else:
                        lets.append(ir.Let(name, self._hoist(whole)))
                case ir.Write(name, value):
                    writes.append(ir.Write(name, self._hoist(self._inline(value))))
                case _:
                    raise TypeError(stmt)
        (write,) = writes
        result = self._program.operand(write.operand).dtype
        reads = list(self._element_reads([*lets, write]))
        params = [Param(name, Scalar.U32, self._program.operand(name).dtype) for name in reads]
        params += [Param(name, _machine(value)) for name, value in self._params]
        body = (*(_reads_to_names(stmt) for stmt in lets), ir.Return(_to_names(write.value)))
        function = Function(snake_case(self._program.name), tuple(params), Scalar.U32, body, result)
        args = tuple(ir.Read(name, Scalar.U32) for name in reads) + tuple(ir.Name(name, value.type) for name, value in self._params)
        groups = tuple(ir.Let(name, value) for name, value in self._params)
        return (*groups, ir.Write(write.operand, ir.Call(function.name, args, Scalar.U32))), function

    def _inline(self, expr: ir.Expr) -> ir.Expr:
        return map_expr(expr, lambda node: self._shared.get(node.name, node) if isinstance(node, ir.Name) else node)

    def _is_shared(self, expr: ir.Expr) -> bool:
        """Whether the expression reads operands of the group, and nothing of the element."""
        nodes = list(walk_expr(expr))
        reads = [node.operand for node in nodes if isinstance(node, ir.Read)]
        return bool(reads) and all(name in self._group for name in reads) and not any(isinstance(node, ir.Name) for node in nodes)

    def _hoist(self, expr: ir.Expr) -> ir.Expr:
        if self._is_shared(expr):
            for name, value in self._params:
                if value == expr:
                    return ir.Name(name, expr.type)
            name = self._param_name(expr)
            self._params.append((name, expr))
            return ir.Name(name, expr.type)
        return with_children(expr, tuple(self._hoist(child) for child in children(expr)))

    def _param_name(self, expr: ir.Expr) -> str:
        operand = next(node.operand for node in walk_expr(expr) if isinstance(node, ir.Read))
        names = [other.name for other in self._program.operands]
        prefix = next((f"{name}_" for name in names if operand.startswith(f"{name}_")), "")
        taken = {name for name, _ in self._params} | set(names)
        stem = operand.removeprefix(prefix)
        choices = [stem, f"{operand}_value", *(f"{operand}_value{number}" for number in range(2, len(taken) + 3))]
        return next(choice for choice in choices if choice not in taken)

    def _element_reads(self, stmts: Iterable[ir.Stmt]) -> Iterable[str]:
        found = {
            node.operand
            for stmt in stmts
            for value in ([stmt.value] if isinstance(stmt, ir.Let | ir.Write) else [])
            for node in walk_expr(value)
            if isinstance(node, ir.Read)
        }
        return [operand.name for operand in self._program.operands if operand.name in found]


def _to_names(expr: ir.Expr) -> ir.Expr:
    return map_expr(expr, lambda node: ir.Name(node.operand, Scalar.U32) if isinstance(node, ir.Read) else node)


def _reads_to_names(stmt: ir.Stmt) -> ir.Stmt:
    if not isinstance(stmt, ir.Let):
        raise TypeError(stmt)
    return ir.Let(stmt.name, _to_names(stmt.value))


def _machine(expr: ir.Expr) -> Machine:
    if not isinstance(expr.type, Scalar | Struct):
        raise TypeError(expr)
    return expr.type
