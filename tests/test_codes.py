"""The tables of error codes: each is read, whole, and found by what a user would type."""

from __future__ import annotations

import re

import pytest

from qgen.codes import find_explanation, load_explanations
from qgen.errors import QgenError


def test_explanations_come_in_the_order_of_their_codes() -> None:
    codes = list(load_explanations())
    assert codes == sorted(codes)
    assert all(re.fullmatch(r"QG\d{3}", code) for code in codes)


@pytest.mark.parametrize("code", load_explanations())
def test_each_explanation_is_a_title_and_a_paragraph(code: str) -> None:
    found = find_explanation(code)
    assert found.code == code
    assert found.title == found.title.strip()
    assert not found.title.endswith(".")
    assert "\n" not in found.title
    assert found.text.endswith(".")
    assert len(found.text) > len(found.title)


@pytest.mark.parametrize("name", ["QG203", "qg203", "203", " QG203 "])
def test_a_code_is_found_however_it_is_written(name: str) -> None:
    assert find_explanation(name).code == "QG203"


@pytest.mark.parametrize(("name", "hint"), [("QG9000", "did you mean QG900?"), ("frobnicate", "codes are QG001 to ")])
def test_what_is_no_code_is_an_error_that_helps(name: str, hint: str) -> None:
    with pytest.raises(QgenError, match="QG900") as caught:
        find_explanation(name)
    assert caught.value.hint.startswith(hint)
