"""Formulas on their way into languages: simplified ones have the same value, and printed ones mean what they are printed from."""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from qgen.errors import QgenError
from qgen.glue.formula import Tree, names_in, simplify, substitute, tensors_in, tree
from qgen.glue.syntax import JAVASCRIPT, PYTHON, RUST, WORDS, C
from qgen.sidecar.formulas import evaluate_formula

SHAPES: Final = {"x": (2, 3, 5), "s": (7,), "blocks": (2, 3, 9), "turned": (3, 2, 5)}
LET: Final = {"a": 6, "b": 4, "count_of": 9}

_LEAVES: Final = st.one_of(
    st.integers(0, 9),
    st.sampled_from(sorted(LET)),
    st.sampled_from([("numel", "x"), ("rank", "s"), ("dim", "x", 1), ("dim", "x", -1), ("prod_dims", "x", 1, ("rank", "x"))]),
    st.sampled_from([("prod_dims", "x", 0, ("add", ("rank", "x"), -1)), ("prod_dims", "x", ("add", ("rank", "x"), -2), ("rank", "x"))]),
    st.tuples(st.just("same_dims_except"), st.just("x"), st.sampled_from(sorted(SHAPES)), st.integers(-5, 4)),
)
FORMULAS: Final[st.SearchStrategy[Any]] = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["add", "mul", "min", "max", "and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["add", "mul", "min", "max", "and", "or"]), inner, inner, inner),
        st.tuples(st.sampled_from(["sub", "floor_div", "ceil_div", "mod", "eq", "le"]), inner, inner),
        st.tuples(st.just("add"), inner, st.integers(-4, -1)),
    ),
    max_leaves=8,
)


def value(formula: Tree) -> int | None:
    """Return the value; None where a formula has none: it divides by zero or something negative."""
    try:
        return evaluate_formula(formula, SHAPES, LET)
    except QgenError:
        return None


@given(FORMULAS)
def test_a_simplified_formula_has_the_same_value(formula: Tree) -> None:
    want = value(formula)
    if want is not None:
        assert value(simplify(tree(formula))) == want


@given(FORMULAS)
def test_a_formula_in_python_has_the_same_value(formula: Tree) -> None:
    want = value(formula)
    if want is None:
        return
    names = {"shapes": SHAPES, "prod": math.prod, "_ceil_div": lambda a, b: -(-a // b), "_same_dims_except": _same_dims_except, **LET}
    assert eval(PYTHON.value(formula), names) == want  # noqa: S307 - the text is our own
    assert eval(PYTHON.condition(formula), names) == (want != 0)  # noqa: S307 - the same


def _same_dims_except(a: tuple[int, ...], b: tuple[int, ...], index: int) -> bool:
    """Return what the function of this name in the modules does, by way of the dimensions that remain."""
    kept = [place for place in range(len(a)) if place not in {index, index + len(a)}]
    return len(a) == len(b) and [a[place] for place in kept] == [b[place] for place in kept]


def test_formulas_in_javascript_have_the_same_value() -> None:
    found: dict[str, int] = {}

    @given(FORMULAS)
    def collect(formula: Tree) -> None:
        want = value(formula)
        if want is not None:
            found[JAVASCRIPT.value(formula)] = want
            found[f"Number({JAVASCRIPT.condition(formula)})"] = int(want != 0)

    collect()
    assert len(found) > 50
    script = (
        f"const shapes = {json.dumps(SHAPES)}, {', '.join(f'{JAVASCRIPT.name(name)} = {number}' for name, number in LET.items())};"
        "const product = dims => dims.reduce((count, dim) => count * dim, 1);"
        "const sameDimsExcept = (a, b, index) => a.length === b.length"
        " && a.every((dim, i) => i === index || i === index + a.length || dim === b[i]);"
        f"console.log(JSON.stringify([{', '.join(found)}]));"
    )
    done = subprocess.run(["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == list(found.values())


def test_parentheses_stand_where_they_are_needed() -> None:
    formula = tree(["mul", ["add", "a", 1], ["ceil_div", ["mul", "a", "b"], ["add", "b", -1]]])
    assert JAVASCRIPT.value(formula) == "(a + 1) * Math.ceil(a * b / (b - 1))"
    assert PYTHON.value(formula) == "(a + 1) * _ceil_div(a * b, b - 1)"
    assert C.value(formula) == "(a + 1) * qgen_ceil_div(a * b, b - 1)"
    assert RUST.value(formula) == "(a + 1) * ceil_div(a * b, b - 1)"
    assert WORDS.condition(tree(["le", 2, ["rank", "x"]])) == "rank(x) >= 2"
    assert WORDS.condition(tree(["same_dims_except", "s", "x", -1])) == "s.shape = x.shape except dimension -1"
    nested = tree(["sub", "a", ["mod", ["mul", 3, ["floor_div", "a", "b"]], ["sub", "a", ["sub", "b", 1]]]])
    assert C.value(nested) == "a - 3 * (a / b) % (a - (b - 1))"
    assert C.condition(tree(["or", ["and", "a", ["eq", "b", 1]], 0])) == "(a != 0 && b == 1) || 0 != 0"


def test_the_names_of_tensors_are_no_operands() -> None:
    formula = tree(["or", ["same_dims_except", "x", "s", "a"], ["dim", "turned", "b"], ["add", "a", "count_of"]])
    assert tensors_in(formula) == {"x", "s", "turned"}
    assert names_in(formula) == {"a", "b", "count_of"}
    replaced = substitute(formula, {"x": 1, "s": 2, "turned": 3, "a": 4})
    assert replaced == ("or", ("same_dims_except", "x", "s", 4), ("dim", "turned", "b"), ("add", 4, "count_of"))


def test_what_is_simplified() -> None:
    assert simplify(tree(["mul", 4, ["ceil_div", ["mul", 8, "a"], 32]])) == ("mul", 4, ("ceil_div", "a", 4))
    assert simplify(tree(["mul", 4, ["ceil_div", ["mul", 32, "a"], 32]])) == ("mul", 4, "a")
    assert simplify(tree(["mul", 4, ["ceil_div", ["mul", 6, "a"], 32]])) == ("mul", 4, ("ceil_div", ("mul", 6, "a"), 32))
    assert simplify(tree(["mul", ["mul", "a", 1], ["mul", 2, "b", 3]])) == ("mul", 6, "a", "b")
    assert simplify(tree(["add", ["rank", "x"], 0])) == ("rank", "x")
    assert simplify(tree(["prod_dims", "x", ["add", ["rank", "x"], 0], ["rank", "x"]])) == 1
    assert simplify(tree(["same_dims_except", "x", "x", 0])) == 1
    assert simplify(tree(["same_dims_except", "x", "s", ["add", "a", 0]])) == ("same_dims_except", "x", "s", "a")
    assert simplify(tree(["floor_div", ["mul", 4, "a"], 8])) == ("floor_div", "a", 2)
    assert simplify(tree(["floor_div", ["mul", 16, "a"], 8])) == ("mul", 2, "a")
    assert simplify(tree(["floor_div", ["mul", 8, 0], 8])) == 0
    assert simplify(tree(["max", 64, ["mul", ["le", 2, 1], "a"]])) == 64
    assert simplify(tree(["and", ["le", 2, ["sub", 3, 2]], "a"])) == 0
    assert simplify(tree(["add", ["mod", "a", 1], "b"])) == "b"
