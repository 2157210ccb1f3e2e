"""The quick loops on a piece of elements at a time: how they read however groups and words lie, and that they change no bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgen.check import make_inputs, matrix_requests
from qgen.compiler import compile_kernel
from qgen.evaluate import IEEE
from qgen.ir import nodes as ir
from qgen.ir.print import print_body
from qgen.ir.rewrite import walk_body, walk_stmts
from qgen.kernel import compile_request
from qgen.passes.lay import GroupLevel
from qgen.passes.pipeline import Variant, lower_program
from qgen.passes.plan import Plan
from qgen.request import Request, make_request
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.target import load_target
from qgen.validate import validate_texts
from tests.goldens import Goldens
from tests.worst.harness import evaluate_under


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel whose quick loops a golden shows, the level of its groups, and its buffers of vectors."""

    x: str
    y: str
    granularity: Granularity
    shape: tuple[int, ...] | None
    level: GroupLevel
    wide: str = ""
    scale: str = "float32"
    mode: str = "exact"
    zero_point: bool = False

    @property
    def request(self) -> Request:
        is_float = self.x.startswith(("float32", "float16"))
        return make_request(
            "QuantizeLinear" if is_float else "DequantizeLinear",
            x=self.x,
            scale=self.scale,
            y=self.y,
            zero_point=self.zero_point,
            granularity=self.granularity,
            shape=self.shape,
            numerics=self.mode,
        )


CASES: Mapping[str, Case] = {
    "invocation": Case("float32", "uint8", PerAxis(0), (3, 128), GroupLevel.INVOCATION, "x"),
    "invocation-whole": Case("uint8", "float32", PerTensor(), (64,), GroupLevel.INVOCATION, "y", zero_point=True),
    "invocation-odd": Case("float32", "uint8", PerTensor(), (67,), GroupLevel.INVOCATION),
    "invocation-uniforms": Case("float32", "uint8", PerTensor(), None, GroupLevel.INVOCATION),
    "invocation-fast": Case("float32", "uint8", PerTensor(), (64,), GroupLevel.INVOCATION, "x", mode="fast"),
    "invocation-fast-odd": Case("float32", "uint8", PerTensor(), (67,), GroupLevel.INVOCATION, mode="fast"),
    "one-axis": Case("float32", "int8", PerAxis(0), (5, 48), GroupLevel.SPAN, "x", zero_point=True),
    "one-block": Case("int8", "float32", Blocked(-1, 16), (2, 96), GroupLevel.SPAN, "y"),
    "one-block-short": Case("int8", "float32", Blocked(-1, 4), (2, 8), GroupLevel.SPAN, "y"),
    "one-axis-long": Case("int8", "float32", PerAxis(0), (4, 244), GroupLevel.SPAN, "y", zero_point=True),
    "span-axis": Case("int8", "float32", PerAxis(0), (4, 23), GroupLevel.SPAN, "y", zero_point=True),
    "span-axis-middle": Case("int8", "float32", PerAxis(1), (2, 3, 23), GroupLevel.SPAN, zero_point=True),
    "span-block": Case("float32", "uint8", Blocked(-1, 20), (2, 41), GroupLevel.SPAN),
    "rows-axis": Case("uint8", "float32", PerAxis(1), (4, 32), GroupLevel.SPAN, "y", zero_point=True),
    "rows-axis-odd": Case("int8", "float32", PerAxis(1), (32, 5), GroupLevel.SPAN, "y", zero_point=True),
    "rows-block": Case("float32", "uint4", Blocked(0, 4), (8, 16), GroupLevel.SPAN, "x", zero_point=True),
    "rows-halves": Case("int8", "float16", PerAxis(1), (6, 8), GroupLevel.SPAN, scale="float16"),
    "each": Case("int8", "float32", PerAxis(1), (3, 7), GroupLevel.SPAN, zero_point=True),
    "each-block": Case("float32", "uint8", Blocked(-1, 3), (2, 10), GroupLevel.SPAN, "x"),
    "each-block-middle": Case("float32", "uint8", Blocked(1, 2), (3, 3, 5), GroupLevel.SPAN),
    "uniforms-axis": Case("uint8", "float32", PerAxis(1), None, GroupLevel.SPAN, zero_point=True),
    "uniforms-axis-last": Case("uint8", "float32", PerAxis(-1), None, GroupLevel.SPAN, zero_point=True),
    "uniforms-block": Case("uint4", "float32", Blocked(0, 32), None, GroupLevel.SPAN, zero_point=True),
    "uniforms-block-last": Case("float32", "uint4", Blocked(-1, 32), None, GroupLevel.SPAN, zero_point=True),
    "uniforms-block-short": Case("int8", "float32", Blocked(-1, 3), None, GroupLevel.SPAN),
    "x-32-bits": Case("int32", "float32", PerTensor(), (64,), GroupLevel.INVOCATION, "x y"),
    "x-2-bits": Case("uint2", "float32", PerTensor(), (64,), GroupLevel.INVOCATION, "y"),
    "x-4-bits": Case("int4", "float32", PerTensor(), (64,), GroupLevel.INVOCATION, "y"),
    "long-y-2-bits": Case("float32", "int2", PerAxis(0), (3, 43), GroupLevel.SPAN, zero_point=True),
    "long-y-4-bits": Case("float16", "int4", PerTensor(), (1024,), GroupLevel.INVOCATION, scale="float16"),
    "long-y-uniforms": Case("float16", "uint4", PerAxis(1), None, GroupLevel.SPAN, zero_point=True),
    "long-x-2-bits": Case("uint2", "float32", Blocked(-1, 32), None, GroupLevel.SPAN, zero_point=True),
    "long-x-4-bits": Case("int4", "float16", PerAxis(1), (8, 12), GroupLevel.SPAN, "y", scale="float16"),
    "x-16-bits": Case("float16", "uint8", PerTensor(), (64,), GroupLevel.INVOCATION, scale="float16"),
    "y-2-bits": Case("float32", "uint2", PerTensor(), (64,), GroupLevel.INVOCATION, "x"),
    "y-4-bits": Case("float32", "int4", PerTensor(), (64,), GroupLevel.INVOCATION, "x"),
    "y-16-bits": Case("float32", "int16", PerTensor(), (64,), GroupLevel.INVOCATION, "x"),
}


def plans_of(request: Request) -> tuple[Plan, ...]:
    """Return the plans of a program's kernels, that over elements last."""
    checked = compile_kernel(request).checked
    return lower_program(checked, Variant(request.mode, request.granularity, request.shape, request.target))[1]


@pytest.mark.parametrize("title", CASES)
def test_quick_loops_read_well(title: str, golden: Goldens) -> None:
    case = CASES[title]
    plan = plans_of(case.request)[-1]
    assert (plan.group_level, plan.wide, plan.is_wide) == (case.level, frozenset(case.wide.split()), True)
    legal = compile_kernel(case.request).legal
    golden.check(f"ir/pieces-{title}.txt", "\n".join([*print_body(legal.kernels[-1].body, 0), ""]))


def test_every_level_is_shown_and_every_width() -> None:
    assert {case.level for case in CASES.values()} == {GroupLevel.INVOCATION, GroupLevel.SPAN}
    assert {case.wide for case in CASES.values()} == {"", "x", "y", "x y"}


def test_both_compilers_take_the_loops() -> None:
    texts = [(title, compile_kernel(case.request).wgsl) for title, case in CASES.items()]
    assert all(("array<vec4u>" in text) == bool(CASES[title].wide) for title, text in texts)
    assert any("[i / 4u][i % 4u]" in text for _, text in texts)
    assert [f"{report.engine} on {report.label}: {report.raw}" for report in validate_texts(texts, engine="all") if not report.ok] == []


@pytest.mark.parametrize("title", CASES)
def test_cases_give_the_bits_of_strict_ones(title: str) -> None:
    """But for `fast`, which promises none."""
    case = replace(CASES[title], mode="exact")
    shapes = [case.shape] if case.shape else [(3, 5), (8, 16), (2, 3, 7), (2, 3, 128), (16, 32)]
    for seed, shape in enumerate((*shapes, *shapes)):
        assert_alike(case.request, shape, seed)


def assert_alike(request: Request, shape: tuple[int, ...], seed: int) -> None:
    """Hold an exact kernel on the strict one, word for word; half of the inputs are ordinary, so that quick results are kept."""
    exact, strict = (compile_request(replace(request, mode=mode)) for mode in ("exact", "strict"))
    inputs = make_inputs(exact, shape, seed, calm=seed % 2 == 1)
    found, wanted = evaluate_under(exact, IEEE, inputs), evaluate_under(strict, IEEE, inputs)
    assert found.keys() == wanted.keys()
    for name, words in wanted.items():
        np.testing.assert_array_equal(found[name], words, err_msg=f"{name} of {exact.name}")


@cache
def requests_with_quick_code(kind: str) -> tuple[Request, ...]:
    """Return the kernels of the matrix of one kind of granularity whose elements lie within words."""
    return tuple(
        request
        for request in matrix_requests()
        if request.granularity.kind == kind and 6 not in {request.signature.x.bits, request.signature.y.bits}
    )


@st.composite
def variants(draw: st.DrawFn) -> tuple[Request, tuple[int, ...]]:
    """Return a kernel of any dtypes, with a shape that is baked or not, and the shape to run it on."""
    kind = draw(st.sampled_from(("per_tensor", "per_axis", "blocked")))
    request = draw(st.sampled_from(requests_with_quick_code(kind)))
    dims = st.one_of(st.integers(1, 9), st.sampled_from((4, 8, 12, 16, 20, 23, 32, 37, 64)))
    shape = tuple(draw(st.lists(dims, min_size=1, max_size=3)))
    axis = draw(st.integers(0, len(shape) - 1))
    block = draw(st.sampled_from((1, 2, 3, 4, 8, 16, 18, 32)))
    granularities: dict[str, Granularity] = {"per_tensor": PerTensor(), "per_axis": PerAxis(axis), "blocked": Blocked(axis, block)}
    lanes = draw(st.sampled_from((4, 8, 16, 24, 64)))
    baked = shape if draw(st.booleans()) else None
    target = load_target(f"webgpu:lanes={lanes}")
    return replace(request, granularity=granularities[kind], shape=baked, target=target), shape


@settings(max_examples=150)
@given(variant=variants(), seed=st.integers(0, 7))
def test_exact_kernels_give_the_bits_of_strict_ones(variant: tuple[Request, tuple[int, ...]], seed: int) -> None:
    request, shape = variant
    assert_alike(request, shape, seed)


@settings(max_examples=60)
@given(variant=variants())
def test_no_two_invocations_write_one_vector(variant: tuple[Request, tuple[int, ...]]) -> None:
    """A store to an element of a vector may touch the whole of it (WGSL, memory model): it has to belong to one invocation."""
    request, _ = variant
    compiled = compile_kernel(replace(request, mode="exact"))
    for kernel, plan in zip(compiled.legal.kernels, plans_of(compiled.request), strict=True):
        stored = {stmt.buffer for stmt in walk_stmts(kernel.body) if isinstance(stmt, ir.Store | ir.StoreVector)}
        assert not stored & compiled.legal.wide or plan.lanes % 4 == 0


def test_vectors_are_loaded_of_buffers_of_vectors_alone() -> None:
    for case in CASES.values():
        legal = compile_kernel(case.request).legal
        loaded = {node.buffer for kernel in legal.kernels for node in walk_body(kernel.body) if isinstance(node, ir.LoadVector)}
        stored = {stmt.buffer for kernel in legal.kernels for stmt in walk_stmts(kernel.body) if isinstance(stmt, ir.StoreVector)}
        assert loaded | stored == legal.wide == set(case.wide.split())
