"""`make demo`: a real model's kernels, judged by both compilers, run, and held against the oracle; a table at the end.

Exits with 1 where a node was left out, a compiler rejected a text, or a value differs from the oracle.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qgen.errors import QgenError
from qgen.importer import Bundle, load_bundle
from qgen.kernel import CPU
from tests.demo.judge import Outcome, Values, compute_values, run_nodes, validate_kernels
from tests.demo.model import PACKAGE, ROOT, SHAPE, make_models
from tests.demo.progress import Bar

OUTPUT: Final = ROOT / "demo-out"
HEADINGS: Final = ("model", "shapes", "nodes", "left out", "kernels", "naga", "Tint", "run", "elements", "mismatches", "seconds")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a model whose kernels were made in one way."""

    model: str
    shapes: str
    bundle: Bundle
    accepted: tuple[int, int]
    outcome: Outcome
    seconds: float

    @property
    def left_out(self) -> int:
        """How many nodes have no kernel."""
        return sum(node.kernel is None for node in self.bundle.nodes)

    @property
    def is_good(self) -> bool:
        """Whether every node has a kernel that both compilers accept and whose values are right."""
        return (
            self.left_out == self.outcome.mismatches == 0
            and self.accepted == (len(self.bundle.kernels),) * 2
            and self.outcome.nodes == len(self.bundle.nodes) > 0
        )

    def cells(self) -> tuple[str, ...]:
        """Return the line's cells, in the order of the headings."""
        kernels = len(self.bundle.kernels)
        outcome = self.outcome
        numbers = (len(self.bundle.nodes), self.left_out, kernels, *(f"{count}/{kernels}" for count in self.accepted))
        run = (outcome.nodes, f"{outcome.elements:,}", outcome.mismatches, f"{self.seconds:.1f}")
        return (self.model, self.shapes, *map(str, (*numbers, *run)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description="qgen on a real model, from ONNX to values.")
    parser.add_argument("--device", default=CPU, help="cpu (the evaluator, the default), gpu, or a part of an adapter's name")
    device = parser.parse_args(arguments).device
    try:
        return _demonstrate(device)
    except QgenError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _demonstrate(device: str) -> int:
    started = time.monotonic()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    sys.stderr.write(f"quantizing the classifier of {PACKAGE} with ONNX Runtime, for inputs of shape {list(SHAPE)} ...\n")
    paths = make_models(OUTPUT / "models")
    rows: list[Row] = []
    for name, path in paths.items():
        values: Values | None = None
        for shapes in ("baked", "uniform"):
            begun = time.monotonic()
            bundle = load_bundle(path, shapes=shapes)
            bundle.save(OUTPUT / f"{name}-{shapes}")
            values = values or compute_values(path, bundle.nodes)
            accepted, outcome = _judge(f"{name}, {shapes}", bundle, values, device)
            rows.append(Row(name, shapes, bundle, accepted, outcome, time.monotonic() - begun))
    print(f"\n{format_table(rows)}")
    _print_notes(rows, time.monotonic() - started)
    return 0 if all(row.is_good for row in rows) else 1


def _judge(what: str, bundle: Bundle, values: Values, device: str) -> tuple[tuple[int, int], Outcome]:
    """Return how many kernels naga and Tint accept, and what running the nodes showed; say on standard error what is wrong."""
    with Bar(f"{what}: validating", len(bundle.kernels)) as bar:
        reports = validate_kernels(bundle.kernels.values(), bar)
    with Bar(f"{what}: running on {device}", len(bundle.nodes)) as bar:
        outcome = run_nodes(bundle, values, device, bar)
    for node in bundle.nodes:
        if node.reason is not None:
            sys.stderr.write(f"{what}: {node.path} is left out, {node.reason}\n")
    for report in (report for pair in reports.values() for report in pair if not report.ok):
        sys.stderr.write(f"{report.label} is rejected by {report.engine}:\n{report.raw}\n")
    naga, tint = (sum(pair[engine].ok for pair in reports.values()) for engine in (0, 1))
    return (naga, tint), outcome


def format_table(rows: Sequence[Row]) -> str:
    """Return the table: headings, a rule, and a line for each row."""
    table = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
    table.insert(1, tuple("-" * width for width in widths))
    lines = []
    for line in table:
        names = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        lines.append("  ".join([*names, *numbers]))
    return "\n".join(lines)


def _print_notes(rows: Sequence[Row], seconds: float) -> None:
    differs = sum(row.outcome.runtime_differs for row in rows)
    elements = sum(row.outcome.elements for row in rows)
    verdict = "every node is emitted, validated and bit-equal to the oracle" if all(row.is_good for row in rows) else "NOT all is right"
    print(f"\n{verdict}; {seconds:.0f} s in all; kernels are in {OUTPUT.relative_to(ROOT)}/")
    print(f"for information: ONNX Runtime's own values equal the oracle's in {elements - differs:,} of {elements:,} elements")


if __name__ == "__main__":
    sys.exit(main())
