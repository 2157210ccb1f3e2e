"""A reader of WGSL expressions, written from the grammar of the specification: operators, calls, members, indices, literals.

A tree is a tuple of an operator or `call`, and its operands. Where the specification has no precedence between two operators, and where a
compiler is known to want parentheses, this reader takes none: only `+ - * / %` chain.
"""

from __future__ import annotations

import re
from typing import Any

from qgen.ir import nodes as ir
from qgen.ir.types import Scalar, print_type

Tree = tuple[Any, ...] | str
_TOKEN = re.compile(r"\s*(0x[0-9a-f]+u|\d+\.\d+f|\d+[ui]?|bitcast<\w+>|\w+|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^<>!~()\[\],.])")
_LEVELS = (("+", "-"), ("*", "/", "%"))
_UNCHAINED = frozenset({"<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "&&", "||"})


def read_expression(text: str) -> Tree:
    """Return the tree of an expression; raises ValueError where the text is not one."""
    reader = _Reader(text)
    tree = reader.expression()
    if reader.tokens:
        raise ValueError(f"{text}: `{reader.tokens[0]}` follows an expression")
    return tree


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        if "".join(self.tokens) != re.sub(r"\s", "", text):
            raise ValueError(f"{text}: not all of it is tokens")

    def take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def expression(self) -> Tree:
        lhs = self.unary()
        if self.tokens and self.tokens[0] in _UNCHAINED:
            return (self.tokens.pop(0), lhs, self.unary())
        return self.chain(0, lhs)

    def chain(self, level: int, first: Tree | None) -> Tree:
        if level == len(_LEVELS):
            return self.unary() if first is None else first
        lhs = self.chain(level + 1, first)
        while self.tokens and self.tokens[0] in _LEVELS[level]:
            op = self.tokens.pop(0)
            lhs = (op, lhs, self.chain(level + 1, None))
        return lhs

    def unary(self) -> Tree:
        for op in "-~!":
            if self.take(op):
                return (op, self.unary())
        tree = self.primary()
        while True:
            if self.take("."):
                tree = (".", tree, self.tokens.pop(0))
            elif self.take("["):
                tree = ("[]", tree, self.expression())
                self.expect("]")
            else:
                return tree

    def primary(self) -> Tree:
        if self.take("("):
            tree = self.expression()
            self.expect(")")
            return tree
        token = self.tokens.pop(0)
        if not self.take("("):
            return str(token)
        args = [self.expression()]
        while self.take(","):
            args.append(self.expression())
        self.expect(")")
        return ("call", token, *args)

    def expect(self, token: str) -> None:
        if not self.take(token):
            raise ValueError(f"`{token}` is missing before {self.tokens[:3]}")


def tree_of(expr: ir.Expr) -> Tree:
    """Return the tree that an expression's text has to have; constants as they are written in functions."""
    match expr:
        case ir.Literal(value, Scalar.U32):
            return f"{value}u"
        case ir.Literal(value, Scalar.F32):
            return f"{value}f"
        case ir.Literal(value, _):
            return str(value).lower()
        case ir.Name(name, _):
            return name
        case ir.Unary(op, operand, _):
            return (op, tree_of(operand))
        case ir.Binary(op, lhs, rhs, _):
            return (op, tree_of(lhs), tree_of(rhs))
        case ir.Select(condition, then, otherwise, _):
            return ("call", "select", tree_of(otherwise), tree_of(then), tree_of(condition))
        case ir.Builtin(name, args, _) | ir.Call(name, args, _):
            return ("call", name, *map(tree_of, args))
        case ir.Construct(args, struct):
            return ("call", struct.name, *map(tree_of, args))
        case ir.Convert(operand, type_):
            return ("call", print_type(type_), tree_of(operand))
        case ir.Bitcast(operand, type_):
            return ("call", f"bitcast<{print_type(type_)}>", tree_of(operand))
        case ir.Field(operand, name, _):
            return (".", tree_of(operand), name)
        case ir.Load(buffer, index):
            return ("[]", buffer, tree_of(index))
        case ir.Uniform(name):
            return (".", "params", name)
        case ir.Invocation(component):
            return (".", "id", component)
        case _:
            raise TypeError(expr)
