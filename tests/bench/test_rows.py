"""What is made of times: ratios, goals, lines, JSON and the page."""

from __future__ import annotations

import dataclasses
import json
from html.parser import HTMLParser

import pytest

from tests.bench.cases import CASES
from tests.bench.page import print_page
from tests.bench.report import case_of, print_row, print_summary
from tests.bench.rows import Ratio, Row, fast_of, goals_of, paired, share_of_processor, summarise, to_json
from tests.goldens import Goldens

CASE = "dequantize uint4 → float32 blocked 32 axis 1 zp"
ROW = Row(
    stack="wgpu:llvmpipe",
    adapter="llvmpipe (LLVM)",
    is_software=True,
    case=CASE,
    form="baked",
    data="random",
    mode="exact",
    count=1 << 22,
    rounds=21,
    nbytes=19_398_656,
    ms=8.0,
    twin_ms=5.0,
    copy_ms=6.0,
    vs_twin=Ratio(0.625, 0.6, 0.65),
    vs_copy=Ratio(0.75, 0.7, 0.8),
    vs_twin_processor=0.61,
    vs_fast=1.3,
    compile_ms=41.6,
)
BROWSER = dataclasses.replace(
    ROW,
    stack="chromium",
    adapter="Chrome <1>, swiftshader",
    vs_twin_processor=None,
    ort_ms=48.0,
    vs_ort=Ratio(6.0, 5.5, 7.0),
    vs_twin=Ratio(0.45, 0.4, 0.5),
)
GPU = dataclasses.replace(ROW, stack="gpu", adapter="A GPU", is_software=False)


def test_a_ratio_is_the_median_of_the_rounds_own() -> None:
    first, second = [10.0, 1.0, 4.0, 40.0, 6.0], [5.0, 1.0, 1.0, 20.0, 2.0]
    assert paired(first, second) == Ratio(2.0, 1.0, 4.0)  # 2 1 4 2 3


def test_the_quickest_copy_counts() -> None:
    times = {"baked exact": [8.0, 8.0, 9.0], "baked fast": [4.0, 4.0, 3.0], "twin": [4.0, 4.0, 4.0], "slow": [9.0] * 3, "quick": [2.0] * 3}
    known = {field.name: getattr(ROW, field.name) for field in dataclasses.fields(Row)}
    for measured in ("ms", "twin_ms", "copy_ms", "vs_twin", "vs_copy", "vs_fast"):
        del known[measured]
    row = summarise(times, "baked exact", ("slow", "quick"), "baked fast", **known)
    assert (row.ms, row.twin_ms, row.copy_ms, row.vs_fast) == (8.0, 4.0, 2.0, 2.0)
    assert (row.vs_twin.median, row.vs_copy.median) == (0.5, 0.25)


def test_time_on_processors_counts_without_that_of_a_dispatch() -> None:
    processor = {"baked exact": [9.0, 11.0, 20.0], "twin": [5.0, 5.0, 5.0], "nothing": [1.0, 1.0, 7.0]}
    assert share_of_processor(processor, "baked exact") == 0.4


def least(row: Row, **changes: object) -> list[tuple[str, float]]:
    changed = dataclasses.replace(row, **changes)  # type: ignore[arg-type] # fields of `Row` by name
    return [(goal.measure, goal.least) for goal in goals_of(changed, case_of(changed))]


@pytest.mark.parametrize(
    ("case", "wants"),
    [
        ("dequantize uint8 → float32 per-tensor zp", (0.65, 0.4, 1.6)),
        ("dequantize uint4 → float32 per-tensor zp", (0.65, 0.4, 5.0)),
        ("dequantize int8 → float32 per-axis 0", (0.65, 0.4, 5.0)),
        ("dequantize int32 → float32 per-axis 0", (None, None, 5.0)),
        ("dequantize uint4 → float16 blocked 32 axis 1 zp", (0.6, None, 5.0)),
        ("quantize float32 → int4 blocked 128 axis 1", (0.7, None, 5.0)),
        ("quantize float32 → int8 per-axis 0", (None, None, 5.0)),
        ("dequantize float8e4m3fn → float32 per-tensor", (None, None, 1.6)),
    ],
)
def test_goals_go_by_case_and_adapter(case: str, wants: tuple[float | None, float | None, float]) -> None:
    lavapipe, swiftshader, ort = wants
    assert least(ROW, case=case) == ([("vs_twin", lavapipe)] if lavapipe else [])
    assert least(BROWSER, case=case) == [("vs_ort", ort), *([("vs_twin", swiftshader)] if swiftshader else [])]
    assert least(GPU, case=case) == [("vs_copy", 0.9)]


def test_goals_go_by_form_data_mode_and_size() -> None:
    assert least(ROW, form="ragged uniform") == [("vs_twin", 0.4)]
    assert least(ROW, form="uniform", case="dequantize float8e4m3fn → float32 per-tensor") == []
    assert least(ROW, mode="fast") == []
    assert least(ROW, data="half-zero") == []
    assert least(ROW, data="half-zero", case="quantize float32 → uint8 per-tensor zp") == [("vs_twin", 0.7)]
    assert least(BROWSER, count=1 << 20)[0] == ("vs_ort", 1.0)
    assert least(BROWSER, form="uniform") == []


def test_more_is_wanted_where_scales_are_known() -> None:
    assert least(ROW, form="known scale") == [("vs_twin", 0.65)]
    assert least(BROWSER, form="known scale") == [("vs_ort", 5.0), ("vs_twin", 0.6)]
    assert least(BROWSER, form="known scale", case="dequantize uint8 → float32 per-tensor zp")[0] == ("vs_ort", 2.5)
    assert fast_of("known scale", {("baked", "fast")}) == "baked fast"
    assert fast_of("ragged", {("baked", "fast")}) is None


def test_a_line_marks_what_is_missed() -> None:
    assert print_row(ROW) == f"    8.00    2.4  0.62!   0.61   0.75      -   1.30      42  {CASE}, 4 M, baked, exact"
    wrong = dataclasses.replace(BROWSER, mode="fast", vs_fast=None, wrong=7, data="ties", rounds=9, ort_wrong=2, compile_ms=None)
    assert print_row(wrong).endswith(
        f"   0.45      -   0.75   6.00      -       -  {CASE}, 4 M, baked, fast, ties data, 9 rounds, 7 wrong, 2 of ORT's wrong"
    )


def test_the_summary_names_what_is_missed() -> None:
    assert print_summary([ROW, BROWSER]).splitlines() == [
        "2 of 3 goals are met",
        f"  wgpu:llvmpipe: {CASE}, 4 M, baked, random: 0.62 of the twin, at least 0.65 is wanted",
    ]


def test_json_has_every_figure_with_four_digits() -> None:
    (found,) = json.loads(json.dumps(to_json([dataclasses.replace(ROW, ms=1 / 3)])))
    assert set(found) == {field.name for field in dataclasses.fields(Row)} | {"gb_per_s", "copy_gb_per_s"}
    assert (found["ms"], found["gb_per_s"], found["vs_twin"]) == (0.3333, 58.2, {"median": 0.625, "low": 0.6, "high": 0.65})


class Reader(HTMLParser):
    """Holds tags against each other, and collects what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [f"{tag} {value}" for name, value in attrs if name in {"src", "href"}]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone(golden: Goldens) -> None:
    fast = dataclasses.replace(ROW, mode="fast", ms=6.0, vs_twin=Ratio(0.8, 0.7, 0.9), vs_fast=None)
    ragged = dataclasses.replace(ROW, form="ragged", vs_twin=Ratio(0.5, 0.4, 0.6))
    saturating = dataclasses.replace(ROW, data="saturating", vs_twin=Ratio(1.4, 1.3, 1.5))
    other = dataclasses.replace(ROW, case=CASES[0].name)
    page = print_page([ROW, fast, ragged, saturating, other, BROWSER, GPU], 21)
    reader = Reader()
    reader.feed(page)
    assert (reader.open, reader.fetched, "url(" in page) == ([], [], False)
    assert "Chrome &lt;1&gt;" in page
    assert page.index(f'rowspan="1">{CASES[0].name}') < page.index(f'rowspan="3">{CASE}')  # in the order of the cases
    golden.check("bench/page.html", page.replace(page[page.index("<style>") : page.index("</style>")], "<style>"))
