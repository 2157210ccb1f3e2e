"""The plan: the group of an element by the view's formula, the facts it relies on, and who owns which words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgen.dtypes import DTYPES
from qgen.errors import QgenError
from qgen.evaluate import evaluate_function
from qgen.ir import nodes as ir
from qgen.ir.program import Function, Kernel, Operand, Param, Program, Stage
from qgen.ir.rewrite import map_expr, walk_expr
from qgen.ir.types import Scalar
from qgen.passes.plan import MAX_ELEMENTS, Plan, plan_kernel
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor, View, make_view
from qgen.target import Target, load_target
from qgen.validate import validate_texts
from tests.passes.build import lower

TARGET = load_target("webgpu")


def program(x: str = "float32", y: str = "uint8") -> Program:
    operands = (Operand("x", DTYPES[x]), Operand("s", DTYPES["float32"], per_group=True), Operand("y", DTYPES[y], is_output=True))
    return Program("Test", Stage.REALISED, operands, (Kernel("main", ()),))


def plan(of: Program, granularity: Granularity, shape: tuple[int, ...] | None, target: Target = TARGET) -> Plan:
    return plan_kernel(of, of.kernels[0], granularity, shape, target)


def group_of(view: View, number: int) -> int:
    """Return the scale of an element, as the docstring of `View` defines it; per-axis has no `outer` in it."""
    outer, rest = divmod(number, view.axis * view.inner)
    axis, inner = divmod(rest, view.inner)
    return (outer * view.blocks + axis // view.block_size) * view.inner + inner


def expected_groups(granularity: Granularity, view: View, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    match granularity:
        case PerTensor():
            return [0] * len(numbers)
        case PerAxis():
            return [int(number) // view.inner % view.axis for number in numbers]
        case Blocked():
            return [group_of(view, int(number)) for number in numbers]


def evaluate_group(plan: Plan, numbers: np.ndarray[tuple[int], np.dtype[np.int64]], uniforms: dict[str, int]) -> list[int]:
    """Return what the plan's expression gives for elements; uniforms are parameters here, for a function has none."""
    params = (Param("i", Scalar.U32), *(Param(name, Scalar.U32) for name in uniforms))
    group = map_expr(plan.group, lambda node: ir.Name(node.name, Scalar.U32) if isinstance(node, ir.Uniform) else node)
    function = Function("group", params, Scalar.U32, (ir.Return(group),))
    args = [numbers.astype(np.uint32), *(np.array([value], np.uint32) for value in uniforms.values())]
    value = evaluate_function(function, (), args).value
    assert isinstance(value, np.ndarray)
    return [int(each) for each in np.broadcast_to(value, numbers.shape)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Granularity, tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.one_of(st.integers(1, 9), st.sampled_from([1, 4, 16, 64, 1000])), min_size=1, max_size=4)))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    blocks: list[Granularity] = [Blocked(axis, size) for size in (1, 2, 3, 4, 8, 32, 5000)]
    return draw(st.sampled_from([PerTensor(), PerAxis(axis), *blocks])), shape


@given(cases(), st.integers(0, 2**32), st.sampled_from(["uint8", "uint4", "int2", "float16", "float32"]))
def test_the_group_of_an_element_is_that_of_the_view(case: tuple[Granularity, tuple[int, ...]], seed: int, y: str) -> None:
    granularity, shape = case
    view = make_view(granularity, shape)
    numbers = np.unique(np.append(np.random.default_rng(seed).integers(0, view.count, 50), [0, view.count - 1]))
    wanted = expected_groups(granularity, view, numbers)
    baked = plan(program(y=y), granularity, shape)
    assert evaluate_group(baked, numbers, {}) == wanted
    uniform = plan(program(y=y), granularity, None)
    start = 0 if isinstance(granularity, PerTensor) else int(numbers[len(numbers) // 2])
    values = {"axis": view.axis, "inner": view.inner, "blocks": view.blocks, "axis_start": start}
    later = numbers >= start
    found = evaluate_group(uniform, numbers[later] - start, {name: values.get(name, 1) for name in uniform.uniforms})
    assert found == wanted[len(numbers) - int(later.sum()) :]


def test_only_a_kernel_that_computes_parts_takes_their_start() -> None:
    assert plan(program(), PerAxis(0), None).uniforms == ("n", "units", "groups_x", "axis", "inner", "axis_start")
    assert plan(program(), PerTensor(), None).uniforms == ("n", "units", "groups_x")
    several = replace(program(), kernels=(*program().kernels, Kernel("more", ())))
    assert plan(several, PerAxis(0), None).uniforms == ("n", "units", "groups_x", "axis", "inner")


@given(cases(), st.sampled_from(["uint8", "uint4", "int2", "float16", "float32"]))
def test_a_group_is_shared_only_where_all_elements_of_an_invocation_have_it(case: tuple[Granularity, tuple[int, ...]], y: str) -> None:
    granularity, shape = case
    view = make_view(granularity, shape)
    found = plan(program(y=y), granularity, shape)
    assert found.group_is_shared == bool(found.facts)
    if found.group_is_shared:
        groups = expected_groups(granularity, view, np.arange(min(view.count, 5000)))
        assert all(group == groups[number - number % found.lanes] for number, group in enumerate(groups))


@pytest.mark.parametrize(
    ("granularity", "shape", "fact"),
    [
        (PerTensor(), (5,), "one group"),
        (PerAxis(1), (2, 3, 8), "inner % 4 == 0"),
        (PerAxis(1), (2, 3, 6), None),
        (Blocked(1, 8), (3, 16), "inner == 1, block_size % 4 == 0 and axis % 4 == 0"),
        (Blocked(1, 8), (3, 20), "inner == 1, block_size % 4 == 0 and axis % 4 == 0"),
        (Blocked(1, 8), (3, 18), None),
        (Blocked(1, 6), (3, 18), None),
        (Blocked(0, 8), (16, 4), None),
    ],
)
def test_facts(granularity: Granularity, shape: tuple[int, ...], fact: str | None) -> None:
    assert plan(program(), granularity, shape).facts == ((fact,) if fact else ())
    assert plan(program(), granularity, None).facts == ()


@pytest.mark.parametrize(
    ("x", "y", "lanes"),
    [
        ("float32", "uint8", 4),
        ("float32", "float32", 4),
        ("uint4", "float32", 8),
        ("float32", "int2", 16),
        ("float16", "uint4", 8),
        ("uint2", "uint8", 16),
    ],
)
def test_an_invocation_owns_whole_words_of_every_element_operand(x: str, y: str, lanes: int) -> None:
    found = plan(program(x, y), PerTensor(), (100,))
    assert found.lanes == lanes
    assert isinstance(found.units, ir.Literal)
    assert found.units.value == -(-100 // lanes)


def test_more_workgroups_than_a_dimension_has_are_folded_into_rows() -> None:
    folded = load_target("webgpu:max_workgroups_per_dimension=7")
    flat, tall = (plan(program(), PerTensor(), (count,), folded) for count in (4 * 128 * 7, 4 * 128 * 7 + 1))
    assert (flat.row, flat.workgroups) == (None, (7, 1))
    assert (tall.row, tall.workgroups) == (ir.Literal(7 * 128, Scalar.U32), (7, 2))
    uniform = plan(program(), PerTensor(), None, folded)
    assert uniform.row is not None
    assert ir.Uniform("groups_x") in walk_expr(uniform.row)


def test_more_elements_than_a_u32_counts_are_refused() -> None:
    assert plan(program(), PerTensor(), (MAX_ELEMENTS,)).count == ir.Literal(MAX_ELEMENTS, Scalar.U32)
    with pytest.raises(QgenError, match="more than 2\\^32 - 128 elements") as caught:
        plan(program(), PerTensor(), (MAX_ELEMENTS + 1,))
    assert caught.value.code == "QG302"


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)], ids=str)
@pytest.mark.parametrize("granularity", [PerTensor(), PerAxis(1), Blocked(1, 2), Blocked(2, 2)], ids=str)
def test_an_empty_tensor_has_a_kernel_without_a_division_by_zero(granularity: Granularity, shape: tuple[int, ...]) -> None:
    found = plan(program(), granularity, shape)
    assert found.units == ir.Literal(0, Scalar.U32)
    assert ir.Literal(0, Scalar.U32) not in [node.rhs for node in walk_expr(found.group) if isinstance(node, ir.Binary)]


def test_kernels_of_empty_tensors_are_wgsl_to_both_compilers() -> None:
    shapes = [(0, 3, 4), (2, 0, 4), (2, 3, 0)]
    granularities: list[Granularity] = [PerTensor(), PerAxis(1), Blocked(1, 2), Blocked(2, 2)]
    texts = [
        (f"{granularity} {shape}", lower(granularity=granularity, shape=shape).wgsl) for granularity in granularities for shape in shapes
    ]
    for report in validate_texts(texts, engine="all"):
        assert report.ok, f"{report.label}: {report.raw}"


def test_a_plan_is_a_value() -> None:
    found = plan(program(), PerAxis(1), (2, 3, 8))
    assert found == plan(program(), PerAxis(1), (2, 3, 8))
    assert replace(found, lanes=8) != found
