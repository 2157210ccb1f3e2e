"""The reference of these tests: one invocation after the other, in Python's integers, on bool, u32 and i32; no masks, no NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from qgen.ir.nodes import (
    Assign,
    Binary,
    Bitcast,
    Builtin,
    Call,
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
    Name,
    Require,
    Return,
    Select,
    Stmt,
    Store,
    Unary,
    Uniform,
    Var,
)
from qgen.ir.program import Function
from qgen.ir.types import Scalar, Struct, Type

Result = int | tuple[int, ...]


class Returned(Exception):  # noqa: N818 - a way to leave, not an error
    """Carries what a `Return` gives."""

    def __init__(self, value: Result | None) -> None:
        super().__init__()
        self.value = value


def wrap(value: int, type_: Type) -> int:
    """Return the value modulo 2^32, in the range of its type."""
    if type_ is Scalar.BOOL:
        return int(bool(value))
    value %= 1 << 32
    return value - (1 << 32) if type_ is Scalar.I32 and value >= 1 << 31 else value


def binary(op: str, a: int, b: int, type_: Type) -> int:
    """Return the exact result of an operator; `type_` is the type of the operands."""
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "%":
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
        case "<<":
            return a << b
        case ">>":
            return a >> b
        case "&" | "&&":
            return a & b
        case "|" | "||":
            return a | b
        case "^":
            return a ^ b
        case "==":
            return int(a == b)
        case "!=":
            return int(a != b)
        case "<":
            return int(a < b)
        case "<=":
            return int(a <= b)
        case ">":
            return int(a > b)
        case ">=":
            return int(a >= b)
        case _:
            raise AssertionError(op, type_)


def builtin(name: str, args: tuple[int, ...], type_: Type) -> int:
    """Return a built-in's result on integers, read off the bits written as text."""
    bits = f"{args[0] % (1 << 32):032b}"
    match name:
        case "min":
            return min(args)
        case "max":
            return max(args)
        case "clamp":
            return min(max(args[0], args[1]), args[2])
        case "abs":
            return abs(args[0])
        case "countOneBits":
            return bits.count("1")
        case "countLeadingZeros":
            return len(bits) - len(bits.lstrip("0"))
        case "countTrailingZeros":
            return len(bits) - len(bits.rstrip("0"))
        case "firstLeadingBit":
            sought = "0" if type_ is Scalar.I32 and args[0] < 0 else "1"
            return 31 - bits.index(sought) if sought in bits else -1
        case _:
            raise AssertionError(name)


@dataclass
class Run:
    """One invocation or call: its names, and what all share."""

    functions: Mapping[str, Function]
    buffers: Mapping[str, dict[int, int]] = field(default_factory=dict)
    uniforms: Mapping[str, int] = field(default_factory=dict)
    x: int = 0
    y: int = 0
    held: bool = True

    def value(self, expr: Expr, names: dict[str, Result]) -> Result:
        match expr:
            case Literal():
                return int(expr.value)
            case Name():
                return names[expr.name]
            case Unary():
                operand = self.number(expr.operand, names)
                return wrap({"-": -operand, "~": ~operand, "!": 1 - operand}[expr.op], expr.type)
            case Binary():
                a, b = self.number(expr.lhs, names), self.number(expr.rhs, names)
                return wrap(binary(expr.op, a, b, expr.lhs.type), expr.type)
            case Select():
                then, otherwise = self.value(expr.then, names), self.value(expr.otherwise, names)
                return then if self.value(expr.condition, names) else otherwise
            case Builtin():
                return wrap(builtin(expr.name, tuple(self.number(arg, names) for arg in expr.args), expr.type), expr.type)
            case Convert() | Bitcast():
                return wrap(self.number(expr.operand, names), expr.type)
            case Call():
                return self.call(self.functions[expr.function], [self.value(arg, names) for arg in expr.args])
            case Field():
                struct, whole = expr.operand.type, self.value(expr.operand, names)
                assert isinstance(struct, Struct)
                assert isinstance(whole, tuple)
                return dict(zip((key for key, _ in struct.fields), whole, strict=True))[expr.name]
            case Construct():
                return tuple(self.number(arg, names) for arg in expr.args)
            case Load():
                return self.buffers[expr.buffer][self.number(expr.index, names)]
            case Uniform():
                return self.uniforms[expr.name]
            case Invocation():
                return {"x": self.x, "y": self.y}[expr.component]
            case _:
                raise AssertionError(expr)

    def number(self, expr: Expr, names: dict[str, Result]) -> int:
        value = self.value(expr, names)
        assert isinstance(value, int)
        return value

    def call(self, function: Function, args: list[Result]) -> Result:
        try:
            self.block(function.body, {param.name: arg for param, arg in zip(function.params, args, strict=True)})
        except Returned as returned:
            if returned.value is not None:
                return returned.value
        raise AssertionError(function.name)

    def invoke(self, body: tuple[Stmt, ...], x: int, y: int) -> None:
        self.x, self.y = x, y
        try:
            self.block(body, {})
        except Returned:
            return

    def block(self, body: tuple[Stmt, ...], outer: dict[str, Result]) -> None:
        names = dict(outer)
        own: set[str] = set()
        for stmt in body:
            self.stmt(stmt, names, own)
        for key in outer.keys() - own:
            outer[key] = names[key]

    def stmt(self, stmt: Stmt, names: dict[str, Result], own: set[str]) -> None:
        match stmt:
            case Let() | Var():
                names[stmt.name] = self.value(stmt.value, names)
                own.add(stmt.name)
            case Assign():
                names[stmt.name] = self.value(stmt.value, names)
            case Return():
                raise Returned(None if stmt.value is None else self.value(stmt.value, names))
            case If():
                self.block(stmt.then if self.value(stmt.condition, names) else stmt.otherwise, names)
            case For():
                index = self.number(stmt.start, names)
                while True:
                    inner = {**names, stmt.name: index}
                    if index >= self.number(stmt.stop, inner):
                        return
                    self.block(stmt.body, inner)
                    names.update((key, inner[key]) for key in names.keys() - {stmt.name})
                    index += self.number(stmt.step, names)
            case Require():
                holds = bool(self.value(stmt.condition, names))  # may call what does not hold
                self.held = self.held and holds
            case Store():
                self.buffers[stmt.buffer][self.number(stmt.index, names)] = self.number(stmt.value, names)
            case _:
                raise AssertionError(stmt)
