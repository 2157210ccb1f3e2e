"""Text to AST: every alternative of the grammar, what binds tighter, places, comments, and the words of a text that does not parse."""

from __future__ import annotations

import dataclasses
import re

import pytest

from qgen.errors import QgenError, Span
from qgen.frontend import ast
from qgen.frontend.parse import _READABLE, _parser, parse_source
from tests.goldens import Goldens

U32, I32 = ast.TypeRef("u32", None), ast.TypeRef("i32", None)
A, B, C = ast.Name("a"), ast.Name("b"), ast.Name("c")

OP = "op O(x: X) -> y: Y { y = x; }"
OP_NODE = ast.OpDecl(
    "O",
    (ast.OperandDecl("x", "X", per_group=False, default=None),),
    (ast.OperandDecl("y", "Y", per_group=False, default=None),),
    (),
    (ast.Assign("y", ast.Name("x")),),
)
FN_NODE = ast.FnDecl("f", None, (), U32, (), (), "")

EXPRESSIONS: dict[str, tuple[str, ast.Expr]] = {
    "expr": ("a", A),
    "conditional": ("if a then b else c", ast.Conditional(A, B, C)),
    "disjunction": ("a || b", ast.Binary("||", A, B)),
    "conjunction": ("a && b", ast.Binary("&&", A, B)),
    "comparison": ("a <= b", ast.Binary("<=", A, B)),
    "binary": ("a == b", ast.Binary("==", A, B)),
    "kind_test": ("a is float8", ast.KindTest("a", "float8")),
    "bits": ("a ^ b", ast.Binary("^", A, B)),
    "shift": ("a << b", ast.Binary("<<", A, B)),
    "sum": ("a - b", ast.Binary("-", A, B)),
    "product": ("a % b", ast.Binary("%", A, B)),
    "cast": ("a as uint8 saturating", ast.Cast(A, "uint8", "saturating")),
    "unary": ("~a", ast.Unary("~", A)),
    "postfix": ("(a)", A),
    "field": ("a.bits.c", ast.Field(ast.Field(A, "bits"), "c")),
    "atom": ("b", B),
    "number": ("0x7F", ast.Number(127)),
    "float_number": ("0.5", ast.FloatNumber(0.5)),
    "truth": ("true", ast.Truth(value=True)),
    "name": ("c", C),
    "reduce": ("reduce max over group (a)", ast.Reduce("max", A)),
    "call": ("f(a, b,)", ast.Call("f", (A, B))),
}
"""By the alternative of the grammar: an expression and its node."""

STATEMENTS: dict[str, tuple[str, ast.Stmt]] = {
    "let": ("let a = b;", ast.Let("a", B)),
    "assign": ("a = b;", ast.Assign("a", B)),
    "return_": ("return a;", ast.Return(A)),
    "require": ("require a;", ast.Require(A)),
    "branch": ("if a { b = c; } else { }", ast.Branch(A, (ast.Assign("b", C),), ())),
    "block": ("if a { }", ast.Branch(A, (), ())),
}

DECLARATIONS: dict[str, tuple[str, ast.OpDecl | ast.FnDecl | ast.StructDecl]] = {
    "op": (OP, OP_NODE),
    "operands": (
        "op O(x: X, s: S,) -> y: Y { y = x; }",
        dataclasses.replace(OP_NODE, operands=(*OP_NODE.operands, ast.OperandDecl("s", "S", per_group=False, default=None))),
    ),
    "operand": (
        "op O(x: X per  group) -> y: Y { y = x; }",
        dataclasses.replace(OP_NODE, operands=(ast.OperandDecl("x", "X", per_group=True, default=None),)),
    ),
    "default": (
        "op O(x: X = 0) -> y: Y { y = x; }",
        dataclasses.replace(OP_NODE, operands=(ast.OperandDecl("x", "X", per_group=False, default=0),)),
    ),
    "results": (
        "op O(x: X) -> y: Y, z: Y { y = x; }",
        dataclasses.replace(OP_NODE, results=(*OP_NODE.results, ast.OperandDecl("z", "Y", per_group=False, default=None))),
    ),
    "result": (
        "op O(x: X) -> y: Y per group = 1 { y = x; }",
        dataclasses.replace(OP_NODE, results=(ast.OperandDecl("y", "Y", per_group=True, default=1),)),
    ),
    "attribute": (
        "op O(x: X) -> y: Y attr p: dtype = X attr q: bool = true { y = x; }",
        dataclasses.replace(OP_NODE, attributes=(ast.AttributeDecl("p", "dtype", "X"), ast.AttributeDecl("q", "bool", "true"))),
    ),
    "fn": ("fn f() -> u32 { }", FN_NODE),
    "generic": ("fn f<F: signed>() -> u32 { }", dataclasses.replace(FN_NODE, generic=("F", "signed"))),
    "param": (
        "fn f(v: int<8>) -> u32 { }",
        dataclasses.replace(FN_NODE, params=(ast.ParamDecl("v", ast.TypeRef("int", 8)),)),
    ),
    "type": ("fn f() -> int<25> { }", dataclasses.replace(FN_NODE, result=ast.TypeRef("int", 25))),
    "clause": (
        "fn f() -> u32 is -a is b when exact { }",
        dataclasses.replace(FN_NODE, clauses=(ast.Clause(ast.Unary("-", A), None), ast.Clause(B, "exact"))),
    ),
    "struct": ("struct P { s: u32, t: i32, }", ast.StructDecl("P", (ast.ParamDecl("s", U32), ast.ParamDecl("t", I32)))),
}  # fmt: skip


def parse_statement(text: str) -> ast.Stmt:
    (stmt,) = parse_source(f"fn f() -> u32 {{ {text} }}", "test.qg").fns[0].body
    return stmt


def parse_expr(text: str) -> ast.Expr:
    stmt = parse_statement(f"return {text};")
    assert isinstance(stmt, ast.Return)
    return stmt.value


@pytest.mark.parametrize(("text", "node"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions(text: str, node: ast.Expr) -> None:
    assert parse_expr(text) == node


@pytest.mark.parametrize(("text", "node"), STATEMENTS.values(), ids=STATEMENTS)
def test_statements(text: str, node: ast.Stmt) -> None:
    assert parse_statement(text) == node


@pytest.mark.parametrize(("text", "node"), DECLARATIONS.values(), ids=DECLARATIONS)
def test_declarations(text: str, node: object) -> None:
    source = parse_source(text, "test.qg")
    assert (*source.ops, *source.fns, *source.structs) == (node,)


def test_every_alternative_of_the_grammar_is_tested() -> None:
    named = {rule.alias or rule.origin.name for rule in _parser().rules}
    alternatives = {name for name in named if not name.startswith("_")} - {"file"}
    assert alternatives == {*EXPRESSIONS, *STATEMENTS, *DECLARATIONS}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a || b && c", "a || (b && c)"),
        ("a && b == c", "a && (b == c)"),
        ("a == b | c", "a == (b | c)"),
        ("a | b << c", "a | (b << c)"),
        ("a << b + c", "a << (b + c)"),
        ("a + b * c", "a + (b * c)"),
        ("a * b as X", "a * (b as X)"),
        ("a as X as Y", "(a as X) as Y"),
        ("-a as X", "(-a) as X"),
        ("-a.bits", "-(a.bits)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c", "(a / b) * c"),
        ("a & b | c", "(a & b) | c"),
        ("a || b || c", "(a || b) || c"),
        ("!a && b", "(!a) && b"),
        ("- -a", "-(-a)"),
        ("if a then b else c + a", "if a then b else (c + a)"),
    ],
)
def test_what_binds_tighter(text: str, same: str) -> None:
    assert parse_expr(text) == parse_expr(same)


@pytest.mark.parametrize("text", ["a < b < c", "a == b != c", "a is signed == b"])
def test_comparisons_do_not_chain(text: str) -> None:
    with pytest.raises(QgenError, match="does not parse"):
        parse_expr(text)


@pytest.mark.parametrize("word", sorted(re.findall(r"(?<=[:|])[a-z]+(?=[|)])", str(_parser().get_terminal("NAME").pattern.value))))
def test_a_keyword_is_no_name_but_may_begin_one(word: str) -> None:
    assert parse_expr(f"{word}_x + {word}1") == ast.Binary("+", ast.Name(f"{word}_x"), ast.Name(f"{word}1"))
    with pytest.raises(QgenError, match="does not parse"):
        parse_statement(f"let {word} = a;")


def test_places_are_those_of_the_text() -> None:
    source = parse_source("op O(x: X) -> y: Y {\n    y = x\n        + 12;\n}\n", "test.qg")
    (assign,) = source.ops[0].body
    assert isinstance(assign, ast.Assign)
    assert isinstance(assign.value, ast.Binary)
    assert assign.value.rhs.span == Span("test.qg", 3, 11, 13)
    assert assign.span == Span("test.qg", 2, 5, 10)  # a span ends with its first line
    assert source.ops[0].operands[0].span == Span("test.qg", 1, 6, 10)


def test_the_comment_above_a_function_is_its_explanation() -> None:
    text = "// Not this.\n\n// One line,\n// and another.\nfn f() -> u32 { }\nfn g() -> u32 { }\n"
    assert [fn.doc for fn in parse_source(text, "test.qg").fns] == ["One line, and another.", ""]


def test_a_text_may_be_empty() -> None:
    assert parse_source("  // nothing\n", "test.qg").ops == ()


@pytest.mark.parametrize(
    ("text", "line", "column", "end_column", "found"),
    [
        ("op O(x X) -> y: Y { y = x; }", 1, 8, 9, "`X`"),
        ("op O(x: X) -> y: Y {\n    y = x $ x;\n}", 2, 11, 12, "`$`"),
        ("op O(x: X) -> y: Y {\n    y = x wrapping;\n}", 2, 11, 19, "`wrapping`"),
        ("op O(x: X) -> y: Y {\n    y = x;", 2, 11, 12, "the end of the text"),
        ("op O(x: X) -> y: Y {\n    y = x;\n\n", 3, 1, 2, "the end of the text"),
        ("op", 1, 3, 4, "the end of the text"),
        ("op O() -> y: Y { }", 1, 6, 7, "`)`"),
    ],
)
def test_the_place_that_does_not_parse(text: str, line: int, column: int, end_column: int, found: str) -> None:
    with pytest.raises(QgenError, match="does not parse") as caught:
        parse_source(text, "test.qg")
    assert caught.value.code == "QG001"
    assert caught.value.place == Span("test.qg", line, column, end_column)
    assert caught.value.message == f"this does not parse: found {found}"
    assert caught.value.hint.startswith("expected ")


def test_every_token_of_the_grammar_has_words_for_people() -> None:
    """A keyword stands for itself; a class of words is described."""
    classes = [terminal.name for terminal in _parser().terminals if terminal.pattern.type == "re" or len(str(terminal.pattern.value)) < 2]
    classes += ["TRUTH", "OVERFLOW", "OR", "AND"]
    assert {name for name in classes if not name.startswith(("__", "WS"))} <= _READABLE.keys()


def test_a_parse_error_reads_well(golden: Goldens) -> None:
    with pytest.raises(QgenError, match="does not parse") as caught:
        parse_source("op Halve(x: X) -> y: Y\n{\n    y = x / ;\n}\n", "halve.qg")
    golden.check("errors/QG001.err", f"{caught.value}\n")
