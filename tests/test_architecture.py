"""The tree is held to its layers, doors and sizes; each check is also shown to fail on a text made to break it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import architecture

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "qgen"
SOURCES = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
PROBE = """
import runpy, sys
before = set(sys.modules)
try:
    runpy.run_module("qgen", run_name="__main__", alter_sys=True)
except SystemExit as stop:
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    print("beyond the standard library:", *sorted(loaded - sys.stdlib_module_names - {"qgen"}), file=sys.stderr)
    sys.exit(stop.code)
"""


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if (ROOT / name).is_file()]


def run_qgen(folder: Path, argument: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROBE, argument], cwd=folder, capture_output=True, text=True, check=False)


def test_imports_point_down_and_libraries_have_one_door() -> None:
    found = [
        violation
        for path, source in SOURCES.items()
        for violation in architecture.find_layer_violations(source, module_name(path), is_package=path.name == "__init__.py")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("qgen.dtypes", "from qgen.ir import nodes"),
        ("qgen.dtypes", "from qgen import ir"),
        ("qgen.dtypes", "import qgen"),
        ("qgen.dtypes", "from . import ir"),
        ("qgen.ir.nodes", "from ..frontend import parse"),
        ("qgen.ir.nodes", "def f():\n    from qgen.frontend.parse import parse_formula"),
        ("qgen.ir.nodes", "import importlib\nimportlib.import_module('qgen.passes')"),
        ("qgen.ir.nodes", "import importlib\nimportlib.import_module(name)"),
        ("qgen.numerics.load", "import qgen.formulas"),
        ("qgen.evaluate.run", "import qgen.oracle"),
        ("qgen.oracle.exact", "import qgen.passes"),
        ("qgen.oracle.exact", "import qgen.numerics"),
        ("qgen.oracle.exact", "import qgen.evaluate"),
        ("qgen.compiler", "from qgen.cli import main"),
        ("qgen.stray", "import re"),
        ("qgen.emit.print", "import lark"),
        ("qgen.frontend.parse", "from jinja2 import Environment"),
        ("qgen.compiler", "import wgpu"),
        ("qgen.oracle.exact", "import wgpudawn"),
        ("qgen.cli.main", "import onnx.helper"),
        ("qgen.importer.read", "import onnxruntime"),
        ("qgen.passes.fold", "import numpy as np"),
        ("qgen.dtypes", "import ml_dtypes"),
    ],
)
def test_an_import_that_breaks_the_layers_is_found(module: str, source: str) -> None:
    assert len(architecture.find_layer_violations(source, module, is_package=False)) == 1


@pytest.mark.parametrize(
    ("module", "source", "is_package"),
    [
        ("qgen.passes.fold", "from qgen.passes import walk\nfrom qgen.ir.nodes import Literal\nimport re", False),
        ("qgen.passes", "from .fold import fold_constants\nfrom ..ir import nodes", True),
        ("qgen.oracle.exact", "import numpy as np\nfrom qgen.frontend import parse", False),
        ("qgen.cli.main", "from qgen import __version__", False),
        ("qgen", "from qgen import cli", True),
    ],
)
def test_imports_that_keep_the_layers_are_let_through(module: str, source: str, *, is_package: bool) -> None:
    assert architecture.find_layer_violations(source, module, is_package=is_package) == []


def test_modules_are_short() -> None:
    assert [found for path, source in SOURCES.items() for found in architecture.find_long_module(str(path), source)] == []


def test_a_long_module_is_found() -> None:
    assert architecture.find_long_module("qgen/long.py", "x = 1\n" * (architecture.MODULE_LINES + 1))
    assert not architecture.find_long_module("qgen/short.py", "x = 1\n" * architecture.MODULE_LINES)


def test_the_top_level_has_the_agreed_folders() -> None:
    assert architecture.find_extra_folders(tracked_files()) == []


def test_an_extra_folder_is_found() -> None:
    assert architecture.find_extra_folders(["scripts/x.sh", "qgen/errors.py", "Makefile"]) == ["scripts"]


def test_committed_texts_name_no_machine_no_registry_and_no_date() -> None:
    found = []
    for name in tracked_files():
        content = (ROOT / name).read_bytes()
        if b"\0" not in content:
            found += architecture.find_forbidden_text(name, content.decode("utf-8"))
    assert found == []


@pytest.mark.parametrize(
    "parts",
    [
        ("open('", "/", "tmp/x')"),
        ("", "/", "root/.cache"),
        ("see /", "home/someone"),
        ("https://registry", ".", "npmjs.org/webgpu"),
        ("https://pypi", ".", "org/simple"),
        ("on 2024", "-", "02-29"),
    ],
)
def test_a_forbidden_text_is_found_with_its_line(parts: tuple[str, ...]) -> None:
    (found,) = architecture.find_forbidden_text("file.txt", "first line\n" + "".join(parts))
    assert found.startswith("file.txt:2 has ")


@pytest.mark.parametrize("text", ["qgen/work/x", "a /usr/bin/node", "IEEE 754-2019", "draft/2020-12/schema", "0x2024-02"])
def test_harmless_texts_are_let_through(text: str) -> None:
    assert architecture.find_forbidden_text("file.txt", text) == []


def test_each_rule_that_ruff_ignores_has_its_reason() -> None:
    assert architecture.find_unexplained_ignores((ROOT / "pyproject.toml").read_text(encoding="utf-8")) == []


def test_an_ignore_without_a_reason_is_found() -> None:
    pyproject = """
[tool.ruff.lint]
ignore = [
    "C901", # a reason
    "D105",
]
[tool.ruff.lint.per-file-ignores]
"tests/**" = ["S101"]
"""
    assert architecture.find_unexplained_ignores(pyproject) == ["D105", "S101"]


def test_each_silenced_check_has_its_reason() -> None:
    names = [name for name in tracked_files() if name.endswith(".py") and Path(name).name != "test_architecture.py"]
    found = [
        violation
        for name in names
        for violation in architecture.find_unexplained_suppressions(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: S101", "# type: ignore", "# type: ignore[arg-type]", "# noqa: S101, S603 -"])
def test_a_silenced_check_without_a_reason_is_found(comment: str) -> None:
    assert architecture.find_unexplained_suppressions("x.py", f"x = 1  {comment}\n")


@pytest.mark.parametrize(
    "comment", ["# noqa: S101, S603 - the reason", "# noqa: S101 (the reason)", "# type: ignore[arg-type]  # the reason", "# a comment"]
)
def test_a_silenced_check_with_a_reason_is_let_through(comment: str) -> None:
    assert not architecture.find_unexplained_suppressions("x.py", f"x = 1  {comment}\n")


def test_each_error_code_is_explained_and_each_explained_code_raised() -> None:
    tables = [path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "codes").glob("*.toml"))]
    assert architecture.compare_codes(SOURCES.values(), tables) == []


def test_codes_that_do_not_match_are_found() -> None:
    source = "raise QgenError('QG" + "901', 'x')"
    assert len(architecture.compare_codes([source], [])) == 1
    assert len(architecture.compare_codes([], ['[QG902]\ntitle = "t"'])) == 1
    assert len(architecture.compare_codes([source], ["[QG901]", "[QG901]"])) == 1
    assert architecture.compare_codes([source], ["[QG901]"]) == []


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_help_and_version_import_the_standard_library_only(argument: str) -> None:
    done = run_qgen(ROOT, argument)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() != ""
    assert done.stderr == "beyond the standard library:\n"


def test_a_help_that_imports_a_library_is_found(tmp_path: Path) -> None:
    (tmp_path / "qgen").mkdir()
    (tmp_path / "qgen" / "__init__.py").write_text("import jinja2\n", encoding="utf-8")
    (tmp_path / "qgen" / "__main__.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    assert "jinja2" in run_qgen(tmp_path, "--help").stderr
