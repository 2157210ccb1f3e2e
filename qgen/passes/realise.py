"""CHECKED to REALISED: every operation becomes the library function whose `is` clause it matches; values become machine types.

Before:

    write y = saturate<uint8>(round_even<int[-262144, 262144]>(div<float32>(read x, read y_scale)))

After, in a mode that may use functions with a condition:

    write y = saturate_unsigned_uint8(rint_f32(div_f32(read x, read y_scale)))
        quick = saturate_unsigned_uint8(rint_quotient(read x, read y_scale)) where its requires hold

Selection is done twice, *sure* (functions that are always right) and *quick* (those with a condition too). What the mode allows is decided
here and nowhere else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from qgen.dtypes import DTYPES, DType
from qgen.errors import QgenError
from qgen.frontend.check_fn import instance_name
from qgen.ir import nodes as ir
from qgen.ir.names import snake_case
from qgen.ir.nodes import Op
from qgen.ir.print import print_expr
from qgen.ir.program import Domain, Function, Kernel, Operand, Program, Stage
from qgen.ir.rewrite import walk_body
from qgen.ir.types import Int, Scalar, machine_type
from qgen.numerics.library import Candidate, candidates, closure, is_library_name
from qgen.numerics.normalise import normalise
from qgen.passes.split import entry_name, inline_lets


@dataclass(frozen=True, slots=True)
class Mode:
    """A numerics mode: the conditions of `is` clauses that it may rely on, and whether it redoes what their requires refuse."""

    conditions: frozenset[str]
    has_fallback: bool


MODES: Final = {
    "strict": Mode(frozenset(), has_fallback=False),
    "exact": Mode(frozenset({"exact"}), has_fallback=True),
    "fast": Mode(frozenset({"exact"}), has_fallback=False),
}
"""Each numerics mode by name."""

_INT32: Final = Int.of_bits(32)
_INTEGER_OPS: Final = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*"}
_INTEGER_BUILTINS: Final = {Op.MIN: "min", Op.MAX: "max", Op.ABS: "abs"}


def realise(program: Program, mode: str) -> Program:
    """Return the program on machine values; raises `QgenError` QG301 where no function of the library computes an operation."""
    allowed = MODES[mode]
    _hold_names(program)
    sure, quick = _Realiser(program, frozenset()), _Realiser(program, allowed.conditions)
    kernels: list[Kernel] = []
    for kernel in program.kernels:
        body: list[ir.Stmt] = []
        for stmt in _statements(kernel):
            value = normalise(stmt.value)
            if isinstance(stmt, ir.Let):
                body.append(ir.Let(stmt.name, sure.expr(value)))
                continue
            if isinstance(stmt, ir.Accumulate):
                body.append(ir.Accumulate(stmt.operand, sure.key(program.operand(stmt.operand), sure.expr(value))))
                continue
            # What a group shares is computed once: the sure way will do.
            is_shared = program.operand(stmt.operand).per_group
            fast = quick.expr(value) if allowed.conditions and not is_shared else None
            if fast is None or not quick.used_conditional:
                body.append(ir.Write(stmt.operand, sure.expr(value)))
            else:
                holds = None if allowed.has_fallback else ir.Literal(value=True, type=Scalar.BOOL)
                body.append(ir.Write(stmt.operand, sure.expr(value), ir.Quick(fast, holds)))
        kernels.append(replace(kernel, body=tuple(body)))
    scratch = [operand for operand in program.operands if operand.is_scratch]
    if scratch:
        name = entry_name(kernels[-1].name, "clear")
        cleared = tuple(ir.Write(operand.name, ir.Literal(0, Scalar.U32)) for operand in scratch)
        kernels.insert(0, Kernel(name, cleared, domain=Domain.GROUPS))
    needed = {node.function for kernel in kernels for node in walk_body(kernel.body) if isinstance(node, ir.Call)}
    functions = _closures(key for realiser in (quick, sure) for key in realiser.used if instance_name(*key) in needed)
    return Program(program.name, Stage.REALISED, program.operands, tuple(kernels), functions)


def _hold_names(program: Program) -> None:
    """Refuse names of a formula that the library's functions have in the emitted text."""
    named = [operand.name for operand in program.operands]
    named += [stmt.name for kernel in program.kernels for stmt in kernel.body if isinstance(stmt, ir.Let)]
    for name in (*named, snake_case(program.name)):
        if is_library_name(name):
            raise QgenError("QG304", f"`{name}` is what the numerics library calls a function", hint="choose another name in the formula")


def _statements(kernel: Kernel) -> list[ir.Let | ir.Write | ir.Accumulate]:
    """Return a kernel's statements; those over elements without the lets that a pattern may span."""
    is_plain = kernel.domain is Domain.ELEMENTS and not any(isinstance(stmt, ir.Accumulate) for stmt in kernel.body)
    body = inline_lets(kernel.body) if is_plain else kernel.body
    return [stmt for stmt in body if isinstance(stmt, ir.Let | ir.Write | ir.Accumulate)]


def _closures(used: Iterable[tuple[str, DType | None]]) -> tuple[Function, ...]:
    """Return the functions used and those they need, callers first, each once."""
    last: dict[str, Function] = {}
    for name, format_ in used:
        for function in closure(name, format_):
            last.pop(function.name, None)
            last[function.name] = function
    return tuple(last.values())


class _Realiser:
    def __init__(self, program: Program, allowed: frozenset[str]) -> None:
        self._program = program
        self._allowed = allowed | {None}
        self.used: dict[tuple[str, DType | None], None] = {}
        self.used_conditional = False

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Read(operand, _):
                return self._of_key(self._program.operand(operand))
            case ir.Name(name, type_):
                return ir.Name(name, machine_type(type_))
            case ir.Literal(value, _):
                return ir.Literal(value, Scalar.I32)
            case ir.Typed():
                return self._typed(expr)
            case ir.Select(condition, then, otherwise, type_):
                return ir.Select(self.expr(condition), self.expr(then), self.expr(otherwise), machine_type(type_))
            case ir.Binary(op, lhs, rhs, type_):
                return ir.Binary(op, self.expr(lhs), self.expr(rhs), type_)
            case ir.Unary(op, operand, type_):
                return ir.Unary(op, self.expr(operand), type_)
            case _:
                raise TypeError(expr)

    def key(self, operand: Operand, value: ir.Expr) -> ir.Expr:
        """Return the u32 by which a reduction of `operand` compares a value: its greatest is the value reduced."""
        return self._library(f"{_reduction(operand)}_key", value)

    def _of_key(self, operand: Operand) -> ir.Expr:
        read = ir.Read(operand.name, Scalar.U32)
        return self._library(f"of_{_reduction(operand)}_key", read) if operand.is_scratch else read

    def _library(self, name: str, arg: ir.Expr) -> ir.Expr:
        self.used[name, None] = None
        return ir.Call(name, (arg,), Scalar.U32)

    def _typed(self, expr: ir.Typed) -> ir.Expr:
        native = self._native(expr) or _constant(expr)
        if native is not None:
            return native
        for candidate in candidates().get((expr.op, expr.type if isinstance(expr.type, DType) else None), ()):
            bound = self._match(candidate, expr)
            if bound is not None:
                self.used[candidate.name, candidate.format] = None
                self.used_conditional |= candidate.pattern.condition is not None
                args = tuple(self.expr(bound[name]) for name, _ in candidate.pattern.params)
                return ir.Call(instance_name(candidate.name, candidate.format), args, machine_type(expr.type))
        raise QgenError(
            "QG301",
            f"no function of the numerics library computes {print_expr(expr)}",
            hint="add a `fn` with this `is` clause under qgen/numerics, or write the formula with other conversions",
            place=expr.span,
        )

    def _match(self, candidate: Candidate, expr: ir.Typed) -> Mapping[str, ir.Expr] | None:
        if candidate.pattern.condition not in self._allowed:
            return None
        bound: dict[str, ir.Expr] = {}
        return bound if _matches(candidate.pattern.expr, expr, bound) else None

    def _native(self, expr: ir.Typed) -> ir.Expr | None:
        """Return integer arithmetic as i32 operations, where it cannot leave 32 bits or leaves them modulo 2^32 under a wrap."""
        if expr.op is Op.WRAP:
            (inner,) = expr.args
            if isinstance(inner, ir.Typed) and inner.op in _INTEGER_OPS:
                return self._integer(inner)
        if not (isinstance(expr.type, Int) and expr.type.within(_INT32) and all(isinstance(arg.type, Int) for arg in expr.args)):
            return None
        if not all(isinstance(arg.type, Int) and arg.type.within(_INT32) for arg in expr.args):
            return None
        if expr.op in _INTEGER_OPS:
            return self._integer(expr)
        if expr.op in _INTEGER_BUILTINS:
            return ir.Builtin(_INTEGER_BUILTINS[expr.op], tuple(self.expr(arg) for arg in expr.args), Scalar.I32)
        return ir.Unary("-", self.expr(expr.args[0]), Scalar.I32) if expr.op is Op.NEG else None

    def _integer(self, expr: ir.Typed) -> ir.Expr:
        lhs, rhs = expr.args
        return ir.Binary(_INTEGER_OPS[expr.op], self.expr(lhs), self.expr(rhs), Scalar.I32)


def _reduction(operand: Operand) -> str:
    if operand.reduction is None:
        raise TypeError(operand)
    return str(operand.reduction.value)


def _constant(expr: ir.Typed) -> ir.Expr | None:
    """Return an integer constant that float32 holds, as the bits of it."""
    match expr:
        case ir.Typed(Op.CONVERT, (ir.Literal(int(value), Int()),), type_) if type_ == DTYPES["float32"] and abs(value) <= 1 << 24:
            return ir.Literal(int.from_bytes(struct.pack(">f", value)), Scalar.U32)
        case _:
            return None


def _matches(pattern: ir.Expr, expr: ir.Expr, bound: dict[str, ir.Expr]) -> bool:
    """Whether an expression is what a pattern says, every name in which is a parameter; adds to `bound` what each of them is."""
    match pattern:
        case ir.Name(name, type_):
            fits = expr.type.within(type_) if isinstance(type_, Int) and isinstance(expr.type, Int) else expr.type == type_
            return fits and bound.setdefault(name, expr) == expr
        case ir.Typed(op, args, type_):
            if not (isinstance(expr, ir.Typed) and expr.op is op):
                return False
            if expr.type != type_ and not (isinstance(type_, Int) and isinstance(expr.type, Int) and expr.type.within(type_)):
                return False
            return all(_matches(below, found, bound) for below, found in zip(args, expr.args, strict=True))
        case _:
            return pattern == expr
