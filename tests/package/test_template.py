"""Texts that differ by variables as one template: what Jinja renders for a key is the text of that key, whatever the texts are."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgen.errors import InternalError
from qgen.package.branches import Key, choose, drop_variables, write_expression
from qgen.package.factor import Parts, factor_lines, join_choices
from qgen.package.template import read_blocks, write_template

VARIABLES = ("a", "b", "flag")
KEYS = list(product(("x", "y", "z"), ("x", "y"), ("yes", "no")))


def _environment(*, trims: bool) -> jinja2.Environment:
    return jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=trims,
        lstrip_blocks=trims,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - WGSL is no HTML
    )


TRIMMED, PLAIN = _environment(trims=True), _environment(trims=False)

_LINES = st.lists(
    st.sampled_from(
        ["    let a = f(1u, b);", "    let a = g(1u);", "    let a = f(2u, b) + 1u;", "}", "", "fn f(x: u32) {", "    y[i] = x;"]
    ),
    max_size=6,
)


def _values(key: tuple[str, ...]) -> dict[str, object]:
    return {name: value == "yes" if name == "flag" else value for name, value in zip(VARIABLES, key, strict=True)}


@given(
    st.lists(_LINES, min_size=1, max_size=5), st.lists(st.integers(0, 4), min_size=len(KEYS), max_size=len(KEYS)), st.integers(1, len(KEYS))
)
@settings(max_examples=300, deadline=None)
def test_a_template_renders_to_the_lines_of_each_key(texts: list[list[str]], chosen: list[int], count: int) -> None:
    rows: dict[Key, Parts] = {key: tuple(texts[number % len(texts)]) for key, number in list(zip(KEYS, chosen, strict=True))[:count]}
    lines = factor_lines(rows, VARIABLES)
    for joined in (lines, join_choices(lines)):
        template = "\n".join([*joined, ""])
        for key, text in rows.items():
            assert TRIMMED.from_string(template).render(_values(key)) == "".join(f"{line}\n" for line in text)
            untrimmed = PLAIN.from_string(template).render(_values(key)).split("\n")
            assert [line for line in untrimmed if line] == [line for line in text if line]


@given(st.lists(st.integers(0, 3), min_size=len(KEYS), max_size=len(KEYS)), st.integers(1, len(KEYS)))
def test_an_expression_has_the_value_of_each_key(chosen: list[int], count: int) -> None:
    rows: dict[Key, str] = {key: str(number) for key, number in list(zip(KEYS, chosen, strict=True))[:count]}
    template = TRIMMED.from_string(f"{{{{ {write_expression(rows, VARIABLES)} }}}}")
    for key, value in rows.items():
        assert template.render(_values(key)) == value


def test_what_is_alike_stands_once() -> None:
    rows: dict[Key, Parts] = {
        ("x", "x", "yes"): ("fn f() {", "    let a = f(1u, b);", "    y[i] = a;", "}"),
        ("y", "x", "yes"): ("fn f() {", "    let a = g(1u, b);", "    y[i] = a;", "}"),
        ("z", "x", "yes"): ("fn f() {", "    let c = 1u;", "    let a = g(1u, b);", "    y[i] = a;", "}"),
    }
    assert factor_lines(rows, VARIABLES) == [
        "fn f() {",
        '{% if a == "z" %}',
        "    let c = 1u;",
        "{% endif %}",
        '    let a = {% if a == "x" %}f{% else %}g{% endif %}(1u, b);',
        "    y[i] = a;",
        "}",
    ]


def test_one_choice_after_another_is_made_once() -> None:
    first, second, third = ["{% if a %}", "1"], ["{% if a %}", "2", "{% else %}", "3"], ["{% if a %}", "4"]
    end = "{% endif %}"
    assert join_choices([*first, end, *second, end, *third, end]) == [*first, *second[1:], end, *third, end]


def test_variables_without_effect_are_dropped_and_a_missing_one_is_a_bug() -> None:
    rows: dict[Key, int] = {("x", "x", "yes"): 1, ("y", "x", "yes"): 2, ("x", "y", "no"): 1}
    assert drop_variables(rows) == {("x", "", ""): 1, ("y", "", ""): 2}
    with pytest.raises(InternalError, match="no variable tells these apart"):
        choose({("x",): 1})


_HEADER = "// a\n\n@group(0) b;\n\nstruct Params {\n    n: u32,\n}\n\n@compute\n"
_STRUCT = "struct P {\n    a: u32,\n}\n\nfn g(x: P) {\n    f(1u);\n}\n"
_SHARED = "// It says g(1u), and takes a P .\nfn f(x: u32) {\n    let g = x;\n    h = g;\n}\n"
KERNELS: dict[Key, str] = {
    ("int8",): f"{_HEADER}fn main() {{\n    f(251u);\n}}\n\n{_SHARED}",
    ("int4",): f"{_HEADER}fn main() {{\n    let p = g(P(251u));\n}}\n\n{_STRUCT}\n{_SHARED}",
}


def test_functions_stand_where_they_are_called() -> None:
    template = write_template(["{{ head }}"], KERNELS, ["T"], {251: "size"})
    for key, text in KERNELS.items():
        rendered = TRIMMED.from_string(template).render(T=key[0], head="// h", size=251)
        assert rendered.startswith("// h\n")
        assert {block.name: block for block in read_blocks(rendered)} == {block.name: block for block in read_blocks(text)}
    assert template.count("fn f(x: u32)") == template.count("struct P {") == 1
    assert "251" not in template


def test_a_template_does_not_depend_on_the_order_of_sets() -> None:
    code = (
        "from qgen.package.kernels import *; from qgen.package.template import write_template; v = variants('x_scale')[0]; "
        "r = compile_rows(variant_requests('DequantizeLinear', v, 'exact')[::9], lambda a, b: None); "
        "print(write_template([], {x.key: x.wgsl for x in r}, VARIABLES, {}))"
    )
    digests = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], env=environment, capture_output=True, check=True)
        assert len(done.stdout) > 10000
        digests.add(hashlib.sha256(done.stdout).hexdigest())
    assert len(digests) == 1
