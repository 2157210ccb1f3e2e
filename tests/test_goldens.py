"""The machinery of goldens, on a small project of its own in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
def test_text(golden):
    golden.check("text/a.txt", "one\\ntwo\\n")

def test_input(golden):
    assert golden.read("input.qg") == "in\\n"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project whose two tests pass: one compares with a golden, one reads one as its input."""
    (tmp_path / "pytest.toml").write_text('[pytest]\ntestpaths = ["tests"]\n', encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "golden" / "text").mkdir(parents=True)
    (tmp_path / "golden" / "text" / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "golden" / "input.qg").write_text("in\n", encoding="utf-8")
    return tmp_path


def run(project: Path, *arguments: str, ci: bool = False) -> tuple[int, str]:
    """Return the exit code and the output of pytest in `project`."""
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "PYTEST_ADDOPTS"}}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"CI": "true"} if ci else {})
    command = [sys.executable, "-m", "pytest", "-p", "tests.goldens", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_full_run_passes_when_each_golden_is_read(project: Path, workers: str) -> None:
    code, output = run(project, "-n", workers)
    assert code == 0, output
    assert "2 passed" in output


def test_a_golden_that_differs_fails_with_a_diff(project: Path) -> None:
    (project / "golden" / "text" / "a.txt").write_text("one\n2\n", encoding="utf-8")
    code, output = run(project)
    assert code == 1
    assert "golden/text/a.txt differs" in output
    assert "-2\n+two\n" in output
    assert (project / "golden" / "text" / "a.txt").read_text(encoding="utf-8") == "one\n2\n"


def test_line_ends_are_compared(project: Path) -> None:
    (project / "golden" / "text" / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert run(project)[0] == 1


def test_a_golden_that_is_not_there_fails(project: Path) -> None:
    (project / "golden" / "text" / "a.txt").unlink()
    code, output = run(project)
    assert code == 1
    assert "golden/text/a.txt is not there" in output


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_orphan_fails_a_full_run_by_its_name(project: Path, workers: str) -> None:
    (project / "golden" / "text" / "b.txt").write_text("read by nobody\n", encoding="utf-8")
    code, output = run(project, "-n", workers)
    assert code == 1
    assert "golden/text/b.txt: delete it, or test with it" in output
    assert "golden/text/a.txt" not in output


@pytest.mark.parametrize("selection", [("tests/test_it.py",), ("-k", "text"), ("--deselect", "tests/test_it.py::test_input")])
def test_a_partial_run_looks_for_no_orphans(project: Path, selection: tuple[str, ...]) -> None:
    (project / "golden" / "text" / "b.txt").write_text("read by nobody\n", encoding="utf-8")
    assert run(project, *selection)[0] == 0


def test_the_flag_writes_what_differs_and_leaves_inputs(project: Path) -> None:
    (project / "golden" / "text" / "a.txt").write_text("old\n", encoding="utf-8")
    code, output = run(project, "--update-goldens", "-n", "2")
    assert code == 0, output
    assert (project / "golden" / "text" / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert run(project)[0] == 0


def test_ci_refuses_the_flag(project: Path) -> None:
    (project / "golden" / "text" / "a.txt").write_text("old\n", encoding="utf-8")
    code, output = run(project, "--update-goldens", ci=True)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "refused where CI is set" in output
    assert (project / "golden" / "text" / "a.txt").read_text(encoding="utf-8") == "old\n"


@pytest.mark.parametrize("name", ["../outside.txt", "text/../input.qg"])
def test_a_golden_has_one_name_and_stays_in_its_folder(project: Path, name: str) -> None:
    (project / "tests" / "test_it.py").write_text(f"def test_it(golden):\n    golden.read({name!r})\n", encoding="utf-8")
    code, output = run(project)
    assert code == 1
    assert "ValueError" in output
