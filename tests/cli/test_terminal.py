"""Colours, the progress bar, and bugs: what depends on a terminal, or never happens."""

from __future__ import annotations

import io
import re
import sys

import pytest

from qgen.cli import command, explain
from qgen.cli.terminal import Progress, count, paint_diagnostic, wants_color
from qgen.errors import InternalError, QgenError, Span


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("mode", "is_terminal", "environment", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", False, {}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_who_wants_color(
    mode: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool, wanted: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(mode, Terminal() if is_terminal else io.StringIO()) is wanted


def test_colour_changes_no_character() -> None:
    source = "first line\nlet x = 1 + ;\n"
    text = str(QgenError("QG001", "`;` is wrong", hint="give a number", place=Span("f.qg", 2, 13, 14), source=source))
    painted = paint_diagnostic(text)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == text
    assert painted.splitlines()[0] == "\x1b[1;31merror[QG001]\x1b[0m\x1b[1m: `;` is wrong\x1b[0m"
    assert painted.splitlines()[3] == "\x1b[1;34m2 |\x1b[0m let x = 1 + ;"
    assert painted.splitlines()[4] == f"\x1b[1;34m  |{' ' * 13}^\x1b[0m"


def test_the_bar_is_drawn_once_a_percent_and_leaves_a_clean_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("kernels") as progress:
        for done in range(1, 1001):
            progress.show(done, 1000)
    lines = terminal.getvalue().split("\r")
    assert len(lines) == 103
    assert lines[51] == "[###############...............]  50%  500/1000 kernels"
    assert lines[-1] == "\x1b[K"


@pytest.mark.parametrize(("stream", "is_quiet"), [(io.StringIO(), False), (Terminal(), True)], ids=["file", "quiet"])
def test_there_is_no_bar_without_a_terminal(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, is_quiet: bool) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("kernels", is_quiet=is_quiet) as progress:
        progress.show(1, 1)
    assert stream.getvalue() == ""


def test_counts_read_well() -> None:
    assert [count(number, "kernel") for number in (0, 1, 6918)] == ["0 kernels", "1 kernel", "6,918 kernels"]


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (InternalError("the pass is wrong\nprogram f"), "internal error: the pass is wrong"),
        (KeyError("name"), "internal error: KeyError: 'name'"),
        (FileNotFoundError(2, "No such file or directory", "grammar"), "internal error: FileNotFoundError: [Errno 2] No such file"),
    ],
    ids=["internal", "key", "file"],
)
def test_a_bug_is_reported_as_one(
    error: Exception, first: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_arguments: object) -> int:
        raise error

    monkeypatch.setattr(explain, "run", fail)
    assert command.main(["explain", "QG101"]) == 70
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith(first)
    assert " in fail\n  = this is a bug in qgen: please report it" in streams.err
    assert "Traceback" not in streams.err


def test_an_interruption_exits_with_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(explain, "run", interrupt)
    assert command.main(["explain", "QG101"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
