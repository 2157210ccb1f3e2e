"""A sweep checks every kernel of its shard once, goes on where it was stopped, and keeps what failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from qgen.check import Shard, check_kernel, matrix_requests, parse_shard, sweep
from qgen.check import sweep as exported
from qgen.check.compare import CheckResult, CounterExample
from qgen.check.matrix import BAKED_EACH, BIT_EXACT
from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.kernel import Kernel
from tests.goldens import Goldens

KERNELS = 4
TEXTS = len(BIT_EXACT) + BAKED_EACH


class Checker:
    """Stands in the place of `check_kernel`: keeps what it was asked for, and calls it where `answer` gives nothing."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int]] = []
        self.answer: Callable[[Kernel], CheckResult | None] = lambda _: None

    def __call__(self, kernel: Kernel, device: str, *, seed: int) -> CheckResult:
        self.seen.append((kernel.name, device, seed))
        return self.answer(kernel) or check_kernel(kernel, device, seed=seed)


@pytest.fixture
def checker(monkeypatch: pytest.MonkeyPatch) -> Checker:
    made = Checker()
    few = matrix_requests()[:: len(matrix_requests()) // KERNELS][:KERNELS]
    module = exported.__globals__
    monkeypatch.setitem(module, "matrix_requests", lambda: few)
    monkeypatch.setitem(module, "check_kernel", made)
    return made


def test_every_text_is_checked_once_with_inputs_of_its_own(checker: Checker) -> None:
    progress: list[tuple[int, int]] = []
    summary = sweep("cpu", progress=lambda done, total: progress.append((done, total)))
    assert (summary.kernels, summary.texts, summary.resumed, summary.failures) == (KERNELS, KERNELS * TEXTS, 0, ())
    assert summary.ok
    assert summary.elements > 1000 * KERNELS
    assert progress == [(done, KERNELS) for done in range(1, KERNELS + 1)]
    assert len({name for name, _, _ in checker.seen}) == KERNELS * TEXTS
    assert len({seed for _, _, seed in checker.seen}) == KERNELS * TEXTS


def test_shards_have_every_kernel_once(checker: Checker) -> None:
    summaries = [sweep("cpu", Shard(index, 3)) for index in (1, 2, 3)]
    assert [summary.kernels for summary in summaries] == [2, 1, 1]
    sharded = checker.seen[:]
    checker.seen.clear()
    sweep("cpu")
    assert sorted(sharded) == sorted(checker.seen)


def test_a_sweep_goes_on_where_it_was_stopped(checker: Checker, tmp_path: Path) -> None:
    resume = tmp_path / "done.jsonl"

    def stop(_: Kernel) -> CheckResult | None:
        if len(checker.seen) == 6:
            raise KeyboardInterrupt
        return None

    checker.answer = stop
    with pytest.raises(KeyboardInterrupt):
        sweep("cpu", resume=resume)
    assert len(resume.read_text().splitlines()) == 5
    # Killed while writing: a part of a line, which is dropped.
    resume.write_text(resume.read_text() + '{"kernel": "quanti')
    checker.answer = lambda _: None
    checker.seen.clear()
    summary = sweep("cpu", resume=resume)
    assert (summary.texts, summary.resumed) == (KERNELS * TEXTS, 5)
    assert len(checker.seen) == KERNELS * TEXTS - 5
    whole = sweep("cpu")
    assert (summary.elements, summary.kernels) == (whole.elements, whole.kernels)
    assert sweep("cpu", resume=resume).resumed == KERNELS * TEXTS


def test_what_was_done_on_another_device_or_by_another_text_is_done_again(checker: Checker, tmp_path: Path) -> None:
    resume = tmp_path / "done.jsonl"
    sweep("cpu", resume=resume)
    lines = [json.loads(line) for line in resume.read_text().splitlines()]
    lines[0]["device"] = "llvmpipe"
    lines[1]["kernel"] += "_as_it_was"
    resume.write_text("".join(json.dumps(line) + "\n" for line in lines))
    checker.seen.clear()
    assert sweep("cpu", resume=resume).resumed == KERNELS * TEXTS - 2
    assert [seed for _, _, seed in checker.seen] == [0, 17]


@pytest.mark.usefixtures("checker")  # a file that is taken after all is swept for, on few kernels
@pytest.mark.parametrize("text", ["notes", "notes\nmore", '{"format": "qgen.kernel"}', '{\n "format": 1\n}', "[1]", "{}", "7", "notes\n{"])
def test_a_file_of_something_else_is_refused_and_stays(text: str, tmp_path: Path) -> None:
    resume = tmp_path / "mine"
    resume.write_text(text)
    with pytest.raises(QgenError, match="is not the outcome of a check") as caught:
        sweep("cpu", resume=resume)
    assert caught.value.code == "QG851"
    assert resume.read_text() == text


@pytest.mark.usefixtures("checker")
def test_a_last_line_that_lacks_only_its_end_is_taken(tmp_path: Path) -> None:
    resume = tmp_path / "done.jsonl"
    sweep("cpu", resume=resume)
    whole = resume.read_text()
    resume.write_text(whole.removesuffix("\n"))
    assert sweep("cpu", resume=resume).resumed == KERNELS * TEXTS
    assert resume.read_text() == whole


def test_failures_are_kept_and_resumed_as_failures(checker: Checker, tmp_path: Path) -> None:
    resume = tmp_path / "done.jsonl"
    example = CounterExample((2, 3), seed=7, calm=False, index=4, inputs={"x": 1, "y_scale": 2}, got=3, want=4)

    def fail(kernel: Kernel) -> CheckResult | None:
        match len(checker.seen):
            case 2:
                return CheckResult(kernel.name, "cpu", 10, 1, example)
            case 3:
                raise InternalError("the kernel wrote after the buffer `y`")
            case _:
                return None

    checker.answer = fail
    summary = sweep("cpu", resume=resume)
    assert not summary.ok
    wrong, trapped = summary.failures
    assert wrong.result is not None
    assert wrong.result.first == example
    assert str(wrong).endswith("9 of 10 elements are right; shape [2, 3], seed 7, element 4: x 0x1, y_scale 0x2 gives 0x3 instead of 0x4")
    assert str(trapped) == f"{trapped.kernel} on cpu: the kernel wrote after the buffer `y`"
    again = sweep("cpu", resume=resume)
    assert again.resumed == again.texts
    assert again.failures == summary.failures
    assert again.elements == summary.elements


def test_a_device_that_is_not_there_stops_the_sweep(checker: Checker) -> None:
    with pytest.raises(UnavailableError):
        sweep("wgpu:no such adapter")
    assert len(checker.seen) == 1


@pytest.mark.parametrize(("text", "shard"), [("1/1", Shard(1, 1)), ("2/3", Shard(2, 3)), (" 07/12 ", Shard(7, 12))])
def test_a_shard_is_a_number_of_a_count(text: str, shard: Shard) -> None:
    assert parse_shard(text) == shard


@pytest.mark.parametrize("text", ["", "3", "0/3", "4/3", "1/0", "-1/3", "a/b", "1/2/3", "1.5/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(QgenError) as caught:
        parse_shard(text)
    assert caught.value.code == "QG850"


def test_the_words_of_the_errors(checker: Checker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Goldens) -> None:
    assert not checker.seen
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QgenError) as caught:
        parse_shard("4/3")
    golden.check("errors/QG850.err", f"{caught.value}\n")
    Path("done.jsonl").write_text('{"kernel": "a"}\n')
    with pytest.raises(QgenError) as caught:
        sweep("cpu", resume=Path("done.jsonl"))
    golden.check("errors/QG851.err", f"{caught.value}\n")
    with pytest.raises(QgenError) as caught:
        sweep("cpu", resume=Path("no/folder.jsonl"))
    golden.check("errors/QG852.err", f"{caught.value}\n")


@pytest.mark.parametrize("line", ["not json", "[]", '{"kernel": 1}', '{"kernel": "a", "device": "cpu", "result": {}, "trap": null}'])
def test_a_line_that_is_no_outcome_is_refused(checker: Checker, tmp_path: Path, line: str) -> None:
    resume = tmp_path / "done.jsonl"
    resume.write_text(f"{line}\n")
    with pytest.raises(QgenError) as caught:
        sweep("cpu", resume=resume)
    assert caught.value.code == "QG851"
    assert not checker.seen


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QgenError) as caught:
        sweep("cpu", resume=tmp_path)
    assert caught.value.code == "QG851"
