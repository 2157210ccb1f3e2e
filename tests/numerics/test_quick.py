"""Functions with a condition: wherever their `require`s hold they are right, on every device that it describes, and mostly they hold.

The condition `exact` promises that f32 sums, differences and products of normal numbers with a normal result round to nearest even. Nothing
else: a division is off by up to 2.5 ULP, subnormal operands and results are flushed at will, and what is infinite or NaN may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from qgen.arrays import numpy_dtype, to_codes
from qgen.dtypes import DType
from qgen.evaluate import Ieee
from qgen.evaluate.model import Array
from qgen.ir.nodes import Binary, Bitcast, Builtin, Convert, Expr, Literal
from qgen.ir.types import Scalar
from qgen.oracle.formats import max_value
from tests.numerics.clauses import Clause, Codes, library_clauses, mismatches
from tests.numerics.samples import arguments

QUICK = [clause for clause in library_clauses() if clause.pattern.condition is not None]
TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True, slots=True)
class Exact(Ieee):
    """A device of the mode `exact` at its worst: divisions off by `steps` where WGSL allows it, no subnormals if `flushes`."""

    steps: int
    flushes: bool

    def adjust(self, node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        if isinstance(node, Literal | Bitcast) or ieee.dtype != np.float32:
            return ieee
        result = ieee
        if self.flushes and not isinstance(node, Convert):
            result = _recompute(node, tuple(_flush(operand) for operand in operands), ieee)
        if isinstance(node, Binary) and node.op == "/":
            result = self._divide(operands, result)
        if self.flushes:
            result = _flush(result)
        return np.where(np.isfinite(result), result, np.float32(1.5))

    def _divide(self, operands: tuple[Array, ...], quotient: Array) -> Array:
        x, y = (operand.astype(np.float64) for operand in operands)
        shifted = (quotient.view(np.int32) + np.int32(self.steps)).view(np.float32)
        with np.errstate(all="ignore"):
            exact = x / y
            ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), TINY))) - 23)
            allowed = np.abs(shifted.astype(np.float64) - exact) <= 2.5 * ulp
        return np.where(allowed, shifted, quotient)


def _flush(values: Array) -> Array:
    return np.where(np.abs(values) < TINY, np.float32(0), values) if values.dtype == np.float32 else values


def _recompute(node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
    match node:
        case Binary(op, _, _, Scalar.F32):
            operation = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[op]
            with np.errstate(all="ignore"):
                return np.asarray(operation(*operands), np.float32)
        case Builtin("abs", _, _):
            return np.abs(operands[0])
        case Builtin("round", _, _):
            return np.rint(operands[0])
        case _:
            return ieee


@pytest.mark.parametrize("flushes", [False, True], ids=["subnormals", "flushed"])
@pytest.mark.parametrize(("steps", "deciding"), [(-5, -5), (2, 2), (-2, 2), (2, -2), (-5, 2)])
@pytest.mark.parametrize("clause", QUICK, ids=str)
def test_quick_functions_are_right_wherever_they_may_be_used(clause: Clause, steps: int, deciding: int, flushes: bool) -> None:  # noqa: FBT001 - a column
    """The division that makes the value and the one that decides may differ: they stand in two functions of a kernel."""
    models = Exact(steps, flushes), Exact(deciding, flushes=False)
    assert mismatches(clause, arguments(clause, seed=5, count=30_000), *models) == []
    assert mismatches(clause, ordinary(clause, 10_000), *models) == []


@pytest.mark.parametrize("clause", QUICK, ids=str)
def test_quick_functions_hold_for_ordinary_operands(clause: Clause) -> None:
    _, held = clause.actual(ordinary(clause, 50_000))
    assert held.mean() > 0.9
    assert clause.is_partial or held.all()


def test_one_quick_function_needs_no_require() -> None:
    """Its condition is all that it relies on: every operand is computed the quick way."""
    assert {clause.name for clause in QUICK if not clause.is_partial} == {"convert_to_f16"}


def ordinary(clause: Clause, count: int) -> tuple[Codes, ...]:
    """Return weights from N(0, 1), or integers of 8 bits, and scales that leave nothing to saturate."""
    rng = np.random.default_rng(6)
    result = clause.pattern.expr.type
    greatest = min(max_value(result.format), 100.0) if isinstance(result, DType) and result.format is not None else 100.0
    drawn: list[Codes] = []
    for position, (_, of) in enumerate(clause.pattern.params):
        if isinstance(of, DType):
            values = rng.normal(0, 1, count) if position == 0 else rng.uniform(5, 10, count) / greatest
            drawn.append(to_codes(values.astype(numpy_dtype(of)), of))
        else:
            drawn.append(rng.integers(-128, 128, count).astype(np.int32))
    return tuple(drawn)
