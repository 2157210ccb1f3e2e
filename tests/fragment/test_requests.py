"""What has no form as a function, and the names of what has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import qgen
from qgen.errors import QgenError
from qgen.fragment import Fragment, compile_fragment
from tests.fragment.cases import CASES, Case, fragment_of
from tests.goldens import Goldens


def function(**choices: Any) -> Fragment:  # noqa: ANN401 - what `qgen.compile_function` takes
    return qgen.compile_function("DequantizeLinear", **{"x": "int8", "scale": "float32", "shape": (4, 64), **choices})


ERRORS: dict[str, Callable[[], object]] = {
    "QG960": lambda: qgen.compile_function("QuantizeLinear", x="float32", y="int8", shape=(4, 64)),
    "QG961": lambda: function(shape=None),
    "QG962": lambda: function(prefix="4w"),
}


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        ERRORS[code]()
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")


def test_dynamic_quantization_has_no_function() -> None:
    with pytest.raises(QgenError, match="DynamicQuantizeLinear has no form"):
        qgen.compile_function("DynamicQuantizeLinear", x="float32", shape=(4,))


@pytest.mark.parametrize("prefix", ["", "_w", "__w", "w_", "w__x", "w-x", "for", "größe", "w\n", "w" * 65])
def test_prefixes_that_are_none(prefix: str) -> None:
    with pytest.raises(QgenError, match="cannot be a prefix"):
        function(prefix=prefix)


@pytest.mark.parametrize("prefix", ["w", "W1", "w_1", "co", "vec4u_w", "w" * 64])
def test_prefixes(prefix: str) -> None:
    assert f"fn {prefix}_load4(i4: u32) -> vec4f" in function(prefix=prefix).wgsl


def test_a_prefix_may_not_hide_a_function_behind_a_name_inside_another() -> None:
    """`x_at` is where an element of six bits begins, and would be the function that gives one."""
    with pytest.raises(QgenError, match="with the prefix `x`, `x_at` names two things"):
        function(x="float6e2m3", prefix="x")


def _names(case: Case, prefix: str) -> set[str]:
    """Return the names that a fragment has at the top of a module, its buffers among them."""
    fragment = fragment_of(case, prefix)
    return set(re.findall(r"^(?:fn|struct) (\w+)", fragment.wgsl, re.MULTILINE)) | {operand.name for operand in fragment.legal.operands}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fragments_whose_prefixes_begin_alike_have_no_name_in_common(case: Case) -> None:
    """One prefix is the other and the first words of some name after it."""
    names = _names(case, "w")
    words = {name.removeprefix("w").strip("_") for name in names}
    heads = {"_".join(word.split("_")[:length]) for word in words for length in range(1, word.count("_") + 2)}
    for head in sorted(heads):
        for other in CASES[::3]:
            assert names.isdisjoint(_names(other, f"w_{head}")), (head, other.name)


def test_a_tensor_beyond_a_binding_is_refused() -> None:
    with pytest.raises(QgenError, match="cut the tensor into parts") as caught:
        function(shape=(1 << 14, 1 << 14))
    assert caught.value.code == "QG303"


def test_names_say_what_a_function_computes_and_tell_texts_apart() -> None:
    first, second = function(), function(prefix="w")
    assert first.prefix == "dequantize"
    assert first.name.rpartition("_")[0] == second.name.rpartition("_")[0] == "dequantize_linear_i8_f32_f32_4x64_exact_function"
    assert first.name != second.name
    assert function(name="mine").name == "mine"


def test_equal_requests_have_equal_texts() -> None:
    request = function().request
    assert compile_fragment(request) == function()
