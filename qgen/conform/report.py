"""The report of a run: JSON for programs, and one page of HTML for people, with the same content."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from qgen.check import CheckResult
from qgen.conform.matrix import Cell, Conformance
from qgen.conform.selection import kernel_fields
from qgen.dtypes import DTYPES
from qgen.errors import QgenError
from qgen.files import write_text

FORMAT: Final = "qgen.conformance"
FORMAT_VERSION: Final = 1
SUFFIXES: Final = (".json", ".html")

_DATA: Final = "/* the report */ null"
"""What the page holds in place of its data."""


def check_suffix(path: Path) -> None:
    """Raise `QgenError` QG871 where `path` names neither form of a report."""
    if path.suffix.lower() not in SUFFIXES:
        raise QgenError("QG871", f"`{path}` is no report", hint="name it .json for programs or .html for people", place=str(path))


def write_report(found: Conformance, path: Path) -> None:
    """Write the report that the suffix of `path` names. Raises `QgenError` QG871, and QG110 where it cannot be written."""
    check_suffix(path)
    report = build_report(found)
    write_text(path, print_json(report) if path.suffix.lower() == ".json" else print_html(report))


def build_report(found: Conformance) -> dict[str, Any]:
    """Return the report as data; nothing volatile is among it.

    A kernel's results are by stack. Codes are numbers; `first` is the first element that is wrong, `trap` why there is no result.
    """
    kernels: dict[tuple[str, ...], dict[str, Any]] = {}
    for cell in found.cells:
        fields = {**kernel_fields(cell.request), "mode": cell.request.mode}
        entry = kernels.setdefault(tuple(fields.values()), {**fields, "results": {}})
        entry["results"][cell.stack.selector] = _result(cell)
    stacks = []
    for stack in found.plan.stacks:
        cells = found.on(stack)
        stacks.append(
            {
                "stack": stack.selector,
                "device": stack.device,
                "kernels": len(cells) // len(found.plan.modes),
                "texts": sum(len(cell.outcomes) for cell in cells),
                "elements": sum(cell.elements for cell in cells),
                "mismatches": sum(cell.mismatches for cell in cells),
                "wrong": sum(not cell.ok for cell in cells),
            }
        )
    shard = found.plan.shard
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "ok": found.ok,
        "only": list(found.plan.only),
        "plain_scale": found.plan.plain_scale,
        "shard": [shard.index, shard.count],
        "dtypes": list(DTYPES),
        "stacks": stacks,
        "kernels": list(kernels.values()),
    }


def _result(cell: Cell) -> dict[str, Any]:
    result: dict[str, Any] = {"texts": len(cell.outcomes), "elements": cell.elements, "mismatches": cell.mismatches}
    if not cell.ok:
        result["failures"] = [
            {"kernel": outcome.kernel, "trap": outcome.trap, **(_first(outcome.result) if outcome.result else {})}
            for outcome in cell.failures
        ]
    return result


def _first(result: CheckResult) -> dict[str, Any]:
    first = result.first
    if first is None:
        return {}
    return {
        "mismatches": result.mismatches,
        "elements": result.elements,
        "first": {
            "shape": list(first.shape),
            "seed": first.seed,
            "index": first.index,
            "inputs": dict(first.inputs),
            "got": first.got,
            "want": first.want,
        },
    }


def print_json(report: dict[str, Any]) -> str:
    """Return the report's text, a kernel a line."""
    *head, (_, kernels) = report.items()
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head]
    rows = ",\n".join(f"  {json.dumps(kernel)}" for kernel in kernels)
    return "{\n" + ",\n".join([*lines, f' "kernels": [\n{rows}\n ]' if rows else ' "kernels": []']) + "\n}\n"


def print_html(report: dict[str, Any]) -> str:
    """Return the page: it holds everything it needs, and opens from a file."""
    page = (files(__package__) / "report.html").read_text(encoding="utf-8")
    data = json.dumps(report, separators=(",", ":")).replace("<", "\\u003c")
    return page.replace(_DATA, data)
