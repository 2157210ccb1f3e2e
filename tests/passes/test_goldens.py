"""Each pass, text in and text out; the case of a golden is what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from qgen.dtypes import DTYPES, DType
from qgen.formulas import find_operator
from qgen.frontend.check_op import Binding, check_op
from qgen.ir.print import print_program
from qgen.ir.program import Program
from qgen.passes.discharge import discharge_scale
from qgen.passes.fold import fold_constants
from qgen.passes.guard import guard_quick
from qgen.passes.pipeline import PASSES, Variant, lower_program
from qgen.passes.rename import rename_reserved
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.target import load_target
from tests.goldens import Goldens
from tests.passes.build import lower
from tests.passes.test_rename import AWKWARD

QUANTIZE = ("Quantize", "float32 float32 uint8")
DYNAMIC = ("DynamicQuantize", "float32 float32 uint8")
DEQUANTIZE = ("Dequantize", "int4 float32 float32")


@dataclass(frozen=True, slots=True)
class Case:
    """An operator under a binding, and how it is specialised."""

    op: tuple[str, str] = QUANTIZE
    granularity: Granularity = field(default_factory=PerTensor)
    shape: tuple[int, ...] | None = (1000,)
    mode: str = "strict"
    zero_point: bool = True
    plain_scale: bool = False


CASES: Mapping[str, Case] = {
    "split-reductions-dynamic": Case(DYNAMIC),
    "realise-strict": Case(),
    "realise-keys": Case(DYNAMIC),
    "realise-exact": Case(mode="exact"),
    "realise-fast": Case(mode="fast"),
    "realise-integers": Case(DEQUANTIZE),
    "guard-quick-quotient": Case(mode="exact"),
    "guard-quick-product": Case(DEQUANTIZE, mode="exact"),
    "discharge-scale-quotient": Case(mode="exact", plain_scale=True),
    "discharge-scale-product": Case(DEQUANTIZE, mode="exact", plain_scale=True),
    "hoist-groups-zero-point": Case(),
    "hoist-groups-no-zero-point": Case(zero_point=False),
    "hoist-groups-quick": Case(mode="exact"),
    "place-words-shared-group": Case(),
    "place-words-group-of-each": Case(granularity=Blocked(-1, 3), shape=(4, 100)),
    "place-words-uniforms": Case(granularity=PerAxis(1), shape=None),
    "place-words-quick": Case(mode="exact"),
    "hoist-groups-plain": Case(DEQUANTIZE, mode="exact", plain_scale=True),
    "place-words-plain": Case(DEQUANTIZE, mode="exact", plain_scale=True),
    "place-words-nibbles": Case(DEQUANTIZE, granularity=PerAxis(0), shape=(3, 16)),
    "place-words-reduction": Case(DYNAMIC, shape=None),
    "place-words-six-bits": Case(("Dequantize", "float6e2m3 float32 float32"), shape=(100,)),
    "place-words-straddling-words": Case(("Quantize", "float32 float32 float6e3m2"), shape=(100,), zero_point=False),
    "fold-constants-group": Case(granularity=PerAxis(0), shape=(3, 1)),
}
"""By `<pass>-<what it shows>`."""


def stages(case: Case) -> dict[str, Program]:
    title, dtypes = case.op
    source, op = find_operator(f"{title}Linear")
    absent = frozenset() if case.zero_point else frozenset({op.operands[-1].name})
    bound: dict[str, DType] = {key: DTYPES[dtype] for key, dtype in zip("XSY", dtypes.split(), strict=True)}
    found: dict[str, Program] = {}
    lower_program(
        check_op(source, op, Binding(bound, {}, absent)),
        Variant(case.mode, case.granularity, case.shape, load_target("webgpu"), case.plain_scale),
        found.__setitem__,
    )
    return found


def show(name: str, before: Program, after: Program) -> str:
    return f"before {name}\n\n{print_program(before)}\nafter {name}\n\n{print_program(after)}"


def functions_left_out(program: Program, other: Program) -> Program:
    """Return the program without the functions of the library that both have, of which a golden would only repeat the text."""
    same = {id(function) for function in other.functions}
    return replace(program, functions=tuple(function for function in program.functions if id(function) not in same))


@pytest.mark.parametrize("title", CASES)
def test_passes_read_well(title: str, golden: Goldens) -> None:
    name = max((each for each in PASSES if title.startswith(each)), key=len)
    found = stages(CASES[title])
    before = found[PASSES[PASSES.index(name) - 1]]
    after = found[name]
    golden.check(f"ir/{title}.txt", show(name, functions_left_out(before, after), functions_left_out(after, before)))


def test_renaming_reads_well(golden: Goldens) -> None:
    found = lower(AWKWARD, shape=(8,)).stages
    before, after = found["legalise"], found["rename-reserved"]
    golden.check(
        "ir/rename-reserved-awkward.txt", show("rename-reserved", functions_left_out(before, after), functions_left_out(after, before))
    )


def test_every_pass_that_changes_a_program_is_shown() -> None:
    shown = {name for name in PASSES for title in (*CASES, "rename-reserved-awkward") if title.startswith(name)}
    assert shown >= set(PASSES) - {"check", "legalise"}


@pytest.mark.parametrize("title", CASES)
def test_a_pass_gives_back_the_program_where_it_changes_nothing(title: str) -> None:
    found = stages(CASES[title])
    legal = found["rename-reserved"]
    assert fold_constants(legal) is legal
    assert rename_reserved(legal) is legal
    assert found["legalise"] is found["fold-constants"]
    assert guard_quick(found["guard-quick"]) is found["guard-quick"]
    assert discharge_scale(found["discharge-scale"]) is found["discharge-scale"] or not CASES[title].plain_scale
    assert (found["discharge-scale"] is found["guard-quick"]) is not CASES[title].plain_scale
    if CASES[title].mode == "strict":
        assert found["guard-quick"] is found["realise"]
