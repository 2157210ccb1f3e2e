"""Sidecars written by hand, with formulas that qgen's own do not have, become hosts all the same; what no host can follow is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qgen.errors import InternalError, QgenError
from qgen.glue import LANGUAGES, parse_languages, write_glue
from qgen.glue.host import Bound, Check, Let
from qgen.glue.read import read_host
from qgen.sidecar.plan import plan_dispatch
from tests.embedding.test_python import load_glue
from tests.sidecar.handmade import dequantize_per_axis, squares_reversed, times_three

BUILDERS: dict[str, tuple[Callable[[], dict[str, Any]], list[dict[str, tuple[int, ...]]]]] = {
    "times_three": (times_three, [{"x": (5,)}, {"x": (70, 3)}, {"x": (0,)}]),
    "squares_reversed": (squares_reversed, [{"x": (5,)}, {"x": (700, 3)}]),
    "dequantize_per_axis": (dequantize_per_axis, [{"x": (2, 3, 5), "x_scale": (3,)}, {"x": (2, 3), "x_scale": (3, 1)}]),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_glue_plans_as_the_sidecar_says(name: str, tmp_path: Path) -> None:
    build, shapes = BUILDERS[name]
    for file, text in write_glue(build(), "// no text\n", ["python"]).items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    glue = load_glue(tmp_path, "handmade")
    for each in shapes:
        want, made = plan_dispatch(build(), each), glue.plan(each)
        assert {name: made.sizes[name] for name in made.sizes} == {name: want.sizes[name] for name in made.sizes}
        assert [run.dispatches for run in made.runs] == ([] if want.is_empty else [tuple(step.dispatch for step in want.passes)])
        assert [run.uniforms for run in made.runs] == ([] if want.is_empty else [want.uniforms])


def test_what_a_formula_reads_of_shapes_gets_a_name() -> None:
    host = read_host(squares_reversed())
    assert host.extents == ("numel_x",)
    assert host.read_shapes == (Let("numel_x", ("numel", "x")),)
    assert host.passes[0].dispatch == (("ceil_div", "numel_x", 64), 1, 1)


def test_a_check_stands_after_what_it_uses() -> None:
    host = read_host(dequantize_per_axis())
    checks = [statement.condition for statement in (*host.read_shapes, *host.dispatch) if isinstance(statement, Check)]
    assert checks == [("eq", ("numel", "x_scale"), ("dim", "x", 1)), ("le", "count", 4294967295)]
    assert host.chunks is not None
    assert host.chunks.length_lets == ()
    assert host.chunks.bind[1] == Bound("x_scale", 0, ("mul", 4, "numel_x_scale"))


def _edited(**parts: object) -> dict[str, Any]:
    return times_three() | parts


def _with_second_text() -> dict[str, Any]:
    changed = squares_reversed()
    changed["passes"][1]["wgsl"]["file"] = "other.wgsl"
    return changed


def _with_second_group() -> dict[str, Any]:
    changed = squares_reversed()
    changed["passes"][1]["bindings"][0]["group"] = 1
    return changed


CHUNKS = {"count": "N", "multiple": 64, "most": 1000, "length": 64, "let": {}}

REFUSED = {
    "another format": _edited(format="other"),
    "a later version": _edited(format_version=2),
    "two texts": _with_second_text(),
    "two groups": _with_second_group(),
    "a count of no tensor": _edited(chunks=CHUNKS | {"count": "G", "bind": [{"buffers": ["x", "y"], "first": 0, "count": "G"}]}),
    "a tensor that no run binds": _edited(chunks=CHUNKS | {"bind": [{"buffers": ["x"], "first": "start", "count": "N"}]}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_host_can_follow_is_refused(case: str) -> None:
    with pytest.raises(InternalError):
        read_host(REFUSED[case])


def test_languages_are_a_list_of_words() -> None:
    assert parse_languages("js, c,js") == ("js", "c")
    for text in ("", "js,", "java"):
        with pytest.raises(QgenError) as caught:
            parse_languages(text)
        assert caught.value.code == "QG450"


def test_the_help_names_the_languages() -> None:
    help_text = (Path(__file__).parents[2] / "qgen" / "cli" / "arguments.py").read_text(encoding="utf-8")
    assert f"host code beside each kernel: {', '.join(LANGUAGES)}" in help_text
