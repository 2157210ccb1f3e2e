"""A kernel's glue in the languages that are asked for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from qgen.errors import QgenError
from qgen.glue.c import write_c
from qgen.glue.host import Host
from qgen.glue.javascript import write_javascript
from qgen.glue.ort import write_ort_template
from qgen.glue.python import write_python
from qgen.glue.read import read_host
from qgen.glue.rust import write_rust

_WRITERS: Final[dict[str, Callable[[Host, str], dict[str, str]]]] = {
    "js": write_javascript,
    "python": write_python,
    "c": write_c,
    "rust": write_rust,
    "ort-template": write_ort_template,
}

LANGUAGES: Final = tuple(_WRITERS)
"""The languages there is glue for."""


def parse_languages(text: str) -> tuple[str, ...]:
    """Return the languages of a list as `js,python`, each once. Raises `QgenError` QG450 for one there is no glue for."""
    languages = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    _check_languages(languages)
    return languages


def write_glue(sidecar: Mapping[str, Any], wgsl: str, languages: Iterable[str]) -> dict[str, str]:
    """Return the glue of one kernel by file name, in the order of `languages`.

    Raises `QgenError` QG450 for a language there is no glue for.
    """
    languages = tuple(languages)
    _check_languages(languages)
    host = read_host(sidecar)
    files: dict[str, str] = {}
    for language in languages:
        files |= _WRITERS[language](host, wgsl)
    return files


def _check_languages(languages: Iterable[str]) -> None:
    for language in languages:
        if language not in _WRITERS:
            near = difflib.get_close_matches(language, LANGUAGES, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there is glue in {', '.join(LANGUAGES)}"
            raise QgenError("QG450", f"there is no glue in `{language}`", hint=hint)
