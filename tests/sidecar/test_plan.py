"""A plan from a sidecar written by hand: sizes, uniforms, dispatches, constraints, and what is refused."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from typing import Any

import pytest

from qgen.errors import QgenError
from qgen.sidecar.plan import Binding, plan_dispatch
from tests.goldens import Goldens
from tests.sidecar.handmade import dequantize_per_axis, squares_reversed, times_three

SHAPES = {"x": (2, 3, 100, 7), "x_scale": (3,), "x_zero_point": (3,)}


def test_sizes_are_whole_words_and_leave_out_what_is_ignored() -> None:
    plan = plan_dispatch(dequantize_per_axis(), SHAPES)
    assert plan.sizes == {"x": 4200, "x_scale": 12, "y": 16800, "params": 16}
    assert plan_dispatch(dequantize_per_axis(), SHAPES | {"x": (1, 3, 3)}).sizes["x"] == 12


def test_uniforms_are_little_endian_at_their_offsets() -> None:
    plan = plan_dispatch(dequantize_per_axis(), SHAPES)
    assert plan.uniforms == {"params": struct.pack("<4I", 4200, 700, 3, 17)}


def test_what_lies_between_the_fields_of_a_uniform_is_zero() -> None:
    sidecar = times_three()
    sidecar["buffers"][2]["size_bytes"] = 16
    sidecar["structs"]["Params"]["fields"][1]["offset"] = 12
    assert plan_dispatch(sidecar, {"x": (5,)}).uniforms == {"params": struct.pack("<4I", 5, 0, 0, 1)}


def test_a_pass_has_its_bindings_and_workgroups() -> None:
    (step,) = plan_dispatch(dequantize_per_axis(), SHAPES).passes
    assert (step.entry_point, step.workgroup_size, step.dispatch) == ("dequantize_linear", (64, 1, 1), (17, 1, 1))
    assert step.bindings[0] == Binding(0, 0, "x", "storage", "read")
    assert step.bindings[3] == Binding(0, 3, "params", "uniform", "read")
    assert [bound.buffer for bound in step.bindings] == ["x", "x_scale", "y", "params"]


def test_a_long_dispatch_folds() -> None:
    (step,) = plan_dispatch(times_three(row=7), {"x": (10, 100)}).passes
    assert step.dispatch == (7, 3, 1)


def test_each_pass_is_planned() -> None:
    plan = plan_dispatch(squares_reversed(), {"x": (65,)})
    assert [(step.entry_point, step.dispatch) for step in plan.passes] == [("square", (2, 1, 1)), ("turn", (2, 1, 1))]
    assert plan.sizes == {"x": 260, "t": 260, "y": 260}


@pytest.mark.parametrize("shape", [(0,), (4, 0), (0, 3, 2)])
def test_an_empty_tensor_dispatches_nothing(shape: tuple[int, ...]) -> None:
    plan = plan_dispatch(times_three(), {"x": shape})
    assert plan.is_empty
    assert plan.sizes == {"x": 0, "y": 0, "params": 8}
    assert not plan_dispatch(times_three(), {"x": ()}).is_empty


def test_the_sidecar_is_left_as_it_was() -> None:
    sidecar = dequantize_per_axis()
    before = copy.deepcopy(sidecar)
    plan_dispatch(sidecar, SHAPES)
    assert sidecar == before


def _edited(edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    sidecar = times_three()
    edit(sidecar)
    return sidecar


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another format": (_edited(lambda s: s.update(format="other")), "QG601"),
    "a later version": (_edited(lambda s: s.update(format_version=2)), "QG601"),
    "no buffers": (_edited(lambda s: s.pop("buffers")), "QG601"),
    "no struct": (_edited(lambda s: s["structs"].clear()), "QG601"),
    "two dispatch counts": (_edited(lambda s: s["passes"][0]["dispatch"].pop()), "QG601"),
    "an unknown buffer": (_edited(lambda s: s["passes"][0]["bindings"][0].update(buffer="z")), "QG601"),
    "an ignored buffer": (_edited(lambda s: s["buffers"][0].update(role="ignored")), "QG601"),
    "text for a table": (_edited(lambda s: s.update(let="N")), "QG601"),
    "a number for a table": (_edited(lambda s: s.update(let=5)), "QG601"),
    "half a word": (_edited(lambda s: s["buffers"][0].update(size_bytes=["mul", 2, "N"])), "QG604"),
    "a negative size": (_edited(lambda s: s["buffers"][0].update(size_bytes=-4)), "QG604"),
    "no bytes": (_edited(lambda s: s["buffers"][0].update(size_bytes=0)), "QG604"),
    "a negative uniform": (_edited(lambda s: s["structs"]["Params"]["fields"][0].update(value=-1)), "QG604"),
    "a uniform beyond 32 bits": (_edited(lambda s: s["structs"]["Params"]["fields"][0].update(value=1 << 32)), "QG604"),
    "a uniform outside": (_edited(lambda s: s["structs"]["Params"]["fields"][0].update(offset=8)), "QG604"),
    "a uniform askew": (_edited(lambda s: s["structs"]["Params"]["fields"][0].update(offset=2)), "QG604"),
    "no workgroup": (_edited(lambda s: s["passes"][0]["dispatch"].__setitem__(2, 0)), "QG604"),
    "a constraint": (_edited(lambda s: s["constraints"].append(["le", "N", 4])), "QG602"),
    "a baked shape": (_edited(lambda s: s.update(shape=[5, 1])), "QG603"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    sidecar, code = REFUSED[case]
    with pytest.raises(QgenError) as caught:
        plan_dispatch(sidecar, {"x": (5,)})
    assert caught.value.code == code


def test_a_baked_shape_is_taken() -> None:
    assert plan_dispatch(_edited(lambda s: s.update(shape=[5])), {"x": (5,)}).sizes["y"] == 20


def test_a_shape_with_a_negative_extent_is_refused() -> None:
    with pytest.raises(QgenError) as caught:
        plan_dispatch(times_three(), {"x": (-1, -5)})
    assert caught.value.code == "QG603"


ERRORS: dict[str, Callable[[], object]] = {
    "QG600": lambda: plan_dispatch(_edited(lambda s: s["let"].update(GX=["mod", "G", 0])), {"x": (5,)}),
    "QG601": lambda: plan_dispatch(_edited(lambda s: s.pop("passes")), {"x": (5,)}),
    "QG602": lambda: plan_dispatch(dequantize_per_axis(), SHAPES | {"x_scale": (4,)}),
    "QG603": lambda: plan_dispatch(times_three(), {}),
    "QG604": lambda: plan_dispatch(_edited(lambda s: s["buffers"][0].update(size_bytes="N")), {"x": (5,)}),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        ERRORS[code]()
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")
