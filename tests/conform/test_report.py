"""The report: the same content as JSON and as a page, which a browser draws from a file with nothing else at hand."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from qgen.conform.matrix import Conformance, Plan, run_matrix
from qgen.conform.report import build_report, print_html, print_json, write_report
from qgen.conform.stacks import find_stacks
from qgen.errors import QgenError
from tests.conform.faults import flip_float16_axis, inject, refuse
from tests.goldens import Goldens

ONLY = ("x=float16,uint4", "scale=float16", "y=uint4,float8e4m3fn,float16", "division=float16,none")
"""Kernels of both operators, in three cells of the matrix, some of them with x float16 and an axis."""


@pytest.fixture(scope="module")
def found() -> Conformance:
    with pytest.MonkeyPatch.context() as monkeypatch:
        inject(monkeypatch, flip_float16_axis)
        return run_matrix(Plan(find_stacks(["cpu", "wgpu:llvmpipe"]), ("exact",), ONLY, texts=1))


def draw(page: Path) -> str:
    """Return the document that the page's script leaves, as Chromium has it."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def count_cells(document: str) -> Counter[str]:
    return Counter(re.findall(r'<button class="cell (\w+)', document))


def test_the_report_has_every_kernel_on_every_stack(found: Conformance) -> None:
    report = json.loads(print_json(build_report(found)))
    assert report["format"] == "qgen.conformance"
    assert not report["ok"]
    assert [stack["stack"] for stack in report["stacks"]] == ["cpu", "wgpu:llvmpipe"]
    assert all(set(kernel["results"]) == {"cpu", "wgpu:llvmpipe"} for kernel in report["kernels"])
    assert sum(kernel["results"]["cpu"]["elements"] for kernel in report["kernels"]) == report["stacks"][0]["elements"]
    wrong = [kernel for kernel in report["kernels"] if kernel["results"]["cpu"]["mismatches"]]
    assert len(wrong) == report["stacks"][0]["wrong"] > 0
    assert report["stacks"][1]["wrong"] == 0
    assert {(kernel["x"], kernel["granularity"]) for kernel in wrong} == {("float16", "per_axis")}
    (failure,) = wrong[0]["results"]["cpu"]["failures"]
    assert failure["first"]["got"] ^ failure["first"]["want"] == 0x5
    assert set(failure["first"]["inputs"]) >= {"x", "y_scale"}


def test_the_page_holds_all_it_needs_and_shows_what_is_wrong(found: Conformance, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report(found, page)
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|\bimport\b|url\((?!#)|<link(?! rel=\"icon\" href=\"data:,\")|src=", text)
    document = draw(page)
    cells = count_cells(document)
    assert cells["wrong"] == len({(kernel.request.signature.y) for kernel in found.cells if not kernel.ok}) == 2
    assert cells["right"] == 1
    assert re.search(r'class="verdict wrong">.*?\d+ kernels wrong', document)
    assert 'aria-label="x float16, scale float16, y uint4: ' in document


def test_a_page_of_what_is_right_says_so(tmp_path: Path) -> None:
    found = run_matrix(Plan(find_stacks(["cpu"]), ("exact",), ("op=DynamicQuantizeLinear",), texts=1))
    write_report(found, tmp_path / "report.html")
    document = draw(tmp_path / "report.html")
    assert count_cells(document) == {"right": 1}
    assert "Every bit is right" in document


def test_what_a_stack_says_is_text_and_never_a_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inject(monkeypatch, refuse)
    found = run_matrix(Plan(find_stacks(["cpu"]), ("exact",), (*ONLY, "granularity=blocked"), texts=1))
    page = print_html(build_report(found))
    assert "alert(1)" in page
    assert page.count("<script>") == 1
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    assert count_cells(draw(tmp_path / "report.html")) == {"trap": 3}


def test_nothing_volatile_is_reported(found: Conformance) -> None:
    again = Conformance(found.plan, found.cells, 7)
    assert print_json(build_report(again)) == print_json(build_report(found))


def test_other_files_are_no_reports(found: Conformance, tmp_path: Path, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        write_report(found, tmp_path / "report.txt")
    assert caught.value.code == "QG871"
    with pytest.raises(QgenError) as caught:
        write_report(found, Path("report.txt"))
    golden.check("errors/QG871.err", f"{caught.value}\n")
