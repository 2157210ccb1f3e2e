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

from dataclasses import replace

from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.names import snake_case
from qgen.ir.program import Domain, Function, Kernel, Param, Program
from qgen.ir.rewrite import children, drop_unused_lets, map_body, map_expr, walk_body, walk_expr, with_children
from qgen.ir.types import Machine, Scalar, Struct


def hoist_groups(program: Program) -> Program:
    """Return the program with one function an element, and a quick one; their parameters are elements and what a group decides."""
    functions: list[Function] = []
    kernels: list[Kernel] = []
    for kernel in program.kernels:
        hoister = _Hoister(program)
        if kernel.domain is Domain.GROUPS:
            body, outlined = hoister.outline_groups(kernel)
        elif any(isinstance(stmt, ir.Accumulate) for stmt in kernel.body):
            body, outlined = kernel.body, []
        else:
            body, outlined = hoister.run(kernel)
        kernels.append(replace(kernel, body=body))
        functions += outlined
    return Program(program.name, program.stage, program.operands, tuple(kernels), (*functions, *program.functions), program.uniforms)


class _Hoister:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._name = snake_case(program.name)
        self._group = {operand.name for operand in program.operands if operand.per_group}
        self._params: list[tuple[str, ir.Expr]] = []

    def run(self, kernel: Kernel) -> tuple[tuple[ir.Stmt, ...], list[Function]]:
        """Return the kernel's statements and the functions of its element: the sure one, and perhaps the quick one."""
        *named, write = kernel.body
        if not isinstance(write, ir.Write):
            raise InternalError("an element program ends with the write of its result")
        lets: list[ir.Stmt] = []
        for stmt in named:
            if not isinstance(stmt, ir.Let):
                raise InternalError("an element program names values and writes its result")
            if self._is_shared(stmt.value):
                self._params.append((stmt.name, stmt.value))
            else:
                lets.append(ir.Let(stmt.name, self._hoist(stmt.value)))
        name = self._name
        value, function = self._outline(name, self._hoist(write.value), write.operand, tuple(lets))
        functions, quick = [function], None
        if write.quick is not None and write.quick.value is write.value:
            quick = ir.Quick(value, write.quick.holds)  # there is but one way to the value
        elif write.quick is not None:
            fast, quick_function = self._outline(f"{name}_quick", self._hoist(write.quick.value), write.operand, tuple(lets))
            functions.insert(0, quick_function)
            quick = ir.Quick(fast, None if write.quick.holds is None else self._hoist(write.quick.holds))
        return (*self._group_lets(), ir.Write(write.operand, value, quick)), functions

    def outline_groups(self, kernel: Kernel) -> tuple[tuple[ir.Stmt, ...], list[Function]]:
        """Return a kernel over groups with a function for each result that is not a constant."""
        functions: list[Function] = []
        body: list[ir.Stmt] = []
        lets = tuple(stmt for stmt in kernel.body if isinstance(stmt, ir.Let))
        for stmt in kernel.body:
            if not isinstance(stmt, ir.Write):
                continue
            if isinstance(stmt.value, ir.Literal):
                body.append(stmt)
                continue
            name = f"{self._name}_{stmt.operand.removeprefix('y_')}"
            value, function = self._outline(name, stmt.value, stmt.operand, lets)
            functions.append(function)
            body.append(ir.Write(stmt.operand, value))
        return tuple(body), functions

    def _group_lets(self) -> list[ir.Stmt]:
        """Return what a group decides, each by the names of those before it."""
        named: list[tuple[ir.Expr, ir.Expr]] = []
        lets: list[ir.Stmt] = []
        for name, value in self._params:
            short = map_expr(value, lambda node: next((known for whole, known in named if whole == node), node))
            lets.append(ir.Let(name, short))
            named.append((value, ir.Name(name, value.type)))
        return lets

    def _outline(self, name: str, expr: ir.Expr, result: str, lets: tuple[ir.Stmt, ...] = ()) -> tuple[ir.Expr, Function]:
        """Return a call of a function that computes `expr`, and that function, which begins with those of `lets` that it needs."""
        body = drop_unused_lets((*lets, ir.Return(expr)))
        nodes = list(walk_body(body))
        reads = {node.operand for node in nodes if isinstance(node, ir.Read)}
        names = {node.name for node in nodes if isinstance(node, ir.Name)}
        elements = [operand for operand in self._program.operands if operand.name in reads]
        groups = [(param, value) for param, value in self._params if param in names]
        params = [Param(operand.name, Scalar.U32, operand.dtype) for operand in elements]
        params += [Param(param, _machine(value)) for param, value in groups]
        args = [ir.Read(operand.name, Scalar.U32) for operand in elements] + [ir.Name(param, value.type) for param, value in groups]
        function = Function(name, tuple(params), Scalar.U32, map_body(body, _to_names), self._program.operand(result).dtype)
        return ir.Call(name, tuple(args), Scalar.U32), function

    def _is_shared(self, expr: ir.Expr) -> bool:
        """Whether the expression depends on operands of the group, and on nothing of the element."""
        shared = {name for name, _ in self._params}
        depends = False
        for node in walk_expr(expr):
            if isinstance(node, ir.Read | ir.Name):
                if not (node.operand in self._group if isinstance(node, ir.Read) else node.name in shared):
                    return False
                depends = True
        return depends

    def _hoist(self, expr: ir.Expr) -> ir.Expr:
        if self._is_shared(expr) and not isinstance(expr, ir.Name):
            for name, value in self._params:
                if value == expr:
                    return ir.Name(name, expr.type)
            name = self._param_name(expr)
            self._params.append((name, expr))
            return ir.Name(name, expr.type)
        return with_children(expr, tuple(self._hoist(child) for child in children(expr)))

    def _param_name(self, expr: ir.Expr) -> str:
        operand = next((node.operand for node in walk_expr(expr) if isinstance(node, ir.Read)), "shared")
        names = [other.name for other in self._program.operands]
        prefix = next((f"{name}_" for name in names if operand.startswith(f"{name}_")), "")
        functions = {function.name for function in self._program.functions}
        taken = {name for name, _ in self._params} | set(names) | functions | {self._name, f"{self._name}_quick"}
        stem = "is_plain" if expr.type is Scalar.BOOL else operand.removeprefix(prefix)
        choices = [stem, f"{operand}_value", *(f"{operand}_value{number}" for number in range(2, len(taken) + 3))]
        return next(choice for choice in choices if choice not in taken)


def _to_names(expr: ir.Expr) -> ir.Expr:
    return map_expr(expr, lambda node: ir.Name(node.operand, Scalar.U32) if isinstance(node, ir.Read) else node)


def _machine(expr: ir.Expr) -> Machine:
    if not isinstance(expr.type, Scalar | Struct):
        raise TypeError(expr)
    return expr.type
