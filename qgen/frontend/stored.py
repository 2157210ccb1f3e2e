"""The AST of a built-in source as it ships beside it: `linear.qg` is parsed in `linear.qg.json`, so that no parser starts to emit a kernel.

The file has one JSON line a declaration. A node is `[class, field, ..., line, column, end column]`, a tuple of nodes `["", ...]`. Its head
has the digest of the source and of the grammar it was parsed by: where either is another now, the file says nothing of the source, which is
then parsed. `make parsed` writes the files anew, and a test holds them to what the parser gives.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

from qgen.errors import Span
from qgen.frontend import ast
from qgen.resources import read_resource

_DECLARATIONS: Final = ("ops", "fns", "structs")
_NODES: Final[dict[str, Callable[..., Any]]] = {
    node.__name__: node
    for node in (
        ast.Number,
        ast.FloatNumber,
        ast.Truth,
        ast.Name,
        ast.Unary,
        ast.Binary,
        ast.Conditional,
        ast.Cast,
        ast.KindTest,
        ast.Call,
        ast.Field,
        ast.Reduce,
        ast.Let,
        ast.Assign,
        ast.Return,
        ast.Require,
        ast.Branch,
        ast.OperandDecl,
        ast.AttributeDecl,
        ast.OpDecl,
        ast.TypeRef,
        ast.ParamDecl,
        ast.Clause,
        ast.FnDecl,
        ast.StructDecl,
    )
}
_PLACE: Final = 3
"""The numbers of a span, at the end of each node."""


def load_builtin(package: str, name: str) -> ast.SourceFile:
    """Return the AST of the source `name` of `package`, whose spans say `qgen/<folder>/<name>`."""
    folder = files(package)
    text = folder.joinpath(name).read_text(encoding="utf-8")
    file = f"{package.replace('.', '/')}/{name}"
    stored = folder.joinpath(f"{name}.json")
    if stored.is_file():
        source = read_stored(stored.read_text(encoding="utf-8"), text, file)
        if source is not None:
            return source
    from qgen.frontend.parse import parse_source  # start-up time

    return parse_source(text, file)


def print_stored(source: ast.SourceFile) -> str:
    """Return the text to store for a parsed source."""
    groups = ",\n".join(
        f"{json.dumps(group)}: [\n{lines}\n]"
        if (lines := ",\n".join(_print(node) for node in getattr(source, group)))
        else f'"{group}": []'
        for group in _DECLARATIONS
    )
    return f'{{\n"digest": "{_digest(source.text)}",\n{groups}\n}}\n'


def read_stored(stored: str, text: str, file: str) -> ast.SourceFile | None:
    """Return the AST of `text` as it was stored, or None where that was of another text, or by another grammar."""
    table = json.loads(stored)
    if table["digest"] != _digest(text):
        return None
    ops, fns, structs = (tuple(_decode(node, file) for node in table[group]) for group in _DECLARATIONS)
    return ast.SourceFile(file, text, ops, fns, structs)


def _digest(text: str) -> str:
    digest = hashlib.sha256(read_resource("grammar", "formula.lark").encode())
    digest.update(text.encode())
    return digest.hexdigest()


def _print(node: object) -> str:
    return json.dumps(_encode(node), separators=(",", ":"), ensure_ascii=False)


def _encode(value: object) -> object:
    if isinstance(value, tuple):
        return ["", *(_encode(item) for item in value)]
    if not dataclasses.is_dataclass(value):
        return value
    *names, _ = (field.name for field in dataclasses.fields(value))
    span: Span = value.span  # type: ignore[union-attr] # every node of the AST has its place, and has it last
    return [type(value).__name__, *(_encode(getattr(value, name)) for name in names), span.line, span.column, span.end_column]


def _decode(value: Any, file: str) -> Any:  # noqa: ANN401 - what JSON holds has no type
    if type(value) is not list:
        return value
    kind = value[0]
    if not kind:
        return tuple([_decode(item, file) for item in value[1:]])
    parts = [_decode(item, file) for item in value[1:-_PLACE]]
    return _NODES[kind](*parts, Span(file, *value[-_PLACE:]))
