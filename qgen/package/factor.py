"""Texts that differ by a few variables as one Jinja text: lines laid beside each other, and within a line its tokens.

    int4 : let scale = x_scale[0u];   y[i] = f(x, scale);            let scale = x_scale[0u];
    uint8: let scale = x_scale[0u];   y[i] = g(x, scale);      ->    y[i] = {% if TQ == "int4" %}f{% else %}g{% endif %}(x, scale);

Whatever is alike is found by alignment, so no line of the texts is known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from qgen.package.branches import Key, choose, drop_variables, write_test

Parts = tuple[str, ...]
Column = dict[Parts, Parts]
"""What each form has in one place: one part, or none."""

_TOKEN: Final = re.compile(r"\w+|\s+|.")
_HEAD: Final = re.compile(r"\s*(?:let |var )?[\w.\[\] /]+(?= [|+]?= )|\s*fn \w+|\s*for \(var \w+")
_END: Final = "{% endif %}"


def factor_lines(rows: Mapping[Key, Parts], variables: Sequence[str]) -> list[str]:
    """Return the template whose lines are those of the row, when the variables are as its key has them."""
    rows = drop_variables(rows)
    forms = list(dict.fromkeys(rows.values()))
    if len(forms) == 1:
        return list(forms[0])
    lines: list[str] = []
    for group in _group(rows, _align(forms, _head)):
        inner = drop_variables(group)
        one_each = {len(parts) for parts in inner.values()} == {1}
        if len(set(inner.values())) == 1:
            lines += next(iter(inner.values()))
        elif one_each:
            lines += _factor_line({key: parts[0] for key, parts in inner.items()}, variables)
        else:
            lines += _choose_lines(inner, variables)
    return lines


def join_choices(lines: Sequence[str]) -> list[str]:
    """Return the lines with a choice made once where one after the other is the same: `if a … endif, if a … endif`."""
    kept: list[str] = []
    opened: list[tuple[str, bool]] = []
    ended: str | None = None
    for line in lines:
        before, ended = ended, None
        if line == before:  # the tag that the choice just ended began with
            kept.pop()
            opened.append((line, False))
            continue
        if line.count("{%") != 1:
            pass  # a line of the text, with or without choices in it
        elif line.startswith("{% if "):
            opened.append((line, False))
        elif line.startswith(("{% elif ", "{% else ")):
            opened[-1] = (opened[-1][0], True)
        elif line == _END:
            test, has_sides = opened.pop()
            ended = None if has_sides else test
        kept.append(line)
    return kept


def _factor_line(rows: Mapping[Key, str], variables: Sequence[str]) -> list[str]:
    """Return the template of one line: as a line with choices in it, unless whole lines under choices are shorter."""
    whole = _choose_lines({key: (line,) for key, line in rows.items()}, variables)
    inline = _factor_tokens({key: tuple(_TOKEN.findall(line)) for key, line in rows.items()}, variables)
    # A tag at the end of a line would take the line's end with it where a renderer trims blocks.
    return whole if inline.endswith("%}") or sum(map(len, whole)) <= len(inline) else [inline]


def _factor_tokens(rows: Mapping[Key, Parts], variables: Sequence[str]) -> str:
    """Return the template of tokens that differ by the variables, within a line."""
    rows = drop_variables(rows)
    forms = list(dict.fromkeys(rows.values()))
    if len(forms) == 1:
        return "".join(forms[0])
    return "".join(_choose_tokens(group, variables) for group in _group(rows, _align(forms, str)))


def _choose_lines(rows: Mapping[Key, Parts], variables: Sequence[str]) -> list[str]:
    rows = drop_variables(rows)
    if len(set(rows.values())) == 1:
        return list(next(iter(rows.values())))
    return [line for tag, side in _sides(rows, variables) for line in (tag, *factor_lines(side, variables))] + [_END]


def _choose_tokens(rows: Mapping[Key, Parts], variables: Sequence[str]) -> str:
    rows = drop_variables(rows)
    if len(set(rows.values())) == 1:
        return "".join(next(iter(rows.values())))
    return "".join(tag + _factor_tokens(side, variables) for tag, side in _sides(rows, variables)) + _END


def _sides(rows: Mapping[Key, Parts], variables: Sequence[str]) -> list[tuple[str, dict[Key, Parts]]]:
    """Return the tags of a choice and the rows under each; there is no side for what is empty."""
    forms = list(dict.fromkeys(rows.values()))
    numbers = {form: number for number, form in enumerate(forms)}
    choice = choose({key: numbers[form] for key, form in rows.items()})
    sides = [(branch.values, {key: forms[number] for key, number in branch.rows.items()}) for branch in choice.branches]
    full = [side for side in sides if any(side[1].values())]
    found = []
    for place, (values, side) in enumerate(full):
        test = f"{'elif' if place else 'if'} {write_test(variables[choice.at], values)}"
        found.append(("{% else %}" if place + 1 == len(sides) else f"{{% {test} %}}", side))
    return found


def _head(line: str) -> str:
    """Return what lines that do the same have in common: the left side of an assignment, the name of a function."""
    found = _HEAD.match(line)
    return found[0] if found else line


def _align(forms: Sequence[Parts], head: Callable[[str], str]) -> list[Column]:
    """Return the forms laid beside each other, so that parts with one head share a column and the order of each form is kept."""
    heads: list[str] = []
    columns: list[Column] = []
    for form in forms:
        own = [head(part) for part in form]
        matches = SequenceMatcher(None, heads, own, autojunk=False).get_matching_blocks()
        at = used = 0
        new_heads: list[str] = []
        new_columns: list[Column] = []
        for start, place, size in matches:
            new_heads += heads[at:start] + own[used:place]
            new_columns += columns[at:start] + [{form: (part,)} for part in form[used:place]]
            for step in range(size):
                columns[start + step][form] = (form[place + step],)
            new_heads += heads[start : start + size]
            new_columns += columns[start : start + size]
            at, used = start + size, place + size
        heads, columns = new_heads, new_columns
    return columns


def _group(rows: Mapping[Key, Parts], columns: Sequence[Column]) -> list[dict[Key, Parts]]:
    """Return the columns in groups: those beside each other are one where the choices of one are among those of the other."""
    forms = list(dict.fromkeys(rows.values()))
    groups: list[dict[Parts, Parts]] = []
    for column in columns:
        part = {form: column.get(form, ()) for form in forms}
        if groups:
            both = {form: groups[-1][form] + part[form] for form in forms}
            kinds = len(set(groups[-1].values())), len(set(part.values()))
            if kinds == (1, 1) or (1 not in kinds and len(set(both.values())) == max(kinds)):
                groups[-1] = both
                continue
        groups.append(part)
    return [{key: group[form] for key, form in rows.items()} for group in groups]
