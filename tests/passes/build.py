"""Formulas of the tests' own through the whole compiler: what `qgen.compile` does, for an operator that qgen does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from qgen.dtypes import DTYPES
from qgen.emit.module import ModuleSpec, emit_module
from qgen.frontend.check_op import Binding, check_op
from qgen.frontend.parse import parse_source
from qgen.ir.program import Program
from qgen.passes.pipeline import Variant, lower_program
from qgen.passes.plan import Plan
from qgen.shapes import Granularity, PerTensor
from qgen.target import load_target

FORMULA = """
op Scale(x: X, x_scale: S per group, x_zero_point: X per group = 0) -> y: Y
{
    y = (((x as int) - (x_zero_point as int)) as float32) * (x_scale as float32);
}
"""
DTYPES_OF_FORMULA: Mapping[str, str] = {"X": "uint8", "S": "float32", "Y": "float32"}


@dataclass(frozen=True, slots=True)
class Lowered:
    """A formula, and what each pass made of it."""

    stages: Mapping[str, Program]
    plans: tuple[Plan, ...]
    wgsl: str

    @property
    def legal(self) -> Program:
        return self.stages["rename-reserved"]


def lower(
    text: str = FORMULA,
    dtypes: Mapping[str, str] = DTYPES_OF_FORMULA,
    granularity: Granularity | None = None,
    shape: tuple[int, ...] | None = None,
    *,
    absent: tuple[str, ...] = (),
    mode: str = "strict",
    target: str = "webgpu",
    entry_point: str | None = None,
) -> Lowered:
    """Return the first operator of `text`, lowered and emitted."""
    source = parse_source(text, "test.qg")
    checked = check_op(source, source.ops[0], Binding({key: DTYPES[dtype] for key, dtype in dtypes.items()}, {}, frozenset(absent)))
    if entry_point is not None:
        checked = replace(checked, kernels=tuple(replace(kernel, name=entry_point) for kernel in checked.kernels))
    stages: dict[str, Program] = {}
    chosen = load_target(target)
    legal, plans = lower_program(checked, Variant(mode, granularity or PerTensor(), shape, chosen), stages.__setitem__)
    spec = ModuleSpec(legal, checked, plans, shape=shape, mode=mode, uses_native=mode != "strict", target=chosen, group=0)
    return Lowered(stages, plans, emit_module(spec))
