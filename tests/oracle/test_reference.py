"""The walk over a program: groups, shapes, what the oracle refuses, and what it must not depend on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from qgen.dtypes import DTYPES
from qgen.errors import InternalError, QgenError
from qgen.ir.nodes import Binary, Expr, Let, Literal, Name, Op, Read, Reduce, Return, Select, Stmt, Typed, Unary, Write
from qgen.ir.program import Kernel, Operand, Program, Stage
from qgen.ir.types import Int, Scalar
from qgen.oracle import evaluate_reference
from qgen.oracle.groups import expand_groups, gather_groups, reduce_groups
from qgen.shapes import Granularity, blocked, make_view, per_axis, per_tensor, scale_shape
from tests.goldens import Goldens
from tests.oracle.nodes import Array, make_signature, same_bits
from tests.oracle.programs import build_program

FLOAT32, UINT8, INT32 = DTYPES["float32"], DTYPES["uint8"], DTYPES["int32"]
QUANTIZE = build_program(make_signature("QuantizeLinear", 25, (FLOAT32, FLOAT32, UINT8), zero_point=True))


@pytest.mark.parametrize("shape", [(7,), (1,), (2, 7), (7, 2), (2, 7, 3), (2, 3, 4, 5), (0, 3), (3, 0), (2, 0, 3)], ids=str)
def test_each_element_has_the_scale_that_the_view_gives_it(shape: tuple[int, ...]) -> None:
    granularities: list[Granularity] = [per_tensor()]
    for axis in range(-len(shape), len(shape)):
        granularities += [per_axis(axis), *(blocked(axis, size) for size in (1, 2, 3, 7, 2**40))]
    for granularity in granularities:
        view = make_view(granularity, shape)
        scales = np.arange(float(np.prod(scale_shape(granularity, shape)))).reshape(scale_shape(granularity, shape))
        if granularity.kind == "per_tensor":
            want = np.zeros(shape)
        else:
            outer, axis, inner = np.indices((view.outer, view.axis, view.inner))
            number = axis if granularity.kind == "per_axis" else (outer * view.blocks + axis // view.block_size) * view.inner + inner
            want = number.reshape(shape)
        assert np.array_equal(expand_groups("x_scale", scales, shape, granularity), want)


REDUCED = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0**-149)


@pytest.mark.parametrize("shape", [(7,), (1,), (2, 7), (7, 2), (2, 7, 3), (0, 3), (3, 0)], ids=str)
def test_a_group_is_reduced_to_its_greatest_and_least(shape: tuple[int, ...]) -> None:
    granularities: list[Granularity] = [per_tensor()]
    for axis in range(-len(shape), len(shape)):
        granularities += [per_axis(axis), *(blocked(axis, size) for size in (1, 2, 3, 7, 2**40))]
    for seed, granularity in enumerate(granularities):
        groups = scale_shape(granularity, shape)
        values = np.random.default_rng(seed).choice(REDUCED, shape, p=[0.03, *[0.97 / 7] * 7])
        group_of = expand_groups("x_scale", np.arange(float(np.prod(groups))).reshape(groups), shape, granularity)
        for op, pick in ((Op.MAX, max), (Op.MIN, min)):
            reduced = reduce_groups(values, op, granularity)
            if 0 in shape:
                assert reduced.tolist() == (-math.inf if op is Op.MAX else math.inf)
                continue
            gathered = gather_groups(reduced, shape, granularity)
            assert gathered.shape == groups
            for number, got in enumerate(gathered.reshape(-1).tolist()):
                members = values[group_of == number].tolist()
                wanted = math.nan if any(map(math.isnan, members)) else pick(members, key=lambda value: (value, math.copysign(1.0, value)))
                assert repr(got) == repr(wanted)


def test_groups_of_an_empty_x_have_what_the_formula_declares() -> None:
    declared = Operand("least", UINT8, is_output=True, per_group=True, on_empty=7)
    operands = (Operand("x", FLOAT32), Operand("s", FLOAT32, per_group=True), declared)
    body = (
        Write(
            "least", Typed(Op.SATURATE, (Typed(Op.ADD, (Reduce(Op.MIN, Read("x", FLOAT32), FLOAT32), Read("s", FLOAT32)), FLOAT32),), UINT8)
        ),
    )
    program = Program("test", Stage.CHECKED, operands, (Kernel("test", body),))
    for granularity, shape, groups in ((per_tensor(), (0, 3), ()), (per_axis(1), (0, 3), (3,)), (blocked(1, 2), (2, 0), (2, 0))):
        inputs: dict[str, Array] = {"x": np.zeros(shape, np.float32), "s": np.ones(groups, np.float32)}
        assert same_bits(evaluate_reference(program, granularity, inputs)["least"], np.full(groups, 7, np.uint8))


def test_conditions_are_decided_for_each_element() -> None:
    x = Read("x", FLOAT32)
    zero = Typed(Op.CONVERT, (Literal(0, Int(0, 0)),), FLOAT32)
    is_nan, is_zero = Typed(Op.IS_NAN, (x,), Scalar.BOOL), Typed(Op.EQUAL, (x, zero), Scalar.BOOL)
    for condition, wanted in (
        (is_nan, [1, 0, 0, 0]),
        (is_zero, [0, 1, 1, 0]),
        (Unary("!", is_nan, Scalar.BOOL), [0, 1, 1, 1]),
        (Binary("||", is_nan, is_zero, Scalar.BOOL), [1, 1, 1, 0]),
        (Binary("&&", Unary("!", is_nan, Scalar.BOOL), Unary("!", is_zero, Scalar.BOOL), Scalar.BOOL), [0, 0, 0, 1]),
    ):
        chosen = Select(condition, Literal(1, Int(0, 1)), Literal(0, Int(0, 1)), Int(0, 1))
        y = evaluate_reference(
            _program((Write("y", Typed(Op.CONVERT, (chosen,), INT32)),)),
            per_tensor(),
            {"x": np.array([np.nan, 0.0, -0.0, 2.0], np.float32)},
        )
        assert y["y"].tolist() == wanted


@pytest.mark.parametrize(
    "scale", [np.array(2, np.float32), np.full(1, 2, np.float32), np.full((1, 1), 2, np.float32)], ids=["scalar", "1", "1x1"]
)
def test_rank_zero_and_empty_shapes_are_evaluated(scale: np.ndarray) -> None:
    for shape in ((), (0,), (2, 0), (1, 1)):
        x = np.full(shape, 9, np.float32)
        y = evaluate_reference(QUANTIZE, per_tensor(), {"x": x, "y_scale": scale, "y_zero_point": np.array(1, np.uint8)})["y"]
        assert same_bits(y, np.full(shape, 5, np.uint8))


def test_the_order_and_strides_of_inputs_do_not_matter() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    inputs: dict[str, Array] = {"y_scale": np.array(1, np.float32), "y_zero_point": np.array(0, np.uint8)}
    for view in (x.T, x[::-1, ::2], np.broadcast_to(x[:, :1], (3, 4)), x.astype(">f4")):
        assert same_bits(evaluate_reference(QUANTIZE, per_tensor(), {"x": view, **inputs})["y"], view.astype(np.uint8))


def test_the_interval_of_an_integer_is_not_applied() -> None:
    # The machine keeps a rounded quotient in its interval; were the checker's proof wrong, the oracle must not follow it.
    q = Name("q", FLOAT32)
    body = (Let("q", Read("x", FLOAT32)), Write("y", Typed(Op.CONVERT, (Typed(Op.ROUND_EVEN, (q,), Int(-1, 1)),), INT32)))
    x = np.array([-1e6, 5.5, 2.0**31 - 128], np.float32)
    assert evaluate_reference(_program(body), per_tensor(), {"x": x})["y"].tolist() == [-1000000, 6, 2147483520]


def test_an_integer_has_one_zero() -> None:
    rounded = Typed(Op.ROUND_EVEN, (Read("x", FLOAT32),), Int(-9, 9))
    body = (Write("y", Typed(Op.CONVERT, (Typed(Op.NEG, (rounded,), Int(-9, 9)),), FLOAT32)),)
    for x in (0.0, -0.0, 0.25, -0.25):
        y = evaluate_reference(_program(body, "float32"), per_tensor(), {"x": np.array([x], np.float32)})["y"]
        assert same_bits(y, np.zeros(1, np.float32))


def test_results_are_written_with_the_one_nan() -> None:
    body = (Write("y", Read("x", FLOAT32)),)
    x = np.array([0x7F800001, 0xFFC12345, 0x80000000, 0xFF800000], np.uint32).view(np.float32)
    y = evaluate_reference(_program(body, "float32"), per_tensor(), {"x": x})["y"]
    assert y.view(np.uint32).tolist() == [0x7FC00000, 0x7FC00000, 0x80000000, 0xFF800000]


def test_a_later_kernel_reads_what_an_earlier_one_wrote() -> None:
    operands = (Operand("x", FLOAT32), Operand("half", FLOAT32, is_output=True), Operand("y", UINT8, is_output=True))
    double = Typed(Op.ADD, (Read("x", FLOAT32), Read("x", FLOAT32)), FLOAT32)
    kernels = (
        Kernel("first", (Write("half", double),)),
        Kernel("second", (Write("y", Typed(Op.SATURATE, (Read("half", FLOAT32),), UINT8)),)),
    )
    results = evaluate_reference(Program("two", Stage.CHECKED, operands, kernels), per_tensor(), {"x": np.array([3.0], np.float32)})
    assert {name: array.tolist() for name, array in results.items()} == {"half": [6.0], "y": [6]}


ERRORS: dict[str, Callable[[], object]] = {
    "QG800": lambda: evaluate_reference(QUANTIZE, per_tensor(), {"x": np.zeros(3, np.float32), "y_scale": np.array(1, np.float32)}),
    "QG801": lambda: evaluate_reference(
        QUANTIZE,
        blocked(1, 4),
        {"x": np.zeros((2, 10), np.float32), "y_scale": np.ones((2, 2), np.float32), "y_zero_point": np.array(0, np.uint8)},
    ),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        ERRORS[code]()
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")


def test_nothing_is_broadcast_but_one_element_per_tensor() -> None:
    x = np.zeros((2, 3), np.float32)
    for granularity, shape in (
        (per_tensor(), (2,)),
        (per_axis(1), (2,)),
        (per_axis(1), ()),
        (per_axis(0), (2, 1)),
        (blocked(1, 2), (1, 2)),
    ):
        with pytest.raises(QgenError, match="needs the shape"):
            evaluate_reference(
                QUANTIZE, granularity, {"x": x, "y_scale": np.ones(shape, np.float32), "y_zero_point": np.zeros(shape, np.uint8)}
            )


def test_an_input_of_another_type_is_refused() -> None:
    with pytest.raises(QgenError) as caught:
        evaluate_reference(
            QUANTIZE, per_tensor(), {"x": np.zeros(3), "y_scale": np.array(1, np.float32), "y_zero_point": np.array(0, np.uint8)}
        )
    assert caught.value.code == "QG240"
    with pytest.raises(QgenError):
        evaluate_reference(
            QUANTIZE,
            per_tensor(),
            {"x": np.zeros(3, np.float32), "y_scale": np.array(1, np.float32), "y_zero_point": np.zeros((), ml_dtypes.uint4)},
        )


@pytest.mark.parametrize(
    "body",
    [
        (Return(None),),
        (Write("y", Unary("-", Literal(1, Scalar.I32), Scalar.I32)),),
        (Write("y", Typed(Op.CONVERT, (Literal(1 << 40, Int(1 << 40, 1 << 40)),), INT32)),),
        (Write("y", Typed(Op.CONVERT, (Read("x", FLOAT32),), INT32)),),
        (Write("y", Typed(Op.WRAP, (Typed(Op.ROUND_EVEN, (Read("x", FLOAT32),), Int(-9, 9)),), INT32)),),
        (Write("y", Typed(Op.WRAP, (Literal(1, Int(1, 1)),), Int(0, 2))),),
        (Write("y", Typed(Op.ADD, (Literal(1, Int(1, 1)),), INT32)),),
        (Write("y", Typed(Op.NEG, (Literal(1, Int(1, 1)), Literal(1, Int(1, 1))), INT32)),),
        (Write("y", Typed(Op.IS_NAN, (Read("x", FLOAT32),), Scalar.BOOL)),),
        (Write("y", Select(Literal(1, Int(1, 1)), Literal(1, Int(1, 1)), Literal(1, Int(1, 1)), INT32)),),
    ],
    ids=[
        "return",
        "machine type",
        "does not fit",
        "NaN is no integer",
        "infinity does not wrap",
        "no power of two",
        "one argument",
        "two",
        "a condition is no number",
        "a number is no condition",
    ],
)
def test_what_is_not_checked_ir_is_a_bug(body: tuple[Stmt, ...]) -> None:
    with pytest.raises(InternalError):
        evaluate_reference(_program(body), per_tensor(), {"x": np.array([np.nan, np.inf], np.float32)})


def test_only_checked_programs_with_an_input_are_evaluated() -> None:
    with pytest.raises(InternalError, match="CHECKED"):
        evaluate_reference(replace(QUANTIZE, stage=Stage.REALISED), per_tensor(), {})
    with pytest.raises(InternalError, match="gives the shape"):
        evaluate_reference(replace(QUANTIZE, operands=()), per_tensor(), {})


def test_two_inputs_of_different_shapes_are_refused() -> None:
    operands = (Operand("x", FLOAT32), Operand("z", FLOAT32), Operand("y", FLOAT32, is_output=True))
    total: Expr = Typed(Op.ADD, (Read("x", FLOAT32), Read("z", FLOAT32)), FLOAT32)
    program = Program("sum", Stage.CHECKED, operands, (Kernel("sum", (Write("y", total),)),))
    with pytest.raises(QgenError) as caught:
        evaluate_reference(program, per_tensor(), {"x": np.zeros(2, np.float32), "z": np.zeros(3, np.float32)})
    assert caught.value.code == "QG801"


def _program(body: tuple[Stmt, ...], y: str = "int32") -> Program:
    return Program("test", Stage.CHECKED, (Operand("x", FLOAT32), Operand("y", DTYPES[y], is_output=True)), (Kernel("test", body),))
