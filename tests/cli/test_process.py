"""What only a process shows: what is imported, exit codes as the shell sees them, signals, and streams that take no more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.goldens import Goldens

ROOT = Path(__file__).parents[2]
CALL = [sys.executable, "-m", "qgen"]
PROBE = """
import sys
before = set(sys.modules)
from qgen.cli import main
status = main(sys.argv[1:])
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - sys.stdlib_module_names - {"qgen"}), file=sys.stderr)
sys.exit(status)
"""


def call(words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([*CALL, *words.split()], cwd=folder, env=settings, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "libraries"),
    [
        ("list ops", ""),
        ("list dtypes", ""),
        ("list signatures --format json", ""),
        ("list targets", ""),
        ("explain QG203", ""),
        ("emit --help", ""),
        ("emti", ""),
        ("emit QuantizeLinear --x float32 -o -", "jinja2 markupsafe"),
        ("emit DequantizeLinear --x uint4 --zero-point --blocked -1:32 --shape 64,96 -o -", "jinja2 markupsafe"),
        ("emit DynamicQuantizeLinear --x float32 -o -", "jinja2 markupsafe"),
        ("emit DequantizeLinear --x int8 --shape 8 --form function -o -", "jinja2 markupsafe"),
    ],
)
def test_a_command_imports_what_it_needs(words: str, libraries: str, tmp_path: Path) -> None:
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words.split()], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == libraries


def test_version(tmp_path: Path) -> None:
    done = call("--version", tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("qgen 0.1.0\n", "", 0)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("list ops", 0),
        ("emit QuantizeLinear --x int8", 1),
        ("emit", 2),
        ("run kernel.json --out y=y.npy", 1),
    ],
)
def test_exit_codes(words: str, status: int, tmp_path: Path) -> None:
    done = call(words, tmp_path)
    assert done.returncode == status
    assert "Traceback" not in done.stderr


def test_what_is_not_here_exits_with_3(tmp_path: Path) -> None:
    assert call("emit QuantizeLinear --x float32 --name kernel", tmp_path).returncode == 0
    done = call("check kernel.json --device no-such-adapter", tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("error[QG610]")


def test_a_model_without_the_package_onnx_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "onnx.py").write_text("raise ModuleNotFoundError(name='onnx')\n", encoding="utf-8")
    (tmp_path / "model.onnx").write_bytes(b"")
    done = call("onnx model.onnx -o out", tmp_path, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert done.returncode == 3
    assert done.stderr.startswith("error[QG402]")


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen([*CALL, "list", "signatures"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"QuantizeLinear")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_error(golden: Goldens) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run([*CALL, "list", "ops"], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    golden.check("errors/QG913.err", done.stderr)


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        (">&-", "list ops", 1),
        (">&-", "explain QG101", 1),
        (">&-", "emit QuantizeLinear --x float32 -o -", 1),
        (">&-", "emit QuantizeLinear --x float32 -q -o out", 0),
        ("2>&-", "list ops", 0),
        ("2>&-", "explain QG1", 1),
        (">&- 2>&-", "list ops", 1),
    ],
)
def test_a_closed_stream_is_an_error_where_something_is_written(closed: str, words: str, code: int, tmp_path: Path) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *CALL, *words.split()]
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(shell, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith("error[QG913]: cannot write standard output: Bad file descriptor" if closed == ">&-" and code else "")
    assert bool(done.stdout) == (closed == "2>&-" and code == 0)
    assert bool(list(tmp_path.iterdir())) == ("out" in words)


def test_an_interruption_ends_all_processes_and_leaves_whole_files(tmp_path: Path) -> None:
    words = [*CALL, "emit", "--all", "--jobs", "2", "-o", str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not any(tmp_path.glob("*.json")):
            assert process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == (b"", b"interrupted\n", 130)
    assert not list(tmp_path.glob(".qgen-*"))
    assert not (tmp_path / "index.json").exists()


def test_paths_that_are_no_text_are_printed_all_the_same(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    done = subprocess.run(
        [*CALL, "emit", "QuantizeLinear", "--x", "float32", "--name", "kernel", "-o", str(tmp_path / name)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].endswith(b"caf\\udce9/kernel.wgsl")
    assert (tmp_path / name / "kernel.json").is_file()
