"""The passes in order, each with the name that `--print-ir-after` takes; every program is verified after the pass that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from qgen.ir.program import ById, Program
from qgen.ir.verify import Verifier
from qgen.passes.discharge import Condition, discharge_scale, find_condition
from qgen.passes.fold import fold_constants
from qgen.passes.functions import place_functions
from qgen.passes.guard import guard_quick
from qgen.passes.hoist import hoist_groups
from qgen.passes.legalise import legalise
from qgen.passes.place import place_words
from qgen.passes.plan import Plan, plan_kernel
from qgen.passes.prefix import prefix_names
from qgen.passes.realise import realise
from qgen.passes.rename import rename_reserved
from qgen.passes.split import split_reductions
from qgen.shapes import Granularity
from qgen.target import Target

PASSES: Final = (
    "check",
    "split-reductions",
    "realise",
    "guard-quick",
    "discharge-scale",
    "hoist-groups",
    "place-words",
    "fold-constants",
    "legalise",
    "rename-reserved",
)
"""Every pass, in order; `check` is the front end's result."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What a program is specialised for."""

    mode: str
    granularity: Granularity
    shape: tuple[int, ...] | None
    target: Target
    plain_scale: bool = False
    """Whether every scale meets what quick code asks of it."""


def lower_program(
    program: Program, variant: Variant, observe: Callable[[str, Program], None] | None = None
) -> tuple[Program, tuple[Plan, ...]]:
    """Return the LEGAL program and the plans of its kernels. `observe` is called with each pass's name and what it made.

    Raises `QgenError` QG301 to QG303 where the library, an index or the target cannot do it, `InternalError` where a pass is wrong.
    """
    ran = _runner(observe)
    mode, plain = variant.mode, variant.plain_scale
    hoisted = _hoist_kept(ById(program), mode, plain) if observe is None else _hoist(program, mode, ran, plain_scale=plain)
    plans = tuple(plan_kernel(hoisted, kernel, variant.granularity, variant.shape, variant.target) for kernel in hoisted.kernels)
    placed = ran("place-words", place_words(hoisted, plans))
    folded = ran("fold-constants", fold_constants(placed))
    legal = ran("legalise", legalise(folded, plans[-1], variant.target))
    return ran("rename-reserved", rename_reserved(legal)), plans


def lower_fragment(program: Program, variant: Variant, prefix: str) -> tuple[Program, Plan]:
    """Return a LEGAL program of functions alone, all names of which begin with `prefix`, and the plan they follow.

    Raises as `lower_program` does, and `QgenError` QG962 where the prefix makes two names one.
    """
    ran = _runner(None)
    hoisted = _hoist_kept(ById(program), variant.mode, variant.plain_scale)
    plan = plan_kernel(hoisted, hoisted.kernels[-1], variant.granularity, variant.shape, variant.target)
    placed = ran("place-functions", place_functions(hoisted, plan))
    legal = ran("legalise", legalise(placed, plan, variant.target))
    renamed = ran("rename-reserved", rename_reserved(legal))
    return ran("prefix-names", prefix_names(renamed, prefix)), plan


def scale_condition(program: Program, mode: str) -> Condition | None:
    """Return what quick code of a CHECKED program asks of every scale, whatever x is; None where it asks nothing."""
    return find_condition(guard_quick(realise(split_reductions(program), mode)))


@lru_cache(maxsize=1024)
def _hoist_kept(program: ById[Program], mode: str, plain_scale: bool) -> Program:  # noqa: FBT001 - a key of the cache
    """Return what granularities, shapes and targets of one signature share."""
    return _hoist(program.value, mode, _runner(None), plain_scale=plain_scale)


def _hoist(program: Program, mode: str, ran: Callable[[str, Program], Program], *, plain_scale: bool) -> Program:
    checked = ran("check", program)
    split = ran("split-reductions", split_reductions(checked))
    realised = ran("realise", realise(split, mode))
    guarded = ran("guard-quick", guard_quick(realised))
    discharged = ran("discharge-scale", discharge_scale(guarded) if plain_scale else guarded)
    return ran("hoist-groups", hoist_groups(discharged))


def _runner(observe: Callable[[str, Program], None] | None) -> Callable[[str, Program], Program]:
    """Return what takes each pass's name and what it made: a program that is another one is verified, and shown to `observe`."""
    verifier = Verifier()
    verified: Program | None = None

    def ran(name: str, result: Program) -> Program:
        nonlocal verified
        if result is not verified:
            verified = verifier.verify(result, name)
        if observe is not None:
            observe(name, result)
        return result

    return ran
