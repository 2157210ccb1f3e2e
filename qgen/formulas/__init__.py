"""The built-in operators, written in the formula language (`*.qg`)."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from qgen.errors import QgenError
from qgen.frontend import ast
from qgen.frontend.parse import parse_source


@lru_cache(maxsize=1)
def builtin_formulas() -> ast.SourceFile:
    """Return the parsed text of the built-in operators."""
    name = "linear.qg"
    return parse_source(files(__name__).joinpath(name).read_text(encoding="utf-8"), f"qgen/formulas/{name}")


def find_operator(name: str) -> ast.OpDecl:
    """Return the built-in operator called `name`; raises `QgenError` QG102 where there is none."""
    for op in builtin_formulas().ops:
        if op.name == name:
            return op
    known = ", ".join(op.name for op in builtin_formulas().ops)
    raise QgenError("QG102", f"there is no built-in operator `{name}`", hint=f"there are: {known}")
