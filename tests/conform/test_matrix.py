"""The matrix on several stacks: what is selected, run, resumed, and found wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qgen.check import Shard, matrix_requests
from qgen.conform.matrix import TEXTS, Plan, mode_variants, run_matrix
from qgen.conform.report import build_report
from qgen.conform.selection import kernel_fields, select_requests
from qgen.conform.stacks import find_stacks
from qgen.errors import QgenError, UnavailableError
from qgen.runtime import open_device
from tests.conform.faults import flip_float16_axis, inject, refuse
from tests.goldens import Goldens
from tests.runtime.stacks import SWIFTSHADER

ONLY = ("op=QuantizeLinear", "x=float16", "y=uint4", "scale=float16", "division=float16", "zero_point=yes")
"""Three kernels, one a granularity."""


def test_conditions_select_kernels() -> None:
    requests = matrix_requests()
    chosen = select_requests(requests, ONLY)
    assert [request.granularity.kind for _, request in chosen] == ["per_tensor", "per_axis", "blocked"]
    assert [requests[number] for number, _ in chosen] == [request for _, request in chosen]
    assert len(select_requests(requests, [])) == len(requests)
    both = select_requests(requests, ["y=uint4,int4"])
    assert {kernel_fields(request)["y"] for _, request in both} == {"uint4", "int4"}


@pytest.mark.parametrize("only", [["y=uint5"], ["z=uint4"], ["y"], ["op=DequantizeLinear", "y=uint4"], ["y=uint4", "y=int4"]])
def test_conditions_that_select_nothing_are_refused(only: list[str]) -> None:
    with pytest.raises(QgenError) as caught:
        select_requests(matrix_requests(), only)
    assert caught.value.code == "QG870"


def test_the_words_of_a_condition_that_selects_nothing(golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        select_requests(matrix_requests(), ["y=unit4"])
    golden.check("errors/QG870.err", f"{caught.value}\n")


@pytest.mark.parametrize("mode", ["exact", "strict", "fast"])
def test_dynamic_quantize_linear_is_there(mode: str) -> None:
    found = run_matrix(Plan(find_stacks(["cpu", "cpu:worst"]), (mode,), ("op=DynamicQuantizeLinear",), texts=2))
    assert [len(cell.outcomes) for cell in found.cells] == [2, 2]
    assert found.ok, [str(outcome) for cell in found.cells for outcome in cell.failures]


def test_each_mode_has_four_texts_of_a_kernel() -> None:
    for number, request in list(enumerate(matrix_requests()))[:: len(matrix_requests()) // 40]:
        for mode in ("exact", "strict", "fast"):
            variants = mode_variants(request, number, mode)
            assert {variant.mode for variant in variants} == {mode}
            assert variants[0].shape is None
            assert len(variants) == TEXTS


def test_stacks_are_what_is_here() -> None:
    assert [stack.selector for stack in find_stacks([])] == ["cpu", "gpu"]
    everything = {stack.selector: stack.device for stack in find_stacks(["all", "cpu"])}
    assert list(everything)[:2] == ["cpu", "cpu:worst"]
    assert list(everything)[-2:] == ["node", "chromium"]
    devices = {open_device(selector) for selector in list(everything)[2:-2]}
    assert len(devices) == len(everything) - 4
    assert {"wgpu:vulkan", "wgpu:opengl", "dawn:vulkan"} <= {device.backend for device in devices}
    with pytest.raises(UnavailableError):
        find_stacks(["cpu", "wgpu:nothing-like-it"])


@pytest.mark.parametrize("mode", ["exact", "strict", "fast"])
def test_kernels_are_right_on_every_kind_of_stack(mode: str) -> None:
    stacks = find_stacks(["cpu", "cpu:worst", SWIFTSHADER, "node", "chromium"])
    progress: list[tuple[int, int]] = []
    found = run_matrix(Plan(stacks, (mode,), ONLY, texts=1), progress=lambda done, total: progress.append((done, total)))
    assert found.ok, [str(outcome) for cell in found.cells for outcome in cell.failures]
    assert progress == [(1, 3), (2, 3), (3, 3)]
    for stack in stacks:
        cells = found.on(stack)
        assert [len(cell.outcomes) for cell in cells] == [1, 1, 1]
        assert min(cell.elements for cell in cells) > 500
        assert sum(cell.mismatches for cell in cells) == 0


def test_shards_have_every_kernel_once() -> None:
    stacks = find_stacks(["cpu"])
    parts = [run_matrix(Plan(stacks, ("exact",), ONLY, Shard(index, 2), 1)) for index in (1, 2)]
    assert [cell.request.granularity.kind for part in parts for cell in part.cells] == ["per_tensor", "blocked", "per_axis"]


def test_what_is_wrong_is_found_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    inject(monkeypatch, flip_float16_axis)
    found = run_matrix(Plan(find_stacks(["cpu", "cpu:worst"]), ("exact", "strict"), ONLY, texts=1))
    wrong = [cell for cell in found.cells if not cell.ok]
    assert not found.ok
    assert {cell.request.granularity.kind for cell in wrong} == {"per_axis"}
    assert {cell.request.mode for cell in wrong} == {"exact", "strict"}
    (outcome,) = wrong[0].failures
    assert outcome.result is not None
    assert outcome.result.first is not None
    assert outcome.result.first.got ^ outcome.result.first.want == 0x5


def test_a_refusal_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    inject(monkeypatch, refuse)
    found = run_matrix(Plan(find_stacks(["cpu:worst", "cpu"]), ("exact",), ONLY, texts=1))
    assert [len(cell.failures) for cell in found.cells] == [1] * 6
    assert all("refuses the kernel" in str(cell.failures[0].trap) for cell in found.cells)


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "done.jsonl"
    stacks = find_stacks(["cpu", SWIFTSHADER])
    first = run_matrix(Plan(stacks, ("exact",), ONLY, texts=1), log)
    assert len(log.read_text(encoding="utf-8").splitlines()) == 6
    inject(monkeypatch, refuse)
    again = run_matrix(Plan(stacks, ("exact",), ONLY, texts=1), log)
    assert again.ok
    assert (first.resumed, again.resumed) == (0, 6)
    assert again.cells == first.cells
    more = run_matrix(Plan(stacks, ("strict",), ONLY, texts=1), log)
    assert (more.resumed, more.ok) == (0, False)
    assert {json.loads(line)["device"] for line in log.read_text(encoding="utf-8").splitlines()} == {"cpu", SWIFTSHADER}


def test_texts_for_plain_scales_are_right_under_the_worst_arithmetic_too() -> None:
    stacks = find_stacks(["cpu", "cpu:worst", SWIFTSHADER])
    only = ("op=DequantizeLinear", "x=int4,uint8,float8e5m2", "scale=float32,bfloat16", "y=float32,float16", "granularity=per_axis")
    found = run_matrix(Plan(stacks, only=only, texts=2, plain_scale=True))
    assert found.ok, [str(outcome) for cell in found.cells for outcome in cell.failures]
    assert all("_plain_" in outcome.kernel for cell in found.cells for outcome in cell.outcomes)
    assert build_report(found)["plain_scale"] is True
