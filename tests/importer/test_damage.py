"""The demo's model with single bytes changed: a bundle or one error, no traceback, nothing written but into the folder named."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qgen.errors import QgenError
from qgen.importer import load_bundle
from tests.demo.model import make_models

FLIPS = 200
BY_COMMAND = 6
"""How many of them also go through the command line, each in a process of its own."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_models(tmp_path_factory.mktemp("models"))["int8"].read_bytes()


def damaged(model: bytes, flip: int) -> bytes:
    chosen = random.Random(flip)
    data = bytearray(model)
    data[chosen.randrange(len(data))] ^= chosen.randrange(1, 256)
    return bytes(data)


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def import_and_save(path: Path, output: Path) -> str | None:
    """Return the words of the error, if there is one."""
    try:
        load_bundle(path, shapes="uniform").save(output)
    except QgenError as error:
        return str(error)
    return None


def test_a_changed_byte_gives_a_bundle_or_one_error(model: bytes, tmp_path: Path) -> None:
    path, output = tmp_path / "model.onnx", tmp_path / "out"
    errors = 0
    for flip in range(FLIPS):
        path.write_bytes(damaged(model, flip))
        words = import_and_save(path, output)
        if words is None:
            assert (output / "index.json").is_file()
            assert all(each.suffix in {".wgsl", ".json"} for each in files(output))
            shutil.rmtree(output)
        else:
            errors += 1
            assert words.startswith("error[QG4")
            assert all(line.isprintable() for line in words.splitlines())
            assert not output.exists()
        assert files(tmp_path) == {path}
    assert 0 < errors < FLIPS


@pytest.mark.parametrize("flip", range(BY_COMMAND))
def test_the_command_line_ends_with_0_or_1(flip: int, model: bytes, tmp_path: Path) -> None:
    path, output = tmp_path / "model.onnx", tmp_path / "out"
    path.write_bytes(damaged(model, flip))
    command = [sys.executable, "-m", "qgen", "onnx", str(path), "-o", str(output), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.startswith("error[QG4") is (done.returncode == 1)
    assert {file for file in files(tmp_path) if file.parent != output} == {path}
    assert output.exists() is (done.returncode == 0)
