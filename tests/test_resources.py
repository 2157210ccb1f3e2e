"""The grammar and targets are found in a checkout and in an installed wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from qgen.resources import list_resources, read_resource

ROOT = Path(__file__).parents[1]
PROBE = """
from pathlib import Path
import qgen, qgen.resources as r
assert not Path(qgen.__file__).is_relative_to(Path.cwd())
for folder in ("grammar", "targets"):
    for name in r.list_resources(folder):
        print(folder, name, len(r.read_resource(folder, name)))
"""


def describe() -> list[str]:
    return [f"{folder} {name} {len(read_resource(folder, name))}" for folder in ("grammar", "targets") for name in list_resources(folder)]


def test_a_checkout_lists_and_reads_its_files() -> None:
    assert "formula.lark" in list_resources("grammar")
    assert read_resource("grammar", "formula.lark") == (ROOT / "grammar" / "formula.lark").read_text(encoding="utf-8")
    assert all(name.startswith(("grammar ", "targets ")) for name in describe())


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_resource("grammar", "nothing.lark")
    with pytest.raises(FileNotFoundError):
        list_resources("nothing")


def test_a_wheel_carries_the_same_files(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), "."]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("qgen-*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    tracked = subprocess.run(["git", "ls-files", "qgen"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert [name for name in tracked if (ROOT / name).exists() and not (installed / name).exists()] == []
    command = [sys.executable, "-c", f"import sys; sys.path[:] = [{str(installed)!r}, *filter(None, sys.path)]\n{PROBE}"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == describe()
