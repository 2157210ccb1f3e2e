"""Renders the skeletons of host glue: ready values into `targets/glue/*.j2`, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import jinja2

from qgen.resources import read_resource


def render_skeleton(name: str, values: Mapping[str, object]) -> str:
    """Return the text of `targets/glue/<name>.j2` with `values` in place; a value that is missing is an error."""
    return _skeleton(name).render(values)


@lru_cache(maxsize=16)
def _skeleton(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - source text of a host's language is no HTML
    )
    return environment.from_string(read_resource("targets", f"glue/{name}.j2"))
