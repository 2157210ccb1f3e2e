"""Rows as lines of a table, as they come and at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tests.bench.cases import CASES, Case
from tests.bench.rows import Goal, Row, goals_of

HEAD: Final = f"{'ms':>8} {'GB/s':>6} {'twin':>6} {'by cpu':>6} {'copy':>6} {'ORT':>6} {'/fast':>6} {'compile':>7}  case"
"""As `Row` has them: `ms`, `gb_per_s`, `vs_twin`, `vs_twin_processor`, `vs_copy`, `vs_ort`, `vs_fast`, `compile_ms`."""

ROUNDS: Final = 21
"""Rounds in which ratios repeat within a tenth."""

_BY_NAME: Final = {case.name: case for case in CASES}


def case_of(row: Row) -> Case:
    """Return the case of a row."""
    return _BY_NAME[row.case]


def print_row(row: Row) -> str:
    """Return the line of one row; `!` marks a ratio that is below what it is to be."""
    missed = {goal.measure for goal in missed_goals(row)}
    twin = _number(row.vs_twin.median, is_missed="vs_twin" in missed)
    copy = _number(row.vs_copy.median, is_missed="vs_copy" in missed)
    ort = _number(None if row.vs_ort is None else row.vs_ort.median, is_missed="vs_ort" in missed)
    words = [row.case, count_in_words(row.count), row.form, row.mode, *([] if row.data == "random" else [f"{row.data} data"])]
    words += [f"{row.rounds} rounds"] if row.rounds < ROUNDS else []
    words += [f"{row.wrong} wrong"] if row.wrong else []
    words += [f"{row.ort_wrong} of ORT's wrong"] if row.ort_wrong else []
    compiled = f"{'-':>7}" if row.compile_ms is None else f"{row.compile_ms:7.0f}"
    numbers = [twin, _number(row.vs_twin_processor), copy, ort, _number(row.vs_fast), compiled]
    return f"{row.ms:8.2f} {row.gb_per_s:6.1f} {' '.join(numbers)}  {', '.join(words)}"


def print_summary(rows: Sequence[Row]) -> str:
    """Return what was held to a goal, and each row that misses one."""
    goals = [(row, goal) for row in rows for goal in goals_of(row, case_of(row))]
    missed = [(row, goal) for row, goal in goals if not goal.is_met]
    lines = [f"{len(goals) - len(missed)} of {len(goals)} goals are met"]
    lines += [f"  {row.stack}: {row.case}, {count_in_words(row.count)}, {row.form}, {row.data}: {goal}" for row, goal in missed]
    return "\n".join(lines)


def missed_goals(row: Row) -> Iterable[Goal]:
    """Yield the goals that a row misses."""
    return (goal for goal in goals_of(row, case_of(row)) if not goal.is_met)


def count_in_words(count: int) -> str:
    """Return a number of elements as `4 M`, where it is a whole number of 2^20 or 2^10."""
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {letter}"
    return str(count)


def _number(value: float | None, *, is_missed: bool = False) -> str:
    if value is None:
        return f"{'-':>6}"
    return f"{value:{5 if is_missed else 6}.2f}" + ("!" if is_missed else "")
