"""Text of the formula language to its AST, with the grammar `grammar/formula.lark`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, v_args
from lark.tree import Meta

from qgen.errors import QgenError, Span
from qgen.frontend import ast
from qgen.resources import read_resource

_T = TypeVar("_T")
_READABLE = {
    "NAME": "a name",
    "NUMBER": "a number",
    "FLOAT": "a number with a point",
    "TRUTH": "`true` or `false`",
    "OVERFLOW": "`saturating` or `wrapping`",
    "PER_GROUP": "`per group`",
    "OR": "`||`",
    "AND": "`&&`",
    "COMPARE": "a comparison",
    "BITWISE": "`&`, `|` or `^`",
    "SHIFT": "`<<` or `>>`",
    "SUM": "`+` or `-`",
    "PRODUCT": "`*`, `/` or `%`",
    "NOT": "`!` or `~`",
    "SEMICOLON": "`;`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COLON": "`:`",
    "EQUAL": "`=`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "LESSTHAN": "`<`",
    "MORETHAN": "`>`",
}


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(read_resource("grammar", "formula.lark"), start="file", parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse_source(text: str, file: str) -> ast.SourceFile:
    """Return the AST of `text`; `file` is the name to show in errors. Raises `QgenError` QG001 at the first place that does not parse."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        _raise_parse_error(error, text, file)
    try:
        items = _Builder(text, file).transform(tree)
    except RecursionError:
        place = Span(file, 1, 1, 2)
        hint = "name parts of it with `let`"
        raise QgenError("QG002", "an expression is nested too deeply", hint=hint, place=place, source=text) from None
    return ast.SourceFile(
        file,
        text,
        tuple(item for item in items if isinstance(item, ast.OpDecl)),
        tuple(item for item in items if isinstance(item, ast.FnDecl)),
        tuple(item for item in items if isinstance(item, ast.StructDecl)),
    )


def _raise_parse_error(error: UnexpectedInput, text: str, file: str) -> NoReturn:
    line, column = error.line, error.column
    width = 1
    match error:
        case UnexpectedToken(token=token) if token.type != "$END":
            found, expected, width = f"`{token}`", set(error.expected), max(1, len(str(token)))
        case UnexpectedCharacters():
            found, expected = f"`{error.char}`", set(error.allowed)
        case UnexpectedEOF() | UnexpectedToken():
            found, expected = "the end of the text", set(error.expected)
            line = max(1, text.count("\n") + (not text.endswith("\n")))
            column = len(text.split("\n")[line - 1]) + 1 if text else 1
        case _:
            raise error
    names = sorted(_READABLE.get(name, f"`{name.lower()}`") for name in expected if not name.startswith("__"))
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    raise QgenError(
        "QG001",
        f"this does not parse: found {found}",
        hint=f"expected {shown}" if shown else "see grammar/formula.lark",
        place=Span(file, line, column, column + width),
        source=text,
    ) from None


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    """Builds AST nodes bottom-up; each method is the grammar's alternative of the same name."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__()
        self._lines = text.split("\n")
        self._file = file

    def _at(self, meta: Meta) -> Span:
        end = meta.end_column if meta.end_line == meta.line else len(self._lines[meta.line - 1]) + 1
        return Span(self._file, meta.line, meta.column, end)

    def _doc(self, line: int) -> str:
        comments: list[str] = []
        while line >= 2 and self._lines[line - 2].startswith("//"):
            line -= 1
            comments.insert(0, self._lines[line - 1].removeprefix("//").strip())
        return " ".join(comments)

    def file(self, _meta: Meta, items: list[Any]) -> list[Any]:
        return items

    def op(self, meta: Meta, items: list[Any]) -> ast.OpDecl:
        name, operands, results, *attributes, body = items
        return ast.OpDecl(str(name), operands, results, tuple(attributes), body, self._at(meta))

    def operands(self, _meta: Meta, items: list[Any]) -> tuple[ast.OperandDecl, ...]:
        return tuple(items)

    def results(self, _meta: Meta, items: list[Any]) -> tuple[ast.OperandDecl, ...]:
        return tuple(items)

    def operand(self, meta: Meta, items: list[Any]) -> ast.OperandDecl:
        name, type_name, per_group, default = items
        return ast.OperandDecl(str(name), str(type_name), per_group is not None, default, self._at(meta))

    def default(self, _meta: Meta, items: list[Any]) -> int:
        return int(items[0], 0)

    def result(self, meta: Meta, items: list[Any]) -> ast.OperandDecl:
        return self.operand(meta, items)

    def attribute(self, meta: Meta, items: list[Any]) -> ast.AttributeDecl:
        name, kind, default = items
        return ast.AttributeDecl(str(name), str(kind), str(default), self._at(meta))

    def fn(self, meta: Meta, items: list[Any]) -> ast.FnDecl:
        name, generic, *rest, body = items
        return ast.FnDecl(
            str(name),
            generic,
            _only(rest, ast.ParamDecl),
            _only(rest, ast.TypeRef)[0],
            _only(rest, ast.Clause),
            body,
            self._doc(meta.line),
            self._at(meta),
        )

    def generic(self, _meta: Meta, items: list[Any]) -> tuple[str, str]:
        return str(items[0]), str(items[1])

    def param(self, meta: Meta, items: list[Any]) -> ast.ParamDecl:
        return ast.ParamDecl(str(items[0]), items[1], self._at(meta))

    def type(self, meta: Meta, items: list[Any]) -> ast.TypeRef:
        return ast.TypeRef(str(items[0]), int(items[1], 0) if items[1] is not None else None, self._at(meta))

    def clause(self, meta: Meta, items: list[Any]) -> ast.Clause:
        return ast.Clause(items[0], str(items[1]) if items[1] is not None else None, self._at(meta))

    def struct(self, meta: Meta, items: list[Any]) -> ast.StructDecl:
        return ast.StructDecl(str(items[0]), _only(items, ast.ParamDecl), self._at(meta))

    def block(self, _meta: Meta, items: list[Any]) -> tuple[ast.Stmt, ...]:
        return tuple(items)

    def let(self, meta: Meta, items: list[Any]) -> ast.Let:
        return ast.Let(str(items[0]), items[1], self._at(meta))

    def assign(self, meta: Meta, items: list[Any]) -> ast.Assign:
        return ast.Assign(str(items[0]), items[1], self._at(meta))

    def return_(self, meta: Meta, items: list[Any]) -> ast.Return:
        return ast.Return(items[0], self._at(meta))

    def require(self, meta: Meta, items: list[Any]) -> ast.Require:
        return ast.Require(items[0], self._at(meta))

    def branch(self, meta: Meta, items: list[Any]) -> ast.Branch:
        return ast.Branch(items[0], items[1], items[2] or (), self._at(meta))

    def conditional(self, meta: Meta, items: list[Any]) -> ast.Conditional:
        return ast.Conditional(items[0], items[1], items[2], self._at(meta))

    def binary(self, meta: Meta, items: list[Any]) -> ast.Binary:
        return ast.Binary(str(items[1]), items[0], items[2], self._at(meta))

    def unary(self, meta: Meta, items: list[Any]) -> ast.Unary:
        return ast.Unary(str(items[0]), items[1], self._at(meta))

    def kind_test(self, meta: Meta, items: list[Any]) -> ast.KindTest:
        return ast.KindTest(str(items[0]), str(items[1]), self._at(meta))

    def cast(self, meta: Meta, items: list[Any]) -> ast.Cast:
        return ast.Cast(items[0], str(items[1]), str(items[2]) if items[2] is not None else None, self._at(meta))

    def field(self, meta: Meta, items: list[Any]) -> ast.Field:
        return ast.Field(items[0], str(items[1]), self._at(meta))

    def number(self, meta: Meta, items: list[Any]) -> ast.Number:
        return ast.Number(int(items[0], 0), self._at(meta))

    def float_number(self, meta: Meta, items: list[Any]) -> ast.FloatNumber:
        return ast.FloatNumber(float(items[0]), self._at(meta))

    def truth(self, meta: Meta, items: list[Any]) -> ast.Truth:
        return ast.Truth(value=str(items[0]) == "true", span=self._at(meta))

    def name(self, meta: Meta, items: list[Any]) -> ast.Name:
        return ast.Name(str(items[0]), self._at(meta))

    def reduce(self, meta: Meta, items: list[Any]) -> ast.Reduce:
        return ast.Reduce(str(items[0]), items[1], self._at(meta))

    def call(self, meta: Meta, items: list[Any]) -> ast.Call:
        return ast.Call(str(items[0]), tuple(item for item in items[1:] if item is not None), self._at(meta))


def _only(items: list[Any], kind: type[_T]) -> tuple[_T, ...]:
    return tuple(item for item in items if isinstance(item, kind))
