"""The paragraph behind each error code, from the tables `qgen/codes/*.toml`, one file a range of codes."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from qgen.errors import QgenError


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a code means: `title` in a few words, `text` a paragraph that says why and what to do."""

    code: str
    title: str
    text: str


@lru_cache(maxsize=1)
def load_explanations() -> dict[str, Explanation]:
    """Return every explanation by its code, in the order of the codes."""
    tables = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".toml")]
    found = [
        Explanation(code, table["title"].strip(), table["text"].strip())
        for entry in tables
        for code, table in tomllib.loads(entry.read_text(encoding="utf-8")).items()
    ]
    return {explanation.code: explanation for explanation in sorted(found, key=lambda one: one.code)}


def find_explanation(code: str) -> Explanation:
    """Return the explanation of `code`, in either case and with or without its `QG`; raises `QgenError` QG900 for one that is not there."""
    known = load_explanations()
    name = code.strip().upper()
    name = f"QG{name}" if name.isdecimal() else name
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"codes are {next(iter(known))} to {list(known)[-1]}, as an error prints them"
    raise QgenError("QG900", f"there is no error code `{code}`", hint=hint)
