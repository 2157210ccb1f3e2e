"""The matrix of kernels on several stacks: every text run on each, what was compared, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from qgen.check import Outcome, ResumeFile, Shard, kernel_variants, matrix_requests, parse_outcome
from qgen.conform.selection import select_requests
from qgen.conform.stacks import Stack, check_on
from qgen.kernel import compile_request
from qgen.request import Request, make_request

Progress = Callable[[int, int], None]

WHOLE: Final = Shard()
TEXTS: Final = 4
"""Texts of a kernel in one mode: that for every shape, and three baked ones."""
_SEEDS: Final = 67
_STEP: Final = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run: of the matrix the kernels that meet `only`, of these the shard; in each mode so many texts, on each stack.

    With `plain_scale` the texts are those for plain scales, run on such, as far as a kernel has them.
    """

    stacks: tuple[Stack, ...]
    modes: tuple[str, ...] = ("exact",)
    only: tuple[str, ...] = ()
    shard: Shard = WHOLE
    texts: int = TEXTS
    plain_scale: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A kernel in one mode on one stack: an outcome for each of its texts."""

    request: Request
    stack: Stack
    outcomes: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether every text ran and every bit is right."""
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def elements(self) -> int:
        """How many elements were compared."""
        return sum(outcome.result.elements for outcome in self.outcomes if outcome.result)

    @property
    def mismatches(self) -> int:
        """How many of them differ."""
        return sum(outcome.result.mismatches for outcome in self.outcomes if outcome.result)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The texts that are wrong."""
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)


@dataclass(frozen=True, slots=True)
class Conformance:
    """Every cell of a run; `resumed` texts were run before."""

    plan: Plan
    cells: tuple[Cell, ...]
    resumed: int

    @property
    def ok(self) -> bool:
        """Whether every cell is right."""
        return all(cell.ok for cell in self.cells)

    def on(self, stack: Stack) -> tuple[Cell, ...]:
        """Return the cells of one stack."""
        return tuple(cell for cell in self.cells if cell.stack == stack)


@cache
def conform_requests() -> tuple[Request, ...]:
    """Return the matrix, and DynamicQuantizeLinear, which finds its scale itself and so is not of it."""
    return (*matrix_requests(), make_request("DynamicQuantizeLinear", x="float32"))


def run_matrix(plan: Plan, resume: Path | None = None, progress: Progress | None = None) -> Conformance:
    """Run every text of the plan on each of its stacks.

    `resume` is as for `qgen.check.sweep`, whose files this one goes on with. Raises `QgenError` QG870 where nothing is selected, QG851 and
    QG852 for the file, and what the devices raise.
    """
    chosen = select_requests(conform_requests(), plan.only)[plan.shard.index - 1 :: plan.shard.count]
    log = None if resume is None else ResumeFile(resume, parse_outcome)
    known = {} if log is None else {(outcome.kernel, outcome.device): outcome for outcome in log.entries}
    cells = []
    resumed = 0
    for done, (number, request) in enumerate(chosen, 1):
        for mode in plan.modes:
            variants = mode_variants(request, number, mode)[: plan.texts]
            kernels = [(step, compile_request(replace(variant, plain_scale=plan.plain_scale))) for step, variant in enumerate(variants)]
            for stack in plan.stacks:
                outcomes = []
                for step, kernel in kernels:
                    outcome = known.get((kernel.name, stack.selector))
                    resumed += outcome is not None
                    if outcome is None:
                        outcome = check_on(stack, kernel, _SEEDS * number + _STEP * step)
                        if log is not None:
                            log.add(outcome)
                    outcomes.append(outcome)
                cells.append(Cell(replace(request, mode=mode), stack, tuple(outcomes)))
        if progress is not None:
            progress(done, len(chosen))
    return Conformance(plan, tuple(cells), resumed)


def mode_variants(request: Request, number: int, mode: str) -> tuple[Request, ...]:
    """Return the texts of a kernel in one mode, that for every shape first."""
    return tuple(dict.fromkeys(replace(variant, mode=mode) for variant in kernel_variants(request, number)))
