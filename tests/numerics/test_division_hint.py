"""What the strict mode relies on: integers, exact conversions and products, and a division of values in [1, 4) that may be off by 2.5 ULP.

`div_f32` counts its quotient in steps of float32 from the hint. The hint lies in [1, 2), where a step is one ULP, or just below 1, where a
step is half of one: so 2.5 ULP (WGSL, "Accuracy of Concrete Floating Point Expressions") are at most 2 steps up from the correctly rounded
quotient, and 5 down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.evaluate import Ieee
from qgen.evaluate.model import Array
from qgen.ir.nodes import Binary, Bitcast, Convert, Expr, Literal
from qgen.ir.types import Scalar
from tests.numerics.clauses import Clause, clause_of, library_clauses, library_texts, mismatches
from tests.numerics.samples import arguments

CLAUSES = library_clauses()
(DIV_F32,) = (clause for clause in CLAUSES if clause.name == "div_f32")
STEPS_DOWN, STEPS_UP = 7, 7
"""What the algorithm survives whatever the quotient, in steps of the hint."""


@dataclass(slots=True)
class ShiftedDivision(Ieee):
    """Divides f32 off by `steps`; where that is more than WGSL allows, and `is_legal`, correctly. `moved` counts the lanes that are off."""

    steps: int
    is_legal: bool
    moved: int = 0

    def adjust(self, node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        if not (isinstance(node, Binary) and node.op == "/" and node.type is Scalar.F32):
            return ieee
        x, y = (operand.astype(np.float64) for operand in operands)
        shifted = (ieee.view(np.int32) + np.int32(self.steps)).view(np.float32)
        # Exact in float64: a product of two significands of 24 bits, and a difference of close numbers.
        error = np.abs(shifted.astype(np.float64) * y - x)
        allowed = error <= 2.5 * 2.0**-23 * y if self.is_legal else np.ones(ieee.shape, np.bool_)
        self.moved += int(allowed.sum())
        return np.where(allowed, shifted, ieee)


@pytest.mark.parametrize("steps", [-5, -4, -3, -2, -1, 1, 2])
def test_every_hint_that_wgsl_allows_gives_the_same_quotient(steps: int) -> None:
    args = arguments(DIV_F32, seed=2, count=150_000)
    model = ShiftedDivision(steps, is_legal=True)
    assert mismatches(DIV_F32, args, model) == []
    assert model.moved > 0


@pytest.mark.parametrize("steps", [-STEPS_DOWN, STEPS_UP])
def test_a_hint_at_the_margin_gives_the_same_quotient(steps: int) -> None:
    assert mismatches(DIV_F32, arguments(DIV_F32, seed=3, count=150_000), ShiftedDivision(steps, is_legal=False)) == []


@pytest.mark.parametrize("steps", [-STEPS_DOWN - 1, STEPS_UP + 1])
def test_a_hint_beyond_the_margin_moves_the_quotient(steps: int) -> None:
    """The tests above look where they should: the model's offset reaches the result."""
    assert mismatches(DIV_F32, arguments(DIV_F32, seed=3, count=150_000), ShiftedDivision(steps, is_legal=False))


def test_a_correction_that_starts_at_the_hint_is_found() -> None:
    """A fault that no correctly rounded division shows: the quotient is counted up from the hint, which must not be above it."""
    texts = library_texts()
    assert "0x7ffff8" in texts["float32.qg"]
    texts["float32.qg"] = texts["float32.qg"].replace("0x7ffff8", "0x7fffff")
    clause = clause_of(texts, "div_f32")
    args = arguments(clause, seed=2, count=60_000)
    assert mismatches(clause, args) == []
    assert mismatches(clause, args, ShiftedDivision(2, is_legal=True)) != []


class OnlyPromised(Ieee):
    """Fails where a function uses f32 in a way whose result WGSL leaves open."""

    def adjust(self, node: Expr, operands: tuple[Array, ...], ieee: Array) -> Array:
        match node:
            case Binary("/", _, _, Scalar.F32):
                dividend, divisor = operands
                assert _lies_in(dividend, 1, 4)
                assert _lies_in(divisor, 1, 2)
            case Binary("*", _, _, Scalar.F32):
                x, y = (operand.astype(np.float64) for operand in operands)
                assert (ieee == x * y).all()  # two significands of 24 bits: exact in float64, so in float32 too
            case Convert(operand, Scalar.F32):
                assert operand.type is Scalar.I32
                assert np.abs(operands[0].astype(np.int64)).max() <= 1 << 24
            case Bitcast(_, Scalar.F32 | Scalar.U32):
                number = ieee if node.type is Scalar.F32 else operands[0]
                assert ((number == 0) | (np.isfinite(number) & (np.abs(number) >= np.finfo(np.float32).tiny))).all()
            case Literal():
                pass
            case _:
                pytest.fail(f"strict code computes {type(node).__name__} on f32")
        return ieee


def _lies_in(values: NDArray[np.float32], low: int, high: int) -> bool:
    return bool(((values >= low) & (values < high)).all())


@pytest.mark.parametrize("clause", [clause for clause in CLAUSES if clause.pattern.condition is None], ids=str)
def test_functions_without_a_condition_use_f32_only_as_wgsl_promises(clause: Clause) -> None:
    clause.actual(arguments(clause, seed=4, count=20_000), OnlyPromised())
