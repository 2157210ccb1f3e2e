"""Goldens: texts under `golden/` that tests compare with and read; one flag writes them, and a full run names those that no test read.

A pytest plugin, which `tests/conftest.py` puts in place. With pytest-xdist each worker hands the names it read to the controller.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

FOLDER: Final = "golden"
_FLAG: Final = "--update-goldens"
_OUTPUT_KEY: Final = "goldens_read"
_SELECTIONS: Final = ("keyword", "markexpr", "lf", "deselect", "ignore", "ignore_glob", "collectonly")
"""The options of pytest that make a run partial, by their names in `config.option`."""


@dataclass(frozen=True, slots=True)
class Goldens:
    """The folder of goldens as tests see it; `used` collects what was read or compared, relative to `root`, with `/`."""

    root: Path
    update: bool
    used: set[str] = field(default_factory=set)

    def check(self, relative_path: str, text: str) -> None:
        """Fail with a diff unless `golden/<relative_path>` holds exactly `text`; under the flag, write it instead."""
        path = self.path(relative_path)
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        if not path.is_file():
            pytest.fail(f"{FOLDER}/{relative_path} is not there: `make update-goldens` writes it", pytrace=False)
        want = _read(path)
        if want != text:
            pytest.fail(_diff(relative_path, want, text), pytrace=False)

    def read(self, relative_path: str) -> str:
        """Return the text of `golden/<relative_path>`, an input that people wrote; it has to be there, flag or not."""
        return _read(self.path(relative_path))

    def path(self, relative_path: str) -> Path:
        """Return where `golden/<relative_path>` is, and count it as read; for goldens that are no text."""
        path = (self.root / relative_path).resolve()
        name = path.relative_to(self.root.resolve()).as_posix()
        if name != relative_path:
            raise ValueError(f"a golden is named by its plain path below {FOLDER}/, so `{name}`, not `{relative_path}`")
        self.used.add(name)
        return path

    def orphans(self, used: set[str]) -> list[str]:
        """Return the files below `root` that are not in `used`, sorted."""
        there = {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}
        return sorted(there - used)


def _read(path: Path) -> str:
    """Read without translating line ends: a golden is compared byte for byte."""
    return path.read_bytes().decode("utf-8")


def _diff(relative_path: str, want: str, got: str) -> str:
    lines = difflib.unified_diff(
        want.splitlines(keepends=True), got.splitlines(keepends=True), f"{FOLDER}/{relative_path}", "what the test made"
    )
    body = "".join(line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines)
    return f"{FOLDER}/{relative_path} differs; if the new text is right, `make update-goldens` writes it\n{body}"


_GOLDENS: Final = pytest.StashKey[Goldens]()
_ORPHANS: Final = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_FLAG, action="store_true", help=f"write what the tests make to {FOLDER}/ instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    update = bool(config.getoption(_FLAG))
    if update and os.environ.get("CI"):
        raise pytest.UsageError(f"{_FLAG} is refused where CI is set: goldens are read and judged by a person")
    config.stash[_GOLDENS] = Goldens(config.rootpath / FOLDER, update)


@pytest.fixture(scope="session")
def golden(pytestconfig: pytest.Config) -> Goldens:
    return pytestconfig.stash[_GOLDENS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController, which has no public type
    """Take over what a worker read; a worker that died has no output, and its run fails anyway."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    node.config.stash[_GOLDENS].used.update(output.get(_OUTPUT_KEY, ()))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int | pytest.ExitCode) -> None:
    config = session.config
    goldens = config.stash[_GOLDENS]
    if hasattr(config, "workeroutput"):
        config.workeroutput[_OUTPUT_KEY] = sorted(goldens.used)
        return
    if exitstatus == pytest.ExitCode.OK and _is_full_run(config):
        config.stash[_ORPHANS] = goldens.orphans(goldens.used)
        if config.stash[_ORPHANS]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    orphans = config.stash.get(_ORPHANS, [])
    if orphans:
        terminalreporter.section("goldens that no test read", red=True)
        for name in orphans:
            terminalreporter.line(f"{FOLDER}/{name}: delete it, or test with it", red=True)


def _is_full_run(config: pytest.Config) -> bool:
    """Whether every test was asked for: only then does an unread golden mean that no test reads it."""
    return config.args_source == pytest.Config.ArgsSource.TESTPATHS and not any(getattr(config.option, name, None) for name in _SELECTIONS)
