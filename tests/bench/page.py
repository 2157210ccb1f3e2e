"""Rows as one HTML page with bars, which needs nothing beside it.

A table an adapter and size, and in it a group of lines a case: what the text knows of the shape, and the data. A bar is the share of the
twin's speed, or how many times as fast as ONNX Runtime the kernel is: dark for `exact`, red where it misses its goal, light for `fast`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.bench.cases import CASES
from tests.bench.report import case_of, count_in_words
from tests.bench.rows import Goal, Row, goals_of

_STYLE: Final = Path(__file__).with_name("page.css")
_FULL_SHARE: Final = 1.25
"""The share of the twin at which a bar ends: copies themselves are measured with some error."""
_FULL_ORT: Final = 12.0

_KEYS: Final = (("", "--met", "exact"), ("", "--missed", "exact, below its goal"), ("", "--fast", "fast"), (" line", "--goal", "goal"))

_HEADS: Final = (
    ("words", "case"),
    ("words", "shape and data"),
    ("words", "share of the twin's speed"),
    ("", ""),
    ("", "by cpu"),
    ("", "of copy"),
    ("", "ms"),
    ("", "GB/s"),
    ("", "exact / fast"),
    ("", "compile ms"),
)
_ORT_HEADS: Final = (("words", "times as fast as ONNX Runtime"), ("", ""))

_ABOUT: Final = (
    "Medians of {rounds} interleaved rounds, by timestamps on the device; ratios are taken within rounds. The twin moves the bytes of the"
    " case in and out, 16 at a time, and computes nothing: it is the floor. “By cpu” is the same share by the process's"
    " time on processors, which holds while others use the machine. The copy moves as many bytes, half of them in and half out."
)


def print_page(rows: Sequence[Row], rounds: int) -> str:
    """Return the page of `rows`, measured in so many rounds."""
    goals = [(row, goal) for row in rows for goal in goals_of(row, case_of(row))]
    missed = [(row, goal) for row, goal in goals if not goal.is_met]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>qgen beside a copy</title>',
        f"<style>{_STYLE.read_text(encoding='utf-8')}</style></head><body>",
        "<h1>qgen's kernels beside a copy of the same bytes</h1>",
        f"<p>{_ABOUT.format(rounds=rounds)}</p>",
        _print_key(),
    ]
    if goals:
        parts.append(f"<p>{len(goals) - len(missed)} of {len(goals)} goals are met.</p>")
    if missed:
        items = "".join(f'<li class="missed">{escape(_where(row))}: {escape(str(goal))}</li>' for row, goal in missed)
        parts.append(f"<details><summary>The {len(missed)} that are missed</summary><ul>{items}</ul></details>")
    places = {table: place for place, table in enumerate(dict.fromkeys(map(_table, rows)))}
    for (stack, adapter, count), table in groupby(
        sorted(rows, key=lambda row: (places[_table(row)], CASES.index(case_of(row)))), key=_table
    ):
        parts.append(f"<h2>{escape(adapter)}</h2><p>{escape(stack)}, {count_in_words(count)} elements</p>")
        parts.append(_print_table(list(table)))
    return "\n".join([*parts, "</body></html>", ""])


def _table(row: Row) -> tuple[str, str, int]:
    return row.stack, row.adapter, row.count


def _where(row: Row) -> str:
    return f"{row.case}, {row.form}, {row.data} data, {count_in_words(row.count)}, {row.adapter}"


def _print_key() -> str:
    items = (f'<span class="key{line}" style="background:var({colour})"></span>{words}' for line, colour, words in _KEYS)
    return f"<p>{''.join(items)}</p>"


def _print_table(rows: list[Row]) -> str:
    has_ort = any(row.vs_ort for row in rows)
    heads = "".join(f'<th class="{kind}">{words}</th>' for kind, words in (*_HEADS, *(_ORT_HEADS if has_ort else ())))
    bodies = [f"<tbody>{''.join(_print_lines(list(case)))}</tbody>" for _, case in groupby(rows, key=lambda row: row.case)]
    return f"<table><thead><tr>{heads}</tr></thead>{''.join(bodies)}</table>"


def _print_lines(rows: list[Row]) -> Iterator[str]:
    """Yield a line for each form and kind of data of one case."""
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.form, row.data), {})[row.mode] = row
    for number, ((form, data), modes) in enumerate(lines.items()):
        row = next(modes[mode] for mode in ("exact", "strict", "fast") if mode in modes)
        fast = modes.get("fast")
        goals = {goal.measure: goal for goal in goals_of(row, case_of(row))}
        what = form if data == "random" else f"{form}, {data}"
        share, ort = row.vs_twin.median, row.vs_ort
        cells = [
            f'<td class="words" rowspan="{len(lines)}">{escape(row.case)}</td>' if number == 0 else "",
            f'<td class="form">{escape(what)}</td>',
            f'<td class="bar">{_bar(share, fast.vs_twin.median if fast else None, goals.get("vs_twin"), _FULL_SHARE)}</td>',
            _number(share, goals.get("vs_twin")),
            _number(row.vs_twin_processor, None),
            _number(row.vs_copy.median, goals.get("vs_copy")),
            f"<td>{row.ms:.2f}</td><td>{row.gb_per_s:.1f}</td>",
            _number(row.vs_fast, None),
            f"<td>{'' if row.compile_ms is None else f'{row.compile_ms:.0f}'}</td>",
        ]
        if ort:
            other = fast.vs_ort.median if fast and fast.vs_ort else None
            cells += [
                f'<td class="ort">{_bar(ort.median, other, goals.get("vs_ort"), _FULL_ORT)}</td>',
                _number(ort.median, goals.get("vs_ort")),
            ]
        yield f"<tr>{''.join(cells)}</tr>"


def _bar(value: float, fast: float | None, goal: Goal | None, full: float) -> str:
    """Return a bar that is full at `full`."""
    missed = " missed" if goal and not goal.is_met else ""
    parts = [] if fast is None else [f'<i class="fast" style="width:{_percent(fast, full)}"></i>']
    parts.append(f'<i class="exact{missed}" style="width:{_percent(value, full)}"></i>')
    parts += [f'<i class="goal" style="left:{_percent(goal.least, full)}"></i>'] if goal else []
    return f'<div class="track">{"".join(parts)}</div>'


def _percent(value: float, full: float) -> str:
    return f"{100 * min(value / full, 1):.1f}%"


def _number(value: float | None, goal: Goal | None) -> str:
    missed = ' class="missed-number"' if goal and not goal.is_met else ""
    return f"<td{missed}>{'' if value is None else f'{value:.2f}'}</td>"
