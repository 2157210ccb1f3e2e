"""`qgen validate` against its transcripts: each row of naga's command line that concerns validation, and what qgen adds."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from qgen.validate import command
from tests.goldens import Goldens

ROOT = Path(__file__).parents[2]
CALL = "import sys; from qgen.validate.command import main; sys.exit(main(sys.argv[1:]))"

TRANSCRIPTS = {
    "valid": "accepted.wgsl",
    "parse_error": "./shaders/parse_error.wgsl",
    "validator_error": "./shaders/validator_error.wgsl",
    "validator_error_and_outputs": "validator_error.wgsl unknown.zip out.spv",
    "validator_error_and_unknown_output": "validator_error.wgsl unknown.zip",
    "validator_error_and_text_output": "validator_error.wgsl out.txt",
    "parse_error_and_outputs": "parse_error.wgsl out.spv",
    "valid_and_outputs": "accepted.wgsl out.spv",
    "valid_and_unknown_output": "accepted.wgsl unknown.zip",
    "valid_and_output_without_extension": "accepted.wgsl out",
    "missing_file": "missing.wgsl",
    "folder": "shaders",
    "no_input": "",
    "no_extension": "no_extension",
    "hidden_file": ".wgsl",
    "unknown_extension": "unknown.foo",
    "unknown_extension_given_kind": "--input-kind wgsl unknown.foo",
    "other_kind": "shader.vert.glsl",
    "not_utf8": "not_utf8.wgsl",
    "cut_utf8": "cut_utf8.wgsl",
    "bulk_valid": "--bulk-validate accepted.wgsl open_override.wgsl",
    "bulk_invalid": "--bulk-validate accepted.wgsl shaders/parse_error.wgsl unknown.foo validator_error.wgsl not_utf8.wgsl",
    "bulk_missing_file": "--bulk-validate parse_error.wgsl missing.wgsl",
    "bulk_nothing": "--bulk-validate",
    "stdin_valid": "--stdin-file-path any.wgsl < accepted.wgsl",
    "stdin_parse_error": "--stdin-file-path some/any.wgsl < parse_error.wgsl",
    "stdin_validator_error": "--stdin-file-path some/any.wgsl < validator_error.wgsl",
    "stdin_makes_files_outputs": "--stdin-file-path any.wgsl accepted.wgsl < accepted.wgsl",
    "help_with_trailing_option": "--help --bulk-validate",
    "unrecognized": "--frobnicate accepted.wgsl",
    "equals_sign": "--input-kind=wgsl accepted.wgsl",
    "no_value": "accepted.wgsl --input-kind",
    "duplicate": "--input-kind wgsl --input-kind wgsl accepted.wgsl",
    "bad_input_kind": "--input-kind foo accepted.wgsl",
    "bad_flags": "--validate many accepted.wgsl",
    "bad_flags_too_large": "--validate 256 accepted.wgsl",
    "bad_flags_unknown": "--validate 64 accepted.wgsl",
    "bad_policy": "--buffer-bounds-check-policy Sometimes accepted.wgsl",
    "bad_profile": "--profile desktop accepted.wgsl",
    "bad_shader_model": "--shader-model 40 accepted.wgsl",
    "bad_shader_stage": "--shader-stage geometry accepted.wgsl",
    "bad_metal_version": "--metal-version 2.x accepted.wgsl",
    "bad_override": "--override LANES accepted.wgsl",
    "bad_override_value": "--override LANES=many accepted.wgsl",
    "output_options": (
        "-g --keep-coordinate-space --dot-cfg-only --index-bounds-check-policy Restrict --image-load-bounds-check-policy unchecked "
        "--block-ctx-dir dumps --entry-point main --profile es310 --shader-model 60 --spirv-version 1.3 --shader-stage compute "
        "--metal-version 2.1 --override a=1,b=-2.5e3 --override c=inf -D A=1 --defines B -- accepted.wgsl"
    ),
    "all_flags": "--validate 63 validator_error.wgsl",
    "no_flags": "--validate 0 validator_error.wgsl",
    "some_flags": "--validate 3 validator_error.wgsl",
    "compact": "--compact accepted.wgsl",
    "compact_validator_error": "--compact validator_error.wgsl",
    "before_compaction": "--before-compaction before.txt accepted.wgsl",
    "tint_valid": "--engine tint accepted.wgsl",
    "tint_parse_error": "--engine tint ./shaders/parse_error.wgsl",
    "tint_mixed_operators": "--engine=tint mixed_operators.wgsl",
    "tint_pipeline_error": "--engine tint workgroup_storage.wgsl",
    "tint_open_override": "--engine tint open_override.wgsl",
    "tint_bulk": "--engine tint --bulk-validate accepted.wgsl mixed_operators.wgsl workgroup_size.wgsl",
    "tint_flags": "--engine tint --validate 0 accepted.wgsl",
    "all_valid": "--engine all accepted.wgsl",
    "all_parse_error": "--engine all parse_error.wgsl",
    "all_rejected_by_tint": "--engine all workgroup_storage.wgsl",
    "all_bulk": "--engine all --bulk-validate accepted.wgsl workgroup_storage.wgsl validator_error.wgsl",
    "json_valid": "--format json accepted.wgsl",
    "json_parse_error": "--format json shaders/parse_error.wgsl",
    "json_validator_error": "--format=json validator_error.wgsl",
    "json_all": "--format json --engine all mixed_operators.wgsl",
    "json_all_parse_error": "--format json --engine all parse_error.wgsl",
    "json_bulk": "--format json --engine all --bulk-validate open_override.wgsl workgroup_size.wgsl validator_error.wgsl",
    "bad_engine": "--engine dawn accepted.wgsl",
    "bad_format": "--format xml accepted.wgsl",
    "no_engine_value": "accepted.wgsl --engine",
    "bad_naga_wasm": "--naga-wasm shaders accepted.wgsl",
}
"""Arguments by the name of their transcript; after `<` stands the file on standard input."""


@dataclass(frozen=True, slots=True)
class Run:
    stdout: str
    stderr: str
    status: int


@pytest.fixture
def folder(tmp_path: Path, golden: Goldens, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the inputs, and a PATH with Node alone."""
    shaders = tmp_path / "inputs" / "shaders"
    shaders.mkdir(parents=True)
    for name in ("accepted", "parse_error", "validator_error", "workgroup_storage", "workgroup_size", "mixed_operators", "open_override"):
        text = golden.read(f"validate/inputs/{name}.wgsl").encode()
        (shaders.parent / f"{name}.wgsl").write_bytes(text)
        (shaders / f"{name}.wgsl").write_bytes(text)
    accepted = (shaders / "accepted.wgsl").read_bytes()
    for name in ("no_extension", ".wgsl", "unknown.foo", "shader.vert.glsl"):
        (shaders.parent / name).write_bytes(accepted)
    (shaders.parent / "not_utf8.wgsl").write_bytes(b"// \xff\n" + accepted)
    (shaders.parent / "cut_utf8.wgsl").write_bytes(accepted + b"// \xe2\x82")
    programs = tmp_path / "programs"
    programs.mkdir()
    node = shutil.which("node")
    assert node is not None
    (programs / "node").symlink_to(node)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.chdir(shaders.parent)
    return shaders.parent


@pytest.fixture
def validate(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Run]:
    def run(arguments: str) -> Run:
        words, _, file = arguments.partition(" < ")
        data = (folder / file).read_bytes() if file else b""
        with io.TextIOWrapper(io.BytesIO(data)) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            status = command.main(shlex.split(words))
        streams = capsys.readouterr()
        return Run(streams.out, streams.err, status)

    return run


def transcript(arguments: str, run: Run) -> str:
    streams = "".join(f"--- {name}\n{text}" for name, text in (("standard output", run.stdout), ("standard error", run.stderr)) if text)
    return f"$ qgen validate {arguments}".rstrip() + f"\n{streams}--- exit code {run.status}\n"


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts(name: str, validate: Callable[[str], Run], golden: Goldens) -> None:
    run = validate(TRANSCRIPTS[name])
    golden.check(f"validate/{name}.txt", transcript(TRANSCRIPTS[name], run))


def test_no_run_writes_a_file(folder: Path, validate: Callable[[str], Run]) -> None:
    before = sorted(folder.rglob("*"))
    for name in ("valid_and_outputs", "validator_error_and_text_output", "before_compaction", "output_options"):
        validate(TRANSCRIPTS[name])
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("arguments", ["--help", "help", "accepted.wgsl --help"])
def test_help_goes_to_standard_output(arguments: str, validate: Callable[[str], Run]) -> None:
    assert validate(arguments) == Run(command.HELP, "", 0)


def test_version_is_that_of_naga(validate: Callable[[str], Run]) -> None:
    assert validate("--version") == Run("30.0.1\n", "", 0)


def test_verbose_names_engines_and_versions(validate: Callable[[str], Run]) -> None:
    run = validate("-v --engine all accepted.wgsl")
    first, second = run.stderr.splitlines()
    assert first == "qgen validate: naga-wasm (30.1.0, naga 30.0.1) judges"
    assert second.startswith("qgen validate: tint (wgpudawn ")
    assert run.stdout == "Validation successful\n"


def test_each_json_line_has_its_seven_keys(validate: Callable[[str], Run]) -> None:
    lines = validate(TRANSCRIPTS["json_bulk"]).stdout.splitlines()
    keys = {"path", "line", "column", "end_column", "severity", "message", "engine"}
    assert len(lines) == 5
    assert all(json.loads(line).keys() == keys for line in lines)


def test_a_named_naga_wasm_is_used(folder: Path, validate: Callable[[str], Run]) -> None:
    for place in (ROOT, ROOT / "node_modules", ROOT / "node_modules" / "naga-wasm"):
        assert validate(f"--naga-wasm {shlex.quote(str(place))} accepted.wgsl").status == 0
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    assert validate("--naga-wasm . accepted.wgsl").status == 0


def make_program(folder: Path, name: str, body: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.parametrize("own", ["", "-v", "--engine naga", "--format text", "--engine=auto -v"])
def test_a_naga_on_path_gets_the_same_arguments(own: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_program(folder.parent / "programs", "naga", 'for word in "$@"; do echo "[$word]"; done; echo judged >&2; exit 77')
    words = ["--validate", "7", "--entry-point", "-v", "--new-flag", "a b.wgsl", "--", "--engine"]
    assert command.main([*own.split(), *words]) == 77
    streams = capfd.readouterr()
    assert streams.out == "".join(f"[{word}]\n" for word in words)
    assert streams.err.endswith("judged\n")
    assert ("naga judges" in streams.err) == ("-v" in own.split())


def test_a_naga_on_path_is_not_given_outputs(folder: Path, validate: Callable[[str], Run]) -> None:
    make_program(folder.parent / "programs", "naga", "exit 0")
    assert "error[QG705]" in validate("accepted.wgsl parse_error.wgsl").stderr


def test_json_comes_from_a_naga_on_path_too(folder: Path, validate: Callable[[str], Run]) -> None:
    node = folder.parent / "programs" / "node"
    call = f"PATH={node.resolve().parent} PYTHONPATH={ROOT} exec {sys.executable} -c '{CALL}' --naga-wasm {ROOT} \"$@\""
    make_program(folder.parent / "programs", "naga", call)
    for name in ("parse_error", "validator_error", "accepted"):
        run = validate(f"--format json {name}.wgsl")
        wanted = validate(f"--format json --naga-wasm {ROOT} {name}.wgsl")
        assert run.status == wanted.status
        assert run.stdout == wanted.stdout.replace("naga-wasm", "naga")


def test_a_naga_that_a_signal_ends_is_an_error(folder: Path, validate: Callable[[str], Run]) -> None:
    make_program(folder.parent / "programs", "naga", "kill -9 $$")
    run = validate("accepted.wgsl")
    assert run.status == 1
    assert "error[QG702]" in run.stderr


@pytest.mark.parametrize("engine", ["auto", "naga", "tint", "all"])
def test_without_an_engine_the_exit_code_is_3(engine: str, folder: Path, tmp_path: Path) -> None:
    # -S: an interpreter without site-packages has neither wgpu nor wgpudawn.
    environment = {**os.environ, "PATH": str(tmp_path / "empty"), "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-S", "-c", CALL, "--engine", engine, "accepted.wgsl"]
    run = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 3
    assert run.stdout == ""
    assert run.stderr.startswith("error[QG700]")
    assert "install" in run.stderr


def test_auto_says_that_tint_judges_where_no_naga_is(validate: Callable[[str], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgen.validate.engines.find_naga", lambda _chosen: None)
    run = validate("accepted.wgsl")
    assert run.stdout == "Validation successful\n"
    assert run.stderr.startswith("qgen validate: no naga engine was found; Tint judges (wgpudawn ")
    assert run.stderr.count("\n") == 1
