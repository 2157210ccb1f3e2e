"""Programs as text for people, for goldens and for the messages of `InternalError`; every node of every stage prints."""

from __future__ import annotations

from typing import assert_never

from qgen.ir import nodes as ir
from qgen.ir.precedence import ATOM, UNARY, operand_precedences, parenthesise, precedence
from qgen.ir.program import Domain, Function, Kernel, Operand, Program
from qgen.ir.types import Machine, Scalar, Value, Vector, element_of, print_type

_INDENT = "    "


def print_program(program: Program) -> str:
    """Return the program's text: operands, kernels, functions."""
    lines = [f"program {program.name} {program.stage.value}"]
    lines += [f"{_INDENT}{_print_operand(operand, program.wide)}" for operand in program.operands]
    if program.uniforms:
        lines.append(f"{_INDENT}uniforms {', '.join(program.uniforms)}")
    for kernel in program.kernels:
        lines += ["", *_print_kernel(kernel)]
    for function in program.functions:
        lines += ["", *_print_function(function)]
    return "\n".join(lines) + "\n"


def _print_operand(operand: Operand, wide: frozenset[str]) -> str:
    group = " per group" if operand.per_group else ""
    kind = f"scratch {operand.reduction.value}" if operand.reduction else "result" if operand.is_output else "operand"
    return f"{kind} {operand.name}: {operand.dtype.name}{group}{' in vectors' if operand.name in wide else ''}"


def _print_kernel(kernel: Kernel) -> list[str]:
    size = f" workgroup {kernel.workgroup_size}" if kernel.workgroup_size else ""
    domain = "" if kernel.domain is Domain.ELEMENTS else f" over {kernel.domain.value}"
    return [f"kernel {kernel.name}{domain}{size} {{", *print_body(kernel.body), "}"]


def _print_function(function: Function) -> list[str]:
    params = ", ".join(f"{param.name}: {_print_held(param.type, param.of)}" for param in function.params)
    return [f"fn {function.name}({params}) -> {_print_held(function.result, function.of)} {{", *print_body(function.body), "}"]


def _print_held(type_: Machine, of: Value | None) -> str:
    """Return which values a machine type holds, where that is known."""
    held = print_type(of or element_of(type_))
    return f"vec4<{held}>" if isinstance(type_, Vector) else held


def print_body(body: tuple[ir.Stmt, ...], depth: int = 1) -> list[str]:
    """Return the lines of a block, indented by `depth`."""
    pad = _INDENT * depth
    lines: list[str] = []
    for stmt in body:
        match stmt:
            case ir.Let(name, value):
                lines.append(f"{pad}let {name}: {print_type(value.type)} = {print_expr(value)}")
            case ir.Var(name, value):
                lines.append(f"{pad}var {name}: {print_type(value.type)} = {print_expr(value)}")
            case ir.Assign(name, value):
                lines.append(f"{pad}{name} = {print_expr(value)}")
            case ir.Return(value):
                lines.append(f"{pad}return" + ("" if value is None else f" {print_expr(value)}"))
            case ir.Require(condition):
                lines.append(f"{pad}require {print_expr(condition)}")
            case ir.Write(operand, value, quick):
                lines.append(f"{pad}write {operand} = {print_expr(value)}")
                if quick is not None:
                    where = "its requires hold" if quick.holds is None else print_expr(quick.holds)
                    lines.append(f"{pad}{_INDENT}quick = {print_expr(quick.value)} where {where}")
            case ir.Accumulate(operand, value):
                lines.append(f"{pad}accumulate {operand} = {print_expr(value)}")
            case ir.AtomicMax(buffer, index, value):
                lines.append(f"{pad}atomic max {buffer}[{print_expr(index)}], {print_expr(value)}")
            case ir.StoreVector(buffer, index, value):
                lines.append(f"{pad}store vector {buffer}[{print_expr(index)}] = {print_expr(value)}")
            case ir.Store(buffer, index, value):
                lines.append(f"{pad}store {buffer}[{print_expr(index)}] = {print_expr(value)}")
            case ir.If(condition, then, otherwise):
                lines += [f"{pad}if {print_expr(condition)} {{", *print_body(then, depth + 1)]
                lines += [f"{pad}}} else {{", *print_body(otherwise, depth + 1)] if otherwise else []
                lines.append(f"{pad}}}")
            case ir.For(name, start, stop, step, inner):
                lines.append(f"{pad}for {name} from {print_expr(start)} below {print_expr(stop)} step {print_expr(step)} {{")
                lines += [*print_body(inner, depth + 1), f"{pad}}}"]
            case _:
                assert_never(stmt)
    return lines


def print_expr(expr: ir.Expr) -> str:
    """Return the expression's text."""
    return _print(expr)[0]


def _args(args: tuple[ir.Expr, ...]) -> str:
    return ", ".join(print_expr(arg) for arg in args)


def _print(expr: ir.Expr) -> tuple[str, int]:
    match expr:
        case ir.Literal(value, Scalar.U32):
            return f"{value}u" if isinstance(value, int) and value < 1 << 10 else f"{value:#x}u", ATOM
        case ir.Literal(value, Scalar.BOOL):
            return str(value).lower(), ATOM
        case ir.Literal(value, _):
            return repr(value), ATOM if value >= 0 else 0
        case ir.Name(name, _) | ir.Uniform(name) | ir.Read(name, _):
            prefix = {ir.Uniform: "uniform ", ir.Read: "read "}.get(type(expr), "")
            return f"{prefix}{name}", UNARY if prefix else ATOM
        case ir.Invocation(component):
            return f"invocation.{component}", ATOM
        case ir.Unary(op, operand, _):
            return f"{op}{parenthesise(*_print(operand), ATOM)}", UNARY
        case ir.Binary(op, lhs, rhs, _):
            left, right = operand_precedences(op)
            return f"{parenthesise(*_print(lhs), left)} {op} {parenthesise(*_print(rhs), right)}", precedence(op)
        case ir.Select(condition, then, otherwise, _):
            return f"if {print_expr(condition)} then {print_expr(then)} else {print_expr(otherwise)}", 0
        case ir.Builtin(name, args, _) | ir.Call(name, args, _):
            return f"{name}({_args(args)})", ATOM
        case ir.Construct(args, struct):
            return f"{struct.name}({_args(args)})", ATOM
        case ir.Convert(operand, type_):
            return f"{print_type(type_)}({print_expr(operand)})", ATOM
        case ir.Bitcast(operand, type_):
            return f"bitcast<{print_type(type_)}>({print_expr(operand)})", ATOM
        case ir.Field(operand, name, _):
            return f"{parenthesise(*_print(operand), ATOM)}.{name}", ATOM
        case ir.Typed(op, args, type_):
            return f"{op.value}<{print_type(type_)}>({_args(args)})", ATOM
        case ir.Reduce(op, value, type_):
            return f"reduce_{op.value}<{print_type(type_)}>({print_expr(value)})", ATOM
        case ir.LoadVector(buffer, index):
            return f"vector {buffer}[{print_expr(index)}]", UNARY
        case ir.Compose(args, type_):
            return f"{print_type(type_)}({_args(args)})", ATOM
        case ir.Component(operand, number, _):
            return f"{parenthesise(*_print(operand), ATOM)}.{'xyzw'[number]}", ATOM
        case ir.Load(buffer, index):
            return f"{buffer}[{print_expr(index)}]", ATOM
        case _:
            assert_never(expr)
