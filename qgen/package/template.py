"""Many kernels as one Jinja template: what all have stands once, the rest under the choice that tells one from another.

    texts, each with its dtypes  ->  entry point and element functions, line by line, as choices;
                                     then the library, each function where it is called

What is rendered has the functions that qgen emits for the same dtypes, word for word, those of the library in an order of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Final

from qgen.errors import InternalError
from qgen.package.branches import Key
from qgen.package.factor import Parts, factor_lines, join_choices

_DEFINED: Final = re.compile(r"^(?:fn|struct) (\w+)", re.MULTILINE)
_ENTRY: Final = "@compute"
_MOST_BEFORE: Final = 9


@dataclass(frozen=True, slots=True)
class Block:
    """The entry point, a function or a struct, with its comment."""

    name: str
    lines: Parts

    @property
    def code(self) -> str:
        """The lines without comments."""
        return "\n".join(line for line in self.lines if not line.startswith("//"))


def read_blocks(wgsl: str) -> list[Block]:
    """Return the blocks of a text of qgen's in order: without the header, the bindings and the uniforms, which the loader declares."""
    found = []
    for text in wgsl.rstrip("\n").split("\n\n"):
        name = _DEFINED.search(text)
        if name and name[0] != "struct Params":
            found.append(Block(name[1], tuple(text.split("\n"))))
    return found


def write_template(head: Sequence[str], texts: Mapping[Key, str], variables: Sequence[str], settings: Mapping[int, str]) -> str:
    """Return the template that renders to each of `texts` where the variables are as its key has them.

    `head` are the lines to begin with. `settings` are numbers in the texts that stand for what a host sets, with the expressions to put
    there.
    """
    blocks = {key: read_blocks(text) for key, text in texts.items()}
    library = _find_library(list(blocks.values()))
    shared = {block.name for block in library}
    own = {key: tuple(line for block in mine if block.name not in shared for line in ("", *block.lines)) for key, mine in blocks.items()}
    every = list({line: None for mine in blocks.values() for block in mine for line in block.lines})
    lines = [*head, "{% set text %}", *join_choices(factor_lines(own, variables)), "{% endset %}"]
    for block in library:
        lines += [
            f"{{% if {_write_use(block, every)} %}}", "{% set called %}", "", *block.lines, "{% endset %}",
            "{% set text = text ~ called %}", "{% endif %}",
        ]  # fmt: skip
    text = "\n".join([*lines, "{{ text }}"]) + "\n"
    for number, expression in settings.items():
        text = re.sub(rf"\b{number}(?=u?\b)", f"{{{{ {expression} }}}}", text)
    return text


def _find_library(texts: Sequence[Sequence[Block]]) -> list[Block]:
    """Return the blocks that are the same in every text that has them, callers before what they call."""
    forms: dict[str, set[Block]] = {}
    for block in (block for blocks in texts for block in blocks):
        forms.setdefault(block.name, set()).add(block)
    same = {name: next(iter(blocks)) for name, blocks in forms.items() if len(blocks) == 1 and not _is_entry(next(iter(blocks)))}
    order: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(same, ()))
    for block in same.values():
        for used in same.values():
            if used is not block and re.search(_use(used), block.code):
                order.add(used.name, block.name)
    return [same[name] for name in order.static_order()]


def _is_entry(block: Block) -> bool:
    return any(line.startswith(_ENTRY) for line in block.lines)


def _write_use(block: Block, lines: Sequence[str]) -> str:
    """Return the Jinja test that `text` uses a function or a struct: its name with as much before it as no comment has.

    `lines` are all lines of all texts.
    """
    comments = "\n".join(line for line in lines if line.startswith("//"))
    code = "\n".join(line for line in lines if not line.startswith("//"))
    used = [match for match in re.finditer(_use(block), code) if not code.endswith(("fn ", "struct "), 0, match.start())]
    for before in range(1, _MOST_BEFORE):
        uses = {code[match.start() - before : match.start() + len(block.name) + 1] for match in used}
        if not any("\n" in use or use in comments for use in uses):
            return " or ".join(f'"{use}" in text' for use in sorted(uses))
    raise InternalError(f"no test tells where `{block.name}` is used from where comments name it")


def _use(block: Block) -> str:
    """Return the pattern of a use: a struct is used where it is named, a function where it is called, as a variable may have its name."""
    return rf"\b{block.name}\b" if block.code.startswith("struct") else rf"\b{block.name}\("
