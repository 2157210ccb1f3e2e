"""The built-in operators, written in the formula language (`*.qg`)."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Final

from qgen.errors import QgenError
from qgen.frontend import ast
from qgen.frontend.stored import load_builtin

FILES: Final = ("linear.qg", "dynamic.qg")


@lru_cache(maxsize=1)
def builtin_formulas() -> tuple[ast.SourceFile, ...]:
    """Return the parsed texts of the built-in operators."""
    return tuple(load_builtin(__name__, name) for name in FILES)


def find_operator(name: str) -> tuple[ast.SourceFile, ast.OpDecl]:
    """Return the built-in operator called `name`, and the text it stands in; raises `QgenError` QG102 where there is none."""
    for source in builtin_formulas():
        for op in source.ops:
            if op.name == name:
                return source, op
    known = [op.name for source in builtin_formulas() for op in source.ops]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(known)}"
    raise QgenError("QG102", f"there is no built-in operator `{name}`", hint=hint)
