"""What formulas and functions mean under a binding: goldens of CHECKED, decisions, absent operands, and the proof about `round_even`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgen.dtypes import DTYPES, DType
from qgen.errors import QgenError
from qgen.formulas import find_operator
from qgen.frontend.check_expr import ROUNDED
from qgen.frontend.check_op import Binding, check_op
from qgen.ir import nodes as ir
from qgen.ir.print import print_program
from qgen.ir.program import Program
from qgen.ir.rewrite import walk_expr
from qgen.ir.verify import verify
from qgen.oracle import evaluate_reference
from qgen.shapes import PerTensor
from tests.frontend.test_errors import check_formula
from tests.goldens import Goldens

GOLDENS: Mapping[str, tuple[str, str, Mapping[str, DType | bool], bool]] = {
    "quantize-float32-uint8": ("Quantize", "float32 float32 uint8", {}, True),
    "quantize-float32-uint8-no-zero-point": ("Quantize", "float32 float32 uint8", {}, False),
    "quantize-float16-int4": ("Quantize", "float16 float16 int4", {}, True),
    "quantize-float16-in-float32": ("Quantize", "float16 float16 int16", {"precision": DTYPES["float32"]}, True),
    "quantize-bfloat16-mixed": ("Quantize", "bfloat16 float32 uint2", {"precision": DTYPES["bfloat16"]}, True),
    "quantize-float8": ("Quantize", "float32 float32 float8e4m3fn", {}, False),
    "quantize-float8-overflow": ("Quantize", "float32 float32 float8e5m2", {"saturate": False}, False),
    "quantize-float4": ("Quantize", "float32 float32 float4e2m1", {}, True),
    "dequantize-uint8-float32": ("Dequantize", "uint8 float32 float32", {}, True),
    "dequantize-int4-float16": ("Dequantize", "int4 bfloat16 float16", {}, False),
    "dequantize-int32-float32": ("Dequantize", "int32 float32 float32", {}, True),
    "dequantize-float6-float32": ("Dequantize", "float6e2m3 float32 float32", {}, True),
}
"""By the name of the golden: the operator, the dtypes of X, S and Y, attributes, and whether there is a zero point."""


@pytest.mark.parametrize("name", GOLDENS)
def test_the_operators_under_a_binding(name: str, golden: Goldens) -> None:
    title, dtypes, attributes, zero_point = GOLDENS[name]
    source, op = find_operator(f"{title}Linear")
    absent = frozenset() if zero_point else frozenset({op.operands[-1].name})
    binding = Binding({key: DTYPES[dtype] for key, dtype in zip("XSY", dtypes.split(), strict=True)}, attributes, absent)
    program = check_op(source, op, binding)
    verify(program, "check")
    golden.check(f"ir/check-{name}.txt", f"with {binding}\n\n{print_program(program)}")


def test_every_operand_and_result_is_declared_in_order() -> None:
    program = check_formula("y = z;", "x: X, s: S per group, z: Y per group = 0")
    assert [(operand.name, operand.dtype.name, operand.is_output, operand.per_group) for operand in program.operands] == [
        ("x", "float32", False, False),
        ("s", "float32", False, True),
        ("z", "uint8", False, True),
        ("y", "uint8", True, False),
    ]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("true", True),
        ("false", False),
        ("!false", True),
        ("flag", True),
        ("Y is integer", True),
        ("Y is unsigned", True),
        ("Y is signed", False),
        ("X is float", True),
        ("X is float8", False),
        ("half is narrow_float", True),
        ("X is narrow_float", False),
        ("X is float && Y is signed", False),
        ("X is float || Y is signed", True),
        ("false && (false || true)", False),
        ("!(X is float && Y is integer)", False),
    ],
)
def test_conditions_are_decided_when_the_formula_is_checked(condition: str, holds: bool) -> None:  # noqa: FBT001 - a column of the table
    attrs = "attr flag: bool = true\nattr half: dtype = float16\n"
    program = check_formula(f"if {condition} {{ y = z; }} else {{ y = (z as int) as Y saturating; }}", attrs=attrs)
    (write,) = program.kernels[0].body
    assert isinstance(write, ir.Write)
    assert isinstance(write.value, ir.Read) == holds


def test_an_undecided_right_operand_is_not_looked_at() -> None:
    assert check_formula("if false && x { y = y; } else { y = z; }") == check_formula("y = z;")


@pytest.mark.parametrize(
    ("absent", "present"),
    [
        ("(x / s) + (z as float32)", "x / s"),
        ("(z as float32) + (x / s)", "x / s"),
        ("(x / s) - (z as float32)", "x / s"),
        ("(x / s) + (z as float32) - (z as float32)", "x / s"),
    ],
)
def test_sums_and_differences_drop_an_absent_operand(absent: str, present: str) -> None:
    head = "x: X, s: S per group, z: Y per group = 0"
    dropped = check_formula(f"y = round_even({absent}) as Y saturating;", head, absent=("z",))
    assert dropped.kernels == check_formula(f"y = round_even({present}) as Y saturating;", head, absent=("z",)).kernels
    assert [operand.name for operand in dropped.operands] == ["x", "s", "y"]


def test_a_let_names_an_absent_operand_too() -> None:
    program = check_formula("let shift = z as int; y = (round_even(x / s) + shift) as Y saturating;", absent=("z",))
    assert program.kernels == check_formula("y = round_even(x / s) as Y saturating;", absent=("z",)).kernels


def test_a_let_in_a_branch_is_not_seen_after_it() -> None:
    with pytest.raises(QgenError, match="`q` is not defined here"):
        check_formula("if true { let q = x / s; } y = round_even(q) as Y saturating;")


def test_two_branches_may_name_their_values_alike() -> None:
    program = verify(check_formula("if true { let q = x / s; } if true { let q = x * s; y = round_even(q) as Y saturating; }"), "check")
    assert [stmt.name for stmt in program.kernels[0].body if isinstance(stmt, ir.Let)] == ["q", "q_2"]
    write = program.kernels[0].body[-1]
    assert isinstance(write, ir.Write)
    assert ir.Name("q_2", DTYPES["float32"]) in walk_expr(write.value)


def rounded_formula(shifts: tuple[int, ...], dtype: str) -> Program:
    terms = "".join(f" + {shift}" if shift >= 0 else f" - {-shift}" for shift in shifts)
    return check_formula(f"y = (round_even(x / s){terms}) as Y saturating;", "x: X, s: S per group", Y=dtype)


SHIFTS = st.lists(
    st.one_of(st.integers(-400_000, 400_000), st.sampled_from([0, 1, 262_144, -262_144, 262_145, -262_145, 196_609, -229_377])), max_size=3
)


@given(shifts=SHIFTS.map(tuple), dtype=st.sampled_from(["int2", "uint4", "int8", "uint8", "int16", "uint16"]))
def test_round_even_is_exact_wherever_it_is_accepted_and_only_there(shifts: tuple[int, ...], dtype: str) -> None:
    """The machine clamps to ±2^18, the oracle does not: a formula is accepted where no quotient shows the difference, and else refused."""
    low, high = DTYPES[dtype].min, DTYPES[dtype].max
    quotients = np.array(
        [*range(-3, 4), -(2**30), 2**30, *(end + step for end in (ROUNDED.lo, ROUNDED.hi, low, high) for step in range(-2, 3))]
    )
    exact = np.clip(quotients + sum(shifts), low, high)
    clamped = np.clip(np.clip(quotients, ROUNDED.lo, ROUNDED.hi) + sum(shifts), low, high)
    if (exact != clamped).any():
        with pytest.raises(QgenError, match="not enough to saturate"):
            rounded_formula(shifts, dtype)
        return
    program = rounded_formula(shifts, dtype)
    inputs = {"x": quotients.astype(np.float32), "s": np.ones((), np.float32)}
    assert (evaluate_reference(program, PerTensor(), inputs)["y"].astype(np.int64) == exact).all()


def test_a_zero_point_counts_with_its_whole_interval() -> None:
    check_formula("y = (round_even(x / s) + (z as int)) as Y saturating;", Y="int16")
    check_formula("y = (round_even(x / s) + (z as int) + 196609) as Y saturating;", Y="uint16")
    with pytest.raises(QgenError, match="not enough to saturate"):
        check_formula("y = (round_even(x / s) + (z as int) + 196610) as Y saturating;", Y="uint16")
