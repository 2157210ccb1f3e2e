"""CHECKED to CHECKED: cuts a program at its reductions, into kernels that run one after the other.

Before:

    kernel main {
        let scale: float32 = div<float32>(reduce_max<float32>(read x), …)
        write y_scale = scale
        write y = saturate<uint8>(round_even<…>(div<float32>(read x, scale)))
    }

After:

    kernel reduce { accumulate x_max = read x }
    kernel finish over groups { write y_scale = div<float32>(read x_max, …) }
    kernel main { write y = saturate<uint8>(round_even<…>(div<float32>(read x, read y_scale))) }

What a group shares and the program writes is read back where elements need it; the same object where nothing is reduced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from qgen.dtypes import EXACT
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.names import free_name
from qgen.ir.program import Domain, Kernel, Operand, Program
from qgen.ir.rewrite import children, drop_unused_lets, map_expr, walk_body, walk_expr, with_children


def split_reductions(program: Program) -> Program:
    """Return the program with a kernel that reduces, one that computes what groups share, and one for the elements."""
    (kernel,) = program.kernels
    if not any(isinstance(node, ir.Reduce) for node in walk_body(kernel.body)):
        return program
    body = inline_lets(kernel.body)
    reductions = _distinct(node for node in walk_body(body) if isinstance(node, ir.Reduce))
    scratch = _scratch_operands(program, reductions)
    reads: list[tuple[ir.Expr, ir.Expr]] = [
        (node, ir.Read(operand.name, operand.dtype)) for node, operand in zip(reductions, scratch, strict=True)
    ]
    results: list[tuple[ir.Expr, ir.Expr]] = [
        (stmt.value, ir.Read(stmt.operand, program.operand(stmt.operand).dtype))
        for stmt in body
        if isinstance(stmt, ir.Write) and program.operand(stmt.operand).per_group
    ]
    gathered = tuple(ir.Accumulate(operand.name, node.value) for node, operand in zip(reductions, scratch, strict=True))
    lets = tuple(stmt for stmt in body if isinstance(stmt, ir.Let))
    kernels = (
        Kernel(entry_name(kernel.name, "reduce"), drop_unused_lets((*lets, *gathered))),
        Kernel(entry_name(kernel.name, "finish"), _part(program, body, reads, per_group=True), domain=Domain.GROUPS),
        Kernel(kernel.name, _part(program, body, [*results, *reads], per_group=False)),
    )
    inputs = tuple(operand for operand in program.operands if not operand.is_output)
    outputs = tuple(operand for operand in program.operands if operand.is_output)
    return Program(program.name, program.stage, (*inputs, *scratch, *outputs), kernels)


def _part(program: Program, body: tuple[ir.Stmt, ...], table: list[tuple[ir.Expr, ir.Expr]], *, per_group: bool) -> tuple[ir.Stmt, ...]:
    """Return the writes of what groups share, or of what they do not, and the names that these need."""
    stmts: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Let(name, value):
                stmts.append(ir.Let(name, _replace(value, table)))
            case ir.Write(operand, value) if program.operand(operand).per_group == per_group:
                stmts.append(ir.Write(operand, _replace(value, table)))
            case _:
                pass
    return drop_unused_lets(tuple(stmts))


def entry_name(main: str, role: str) -> str:
    """Return the name of the entry point that does `role` for the one called `main`."""
    return role if main == "main" else f"{main}_{role}"


def inline_lets(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """Return a CHECKED body whose names that are used once, or that no machine type holds, are replaced by their values.

    So a pattern may span such a `let`; what is used more often stays named, and is computed once.
    """
    uses = Counter(node.name for node in walk_body(body) if isinstance(node, ir.Name))
    values: dict[str, ir.Expr] = {}
    stmts: list[ir.Stmt] = []

    def inline(expr: ir.Expr) -> ir.Expr:
        return map_expr(expr, lambda node: values.get(node.name, node) if isinstance(node, ir.Name) else node)

    for stmt in body:
        match stmt:
            case ir.Let(name, value) if uses[name] <= 1 or value.type is EXACT:
                values[name] = inline(value)
            case ir.Let(name, value):
                stmts.append(ir.Let(name, inline(value)))
            case ir.Write(operand, value):
                stmts.append(ir.Write(operand, inline(value)))
            case _:
                raise InternalError(f"a formula has no {type(stmt).__name__}")
    return tuple(stmts)


def _distinct(nodes: Iterable[ir.Reduce]) -> list[ir.Reduce]:
    found: list[ir.Reduce] = []
    for node in nodes:
        if node not in found:
            found.append(node)
    return found


def _scratch_operands(program: Program, reductions: list[ir.Reduce]) -> list[Operand]:
    taken = {operand.name for operand in program.operands}
    operands: list[Operand] = []
    for node in reductions:
        read = next((below.operand for below in walk_expr(node) if isinstance(below, ir.Read)), "value")
        stem = f"{read}_{node.op.value}"
        name = free_name(stem, taken, separator="")
        taken.add(name)
        operands.append(Operand(name, node.type, is_output=True, per_group=True, reduction=node.op))
    return operands


def _replace(expr: ir.Expr, table: list[tuple[ir.Expr, ir.Expr]]) -> ir.Expr:
    """Return the expression with each largest part that stands in the table replaced."""
    for whole, other in table:
        if whole == expr:
            return other
    return with_children(expr, tuple(_replace(child, table) for child in children(expr)))
