"""Statements and expressions of the LEGAL stage as WGSL that naga and Tint both take; whatever should have been lowered is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from qgen.dtypes import WORD_BITS
from qgen.errors import InternalError
from qgen.ir import nodes as ir
from qgen.ir.fold import fold_node
from qgen.ir.precedence import ATOM, UNARY, operand_precedences, parenthesise, precedence
from qgen.ir.program import Function, Kernel, kept
from qgen.ir.rewrite import walk_body
from qgen.ir.types import LANES, Machine, Scalar, Struct, Vector

INDENT = "    "
_LEAST_I32 = -(1 << 31)
_ONES: Final = (1 << WORD_BITS) - 1
"""A word of ones is no count."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands: from which value on constants are hexadecimal, which buffers are atomic, which hold vectors."""

    hex_from: int
    atomics: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()


FUNCTION = Context(256)
"""Functions work on bits, entry points and functions that load on counts, which are decimal whatever their size."""


def emit_entry_point(kernel: Kernel, atomics: frozenset[str], wide: frozenset[str] = frozenset()) -> str:
    """Return the text of an entry point; `atomics` are the buffers of atomic words, `wide` those of vectors."""
    head = f"fn {kernel.name}(@builtin(global_invocation_id) id: vec3u) {{"
    body = _emit_body(kernel.body, 1, Context(1 << 32, atomics, wide))
    return "\n".join((f"@compute @workgroup_size({kernel.workgroup_size})", head, *body, "}"))


@kept
def emit_function(function: Function) -> str:
    """Return the text of a function, its line of explanation first."""
    params = ", ".join(f"{param.name}: {_type(param.type)}" for param in function.params)
    doc = (f"// {function.doc}",) if function.doc else ()
    context = Context(1 << 32) if any(isinstance(node, ir.Load) for node in walk_body(function.body)) else FUNCTION
    head = f"fn {function.name}({params}) -> {_type(function.result)} {{"
    return "\n".join((*doc, head, *_emit_body(function.body, 1, context), "}"))


def emit_struct(struct: Struct) -> str:
    """Return the text of a struct's declaration."""
    return "\n".join((f"struct {struct.name} {{", *(f"{INDENT}{name}: {type_.value}," for name, type_ in struct.fields), "}"))


_VECTORS: Final = {Scalar.BOOL: "vec4<bool>", Scalar.U32: "vec4u", Scalar.I32: "vec4i", Scalar.F32: "vec4f"}


def _type(type_: Machine) -> str:
    match type_:
        case Struct():
            return type_.name
        case Vector(element):
            return _VECTORS[element]
        case Scalar():
            return type_.value


def _emit_body(body: tuple[ir.Stmt, ...], depth: int, context: Context) -> list[str]:
    return [f"{INDENT * depth}{line}" for stmt in body for line in _emit_stmt(stmt, context)]


def _emit_stmt(stmt: ir.Stmt, context: Context) -> list[str]:
    def text(expr: ir.Expr) -> str:
        return emit_expr(expr, context)

    match stmt:
        case ir.Let(name, value):
            return [f"let {name} = {text(value)};"]
        case ir.Var(name, value):
            return [f"var {name} = {text(value)};"]
        case ir.Assign(name, ir.Binary(op, ir.Name(target, _), value, _)) if name == target and op in {"|", "+"}:
            return [f"{name} {op}= {text(value)};"]
        case ir.Assign(name, value):
            return [f"{name} = {text(value)};"]
        case ir.Return(value):
            return ["return;" if value is None else f"return {text(value)};"]
        case ir.AtomicMax(buffer, index, value):
            return [f"atomicMax(&{buffer}[{text(index)}], {text(value)});"]
        case ir.Store(buffer, index, value) if buffer in context.atomics:
            return [f"atomicStore(&{buffer}[{text(index)}], {text(value)});"]
        case ir.StoreVector(buffer, index, value):
            return [f"{buffer}[{text(index)}] = {text(value)};"]
        case ir.Store(buffer, index, value):
            return [f"{_word(buffer, index, context)} = {text(value)};"]
        case ir.If(condition, (ir.Return() as only,), ()):
            return [f"if ({text(condition)}) {{ {_emit_stmt(only, context)[0]} }}"]
        case ir.If(condition, then, otherwise):
            other = ["} else {", *_emit_body(otherwise, 1, context)] if otherwise else []
            return [f"if ({text(condition)}) {{", *_emit_body(then, 1, context), *other, "}"]
        case ir.For(name, start, stop, step, body):
            advance = f"{name}++" if step == ir.Literal(1, Scalar.U32) else f"{name} += {text(step)}"
            head = f"for (var {name} = {text(start)}; {name} < {parenthesise(*_emit(stop, context), UNARY)}; {advance}) {{"
            return [head, *_emit_body(body, 1, context), "}"]
        case ir.Write() | ir.Accumulate() | ir.Require():
            raise InternalError(f"a {type(stmt).__name__} reaches the emitter: a pass before it should have lowered it")


def emit_expr(expr: ir.Expr, context: Context = FUNCTION) -> str:
    """Return an expression's text; raises `InternalError` for a node that should have been lowered."""
    return _emit(expr, context)[0]


def _word(buffer: str, index: ir.Expr, context: Context) -> str:
    if buffer not in context.wide:
        return f"{buffer}[{emit_expr(index, context)}]"
    four = ir.Literal(LANES, Scalar.U32)
    vector, word = (fold_node(ir.Binary(op, index, four, Scalar.U32)) for op in ("/", "%"))
    return f"{buffer}[{emit_expr(vector, context)}][{emit_expr(word, context)}]"


def _args(args: tuple[ir.Expr, ...], context: Context) -> str:
    """Return arguments with commas between; `a < b, c > d` would be a template list, so a `<` before the last one is in parentheses."""
    texts = [emit_expr(arg, context) for arg in args]
    for position, arg in enumerate(args[:-1]):
        if isinstance(arg, ir.Binary) and arg.op == "<":
            texts[position] = f"({texts[position]})"
    return ", ".join(texts)


def _literal(value: float, type_: object, context: Context) -> tuple[str, int]:
    match type_:
        case Scalar.BOOL:
            return str(value).lower(), ATOM
        case Scalar.U32:
            return f"{value}u" if value < min(context.hex_from, _ONES) else f"{value:#x}u", ATOM
        case Scalar.I32 if value == _LEAST_I32:
            return f"i32({_LEAST_I32})", ATOM
        case Scalar.I32:
            return str(value), ATOM if value >= 0 else UNARY
        case Scalar.F32:
            text = f"{value!r}f"
            return text, UNARY if text.startswith("-") else ATOM
        case _:
            raise InternalError("an exact integer reaches the emitter")


def _emit(expr: ir.Expr, context: Context) -> tuple[str, int]:
    match expr:
        case ir.Literal(value, type_):
            return _literal(value, type_, context)
        case ir.Name(name, _):
            return name, ATOM
        case ir.Unary(op, operand, _):
            return f"{op}{parenthesise(*_emit(operand, context), ATOM)}", UNARY
        case ir.Binary(op, lhs, rhs, _):
            context = replace(context, hex_from=min(context.hex_from, FUNCTION.hex_from)) if op == "&" else context  # a mask is no count
            (first, own_first), (second, own_second) = _emit(lhs, context), _emit(rhs, context)
            left, right = operand_precedences(op)
            return f"{parenthesise(first, own_first, left)} {op} {parenthesise(second, own_second, right)}", precedence(op)
        case ir.Select(condition, then, otherwise, _):
            return f"select({_args((otherwise, then, condition), context)})", ATOM
        case ir.Builtin(name, args, _) | ir.Call(name, args, _):
            return f"{name}({_args(args, context)})", ATOM
        case ir.Convert(operand, type_):
            return f"{_type(type_)}({emit_expr(operand, context)})", ATOM
        case ir.Bitcast(operand, type_):
            return f"bitcast<{_type(type_)}>({emit_expr(operand, context)})", ATOM
        case ir.Field(operand, name, _):
            return f"{parenthesise(*_emit(operand, context), ATOM)}.{name}", ATOM
        case ir.Construct(args, struct):
            return f"{struct.name}({_args(args, context)})", ATOM
        case ir.LoadVector(buffer, index):
            return f"{buffer}[{emit_expr(index, context)}]", ATOM
        case ir.Compose(args, type_):
            return f"{_type(type_)}({_args(args, context)})", ATOM
        case ir.Component(operand, number, _):
            return f"{parenthesise(*_emit(operand, context), ATOM)}.{'xyzw'[number]}", ATOM
        case ir.Load(buffer, index):
            word = _word(buffer, index, context)
            return f"atomicLoad(&{word})" if buffer in context.atomics else word, ATOM
        case ir.Uniform(name):
            return f"params.{name}", ATOM
        case ir.Invocation(component):
            return f"id.{component}", ATOM
        case ir.Typed() | ir.Read() | ir.Reduce():
            raise InternalError(f"a {type(expr).__name__} reaches the emitter: a pass before it should have lowered it")
