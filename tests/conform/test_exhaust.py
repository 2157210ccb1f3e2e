"""What is finite, tried whole: the pieces have everything once, find what is wrong, and can be run by anyone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qgen.arrays import to_codes
from qgen.check import ResumeFile
from qgen.conform import exhaust
from qgen.conform.exhaust import TASKS, Piece, PieceResult, piece_inputs, piece_name, run_piece, select_pieces, task_pieces
from qgen.conform.hard import hard_scales, hard_zero_points
from qgen.conform.workers import check_workers, run_pieces
from qgen.dtypes import DTYPES
from qgen.errors import QgenError, UnavailableError
from qgen.kernel import compile_request
from tests.conform.faults import flip, inject, refuse
from tests.goldens import Goldens
from tests.runtime.stacks import LAVAPIPE, SWIFTSHADER

SAMPLES = {"f16": 3, "bf16": 3, "codes": 12, "f32": 3}
"""Pieces of each task that are run here, spread over it."""


def spread(task: str, count: int, mode: str = "exact") -> list[Piece]:
    pieces = task_pieces(task, mode)
    return [pieces[(2 * number + 1) * len(pieces) // (2 * count)] for number in range(count)]


@pytest.mark.parametrize("task", TASKS)
def test_pieces_have_names_of_their_own(task: str) -> None:
    pieces = task_pieces(task)
    some = pieces if task != "f32" else pieces[:100]
    assert len({piece_name(piece) for piece in some}) == len(some)
    assert len(set(pieces)) == len(pieces)


def test_every_kernel_with_such_an_x_is_there() -> None:
    for task, dtype in (("f16", "float16"), ("bf16", "bfloat16")):
        pieces = task_pieces(task)
        assert {piece.request.signature.x.name for piece in pieces} == {dtype}
        assert len({piece.request.signature.y for piece in pieces}) == 15
        assert len({piece.request.signature.scale for piece in pieces}) == 5
    codes = task_pieces("codes")
    assert len({piece.request.signature.x for piece in codes}) == 13
    assert len({piece.request.signature.y for piece in codes}) == 3


def test_float32_has_every_code_once_for_every_narrow_float() -> None:
    pieces = task_pieces("f32")
    kernels = {piece.request for piece in pieces}
    assert len({request.signature.y for request in kernels}) == 7
    assert len(kernels) == 11
    for request in kernels:
        mine = [piece for piece in pieces if piece.request == request]
        assert sorted(piece.part for piece in mine) == list(range(len(mine)))
    ends = [mine[0], mine[1], mine[-1]]
    kernel = compile_request(ends[0].request)
    codes = [to_codes(piece_inputs(piece, kernel)["x"], "float32") for piece in ends]
    assert all(np.array_equal(np.diff(each), np.ones(each.size - 1, np.uint32)) for each in codes)
    assert (codes[0][0], codes[1][0], codes[-1][-1]) == (0, codes[0][-1] + 1, 0xFFFFFFFF)
    assert sum(codes[0].size for _ in mine) == 1 << 32


def test_rows_have_every_code_with_every_hard_scale() -> None:
    for piece in (*spread("f16", 2), *spread("codes", 4)):
        kernel = compile_request(piece.request)
        arrays = list(piece_inputs(piece, kernel).values())
        signature = piece.request.signature
        x, scales = to_codes(arrays[0], signature.x), to_codes(arrays[1], signature.scale)
        assert all(np.array_equal(row, np.arange(1 << signature.x.bits)) for row in x)
        assert set(scales.tolist()) == set(hard_scales(signature.scale).tolist())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8e8m0", "int32"])
def test_hard_scales_have_what_is_special(dtype: str) -> None:
    row = DTYPES[dtype]
    scales = set(hard_scales(row).tolist())
    assert len(scales) >= 15
    assert {0, 1} <= scales
    if row.format:
        assert row.format.max_code in scales
        assert row.format.nan_code in scales


@pytest.mark.parametrize("dtype", ["uint8", "int4", "uint16", "float4e2m1"])
def test_hard_zero_points_have_the_ends(dtype: str) -> None:
    row = DTYPES[dtype]
    codes = set(hard_zero_points(row).tolist())
    assert {0, 1} <= codes
    if row.is_integer:
        assert {row.min & row.mask, row.max} <= codes


@pytest.mark.parametrize("task", SAMPLES)
def test_a_sample_of_each_task_is_right(task: str) -> None:
    for mode, device in (("exact", LAVAPIPE), ("strict", "cpu")):
        for piece in spread(task, SAMPLES[task] if mode == "exact" else 1, mode):
            result = run_piece(piece, device)
            assert result.ok, str(result)
            assert result.elements > 0


def test_the_modes_agree_on_a_hundred_thousand_elements() -> None:
    pieces = [replace(piece, shape=(64, 256)) for piece in spread("modes", 8)]
    results = [run_piece(piece, device) for piece, device in zip(pieces, (LAVAPIPE, SWIFTSHADER) * 4, strict=True)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.elements for result in results) > 100_000


def test_drawn_elements_lie_beside_ties() -> None:
    """Where quick code decides, at least one quotient in a hundred is within 2^-20 of a tie, where it must not."""
    near = total = 0
    for piece in task_pieces("modes")[::7]:
        signature = piece.request.signature
        if signature.is_quantize and signature.y.is_integer and signature.x.is_float:
            small = replace(piece, shape=(64, 256))
            x, scale = list(piece_inputs(small, compile_request(piece.request)).values())[:2]
            with np.errstate(all="ignore"):
                quotient = x.astype(np.float64) / scale.astype(np.float64)[:, None]
                beside = np.abs(np.abs(quotient - np.rint(quotient)) - 0.5) <= np.abs(quotient) * 2.0**-20
            near, total = near + int(np.count_nonzero(beside & (quotient != 0))), total + quotient.size
    assert near > total / 100


@pytest.mark.parametrize("task", ["codes", "modes"])
def test_what_is_wrong_is_found(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_exact(kernel, _device, words):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as `inject` says
        return flip(words, 0x1) if kernel.request.mode == "exact" else words

    inject(monkeypatch, break_exact, exhaust)
    piece = replace(spread(task, 1)[0], shape=(8, 32))
    result = run_piece(piece, "cpu")
    assert result.mismatches == 1
    assert result.first is not None
    assert "gives 0x" in str(result)


def test_a_refusal_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    inject(monkeypatch, refuse, exhaust)
    result = run_piece(spread("codes", 1)[0], "cpu")
    assert not result.ok
    assert "refuses the kernel" in str(result)


def test_shards_have_every_piece_once() -> None:
    pieces = task_pieces("codes")
    parts = [select_pieces(pieces, index, 5) for index in range(1, 6)]
    assert sorted(map(piece_name, (piece for part in parts for piece in part))) == sorted(map(piece_name, pieces))


@pytest.mark.parametrize("workers", ["here", "processes:2", "dask"])
def test_whoever_runs_them_the_results_are_the_same(workers: str) -> None:
    pieces = spread("codes", 4)
    want = {result.piece: result for result in map(run_piece, pieces, ["cpu"] * 4)}
    found = {result.piece: result for result in run_pieces(pieces, "cpu", workers)}
    assert found == want


@pytest.mark.parametrize("workers", ["", "threads", "processes:0", "processes:many", "here:2"])
def test_workers_that_are_none_are_refused(workers: str, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        check_workers(workers)
    assert caught.value.code == "QG872"
    if workers == "threads":
        golden.check("errors/QG872.err", f"{caught.value}\n")


def test_dask_is_an_extra(monkeypatch: pytest.MonkeyPatch, golden: Goldens) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnavailableError) as caught:
        check_workers("dask")
    assert caught.value.code == "QG873"
    golden.check("errors/QG873.err", f"{caught.value}\n")


@pytest.fixture
def results() -> list[PieceResult]:
    return [PieceResult("a", "cpu", 5, 1, "element 0", None), PieceResult("b", "cpu", 0, 0, None, "trapped")]


def test_results_are_kept_and_read_again(results: list[PieceResult], tmp_path: Path) -> None:
    log = ResumeFile(tmp_path / "log", lambda fields: PieceResult(**fields))
    for result in results:
        log.add(result)
    assert ResumeFile(tmp_path / "log", lambda fields: PieceResult(**fields)).entries == results
