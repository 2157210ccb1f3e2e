"""What the commands do: files, arrays, kernels and texts, beside the words that the transcripts hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import qgen
from qgen.check.matrix import matrix_requests
from qgen.cli import matrix
from qgen.cli.build import escape_make
from qgen.cli.parser import join_signed
from qgen.ir.print import print_program
from qgen.passes.pipeline import PASSES
from qgen.request import Request
from tests.cli.conftest import Command
from tests.importer.models import parse, save


def test_emit_to_standard_output_is_the_text_alone(folder: Path, command: Command) -> None:
    before = sorted(folder.rglob("*"))
    run = command("emit DequantizeLinear --x int8 --scale float16 --per-axis -1 -o -")
    same = qgen.compile("DequantizeLinear", x="int8", scale="float16", granularity=qgen.per_axis(-1))
    assert (run.stdout, run.stderr, run.status) == (same.wgsl, "", 0)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(("words", "shape"), [("scalar", ()), ("7", (7,)), ("2,3,4", (2, 3, 4)), ("0,3", (0, 3))])
def test_shapes_of_every_rank(words: str, shape: tuple[int, ...], command: Command) -> None:
    run = command(f"emit QuantizeLinear --x float32 --shape {words} -o -")
    assert run.stdout == qgen.compile("QuantizeLinear", x="float32", shape=shape).wgsl


def test_emitted_files_are_those_of_the_api(folder: Path, command: Command) -> None:
    run = command(
        "emit QuantizeLinear --x float32 --y int8 --zero-point --entry-point quantize --group 2 --target webgpu:workgroup_size=32"
    )
    kernel = qgen.compile(
        "QuantizeLinear", x="float32", y="int8", zero_point=True, entry_point="quantize", group=2, target="webgpu:workgroup_size=32"
    )
    assert run.stdout.splitlines() == [f"{kernel.name}.wgsl", f"{kernel.name}.json"]
    assert (folder / f"{kernel.name}.wgsl").read_text(encoding="utf-8") == kernel.wgsl
    assert json.loads((folder / f"{kernel.name}.json").read_text(encoding="utf-8")) == kernel.sidecar


def test_values_with_a_minus_need_no_equals_sign() -> None:
    words = ["--blocked", "-1:32", "--per-axis", "-2", "--shape", "-1,2", "--x", "-1", "--group", "2", "-o", "-"]
    assert join_signed(words) == ["--blocked=-1:32", "--per-axis=-2", "--shape=-1,2", "--x", "-1", "--group", "2", "-o", "-"]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> tuple[Request, ...]:
    chosen = matrix_requests()[::299]
    monkeypatch.setattr(matrix, "matrix_requests", lambda: chosen)
    return chosen


@pytest.mark.parametrize("jobs", [1, 2])
def test_emit_all_writes_every_kernel_and_an_index(jobs: int, few: tuple[Request, ...], folder: Path, command: Command) -> None:
    run = command(f"emit --all --jobs {jobs} -o all")
    assert (run.stdout, run.stderr) == (f"{len(few)} kernels in all: {len(few)} written, 0 unchanged\n", "")
    index = json.loads((folder / "all" / "index.json").read_text(encoding="utf-8"))
    names = {name for kernel in index["kernels"] for name in (f"{kernel}.wgsl", f"{kernel}.json")}
    assert names | {"index.json"} == {path.name for path in (folder / "all").iterdir()}
    assert len(index["kernels"]) == len(few)
    stamps = {path: path.stat().st_mtime_ns for path in (folder / "all").iterdir()}
    assert command("emit --all -o all -q").stdout == ""
    assert stamps == {path: path.stat().st_mtime_ns for path in (folder / "all").iterdir()}


def test_a_kernel_that_a_process_refuses_is_one_error(few: tuple[Request, ...], command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert few
    monkeypatch.setattr(matrix, "compile_kernel", refuse)
    run = command("emit --all --jobs 2 -o all")
    assert (run.stdout, run.stderr, run.status) == ("", "error[QG303]: too much\n  = hint: less\n", 1)


def refuse(_request: Request) -> None:
    raise qgen.QgenError("QG303", "too much", hint="less")


def test_show_prints_the_text_and_every_stage_of_it(command: Command) -> None:
    words = "show QuantizeLinear --x float32 --y uint4 --blocked -1:32"
    kernel = qgen.compile("QuantizeLinear", x="float32", y="uint4", granularity=qgen.blocked(-1, 32))
    assert command(words).stdout == kernel.wgsl
    legal = command(f"{words} --ir").stdout
    assert legal == print_program(kernel.compiled.legal)
    stages = {name: command(f"{words} --print-ir-after {name}").stdout for name in PASSES}
    assert stages[PASSES[-1]] == legal
    everything = command(f"{words} --print-ir-after all").stdout
    sections = {head: body for head, _, body in (section.partition("\n") for section in everything.split("// after ")[1:])}
    assert list(sections) == [name if name in sections else f"{name}: unchanged" for name in PASSES]
    assert all(sections[name].rstrip("\n") == stages[name].rstrip("\n") for name in PASSES if name in sections)


def test_there_are_as_many_lines_as_signatures(command: Command) -> None:
    text = command("list signatures").stdout
    rows = json.loads(command("list signatures --format json").stdout)
    assert len(text.splitlines()) == len(rows) == 34_654
    assert len(set(text.splitlines())) == 34_654
    assert text.splitlines()[0].split() == ["QuantizeLinear", "10", "float32", "float32", "uint8", "-", "per_tensor", "-", "-"]


def test_build_writes_what_changed_and_removes_nothing(folder: Path, command: Command) -> None:
    assert command("build kernels.toml -o out --depfile out/kernels.d").status == 0
    (folder / "out" / "other.wgsl").write_text("// mine\n", encoding="utf-8")
    depfile = (folder / "out" / "kernels.d").read_text(encoding="utf-8")
    assert depfile.endswith(": kernels.toml\n")
    assert depfile.startswith("out/quantize_weights.wgsl out/quantize_weights.json ")
    stamps = {path: path.stat().st_mtime_ns for path in (folder / "out").iterdir()}
    assert command("build kernels.toml -o out").stdout == ""
    assert command("build kernels.toml -o out --check").status == 0
    (folder / "out" / "dequantize_rows.wgsl").write_text("// stale\n", encoding="utf-8")
    run = command("build kernels.toml -o out --check")
    assert (run.stdout, run.status) == ("out/dequantize_rows.wgsl\n", 1)
    run = command("build kernels.toml -o out")
    assert (run.stdout, run.status) == ("out/dequantize_rows.wgsl\n", 0)
    after = {path: path.stat().st_mtime_ns for path in (folder / "out").iterdir()}
    assert {path.name for path in stamps if stamps[path] != after[path]} == {"dequantize_rows.wgsl"}
    assert after.keys() == stamps.keys()


def test_one_kernel_twice_in_a_list_is_one_kernel(folder: Path, command: Command) -> None:
    text = (folder / "kernels.toml").read_text(encoding="utf-8")
    (folder / "kernels.toml").write_text(text + "\n" + text, encoding="utf-8")
    assert len(command("build kernels.toml -o out").stdout.splitlines()) == 4


def test_an_error_in_a_list_writes_nothing(folder: Path, command: Command) -> None:
    with (folder / "kernels.toml").open("a", encoding="utf-8") as file:
        file.write('\n[[kernel]]\nop = "QuantizeLinear"\nx = "int8"\n')
    assert command("build kernels.toml -o out").status == 1
    assert not (folder / "out").exists()


def test_a_model_of_which_no_node_has_a_kernel_is_warned_of(command: Command, folder: Path) -> None:
    save(parse("g (double[2,3] a) => (y) <double s = {0.5}> { y = QuantizeLinear (a, s) }"), folder)
    run = command("onnx model.onnx --dry-run")
    assert (run.status, run.stderr) == (0, "warning: no node of the model has a kernel\n")
    assert "1 node, 0 kernels, 1 node left out" in run.stdout


@pytest.mark.parametrize(
    "words",
    [
        "emit DequantizeLinear --x int4 --scale float16 --per-axis 0 --name k --glue js,python,c,rust,ort-template --also spirv,msl",
        "onnx model.onnx --glue js,rust",
        "selftest --emit",
    ],
    ids=["emit", "onnx", "selftest"],
)
def test_files_of_one_command_are_written_all_or_none(words: str, command: Command, folder: Path) -> None:
    option = "" if words.startswith("selftest") else "-o "
    assert command(f"{words} {option}out").status == 0
    out = folder / "out"
    names = sorted(path.name for path in out.iterdir())
    assert len(names) > 2
    for blocked in names:
        shutil.rmtree(out)
        (out / blocked).mkdir(parents=True)
        run = command(f"{words} {option}out")
        assert run.status == 1
        assert run.stderr.startswith("error[QG110]: cannot write")
        assert [path.name for path in out.iterdir()] == [blocked]


def test_depfiles_are_spelled_for_make() -> None:
    assert escape_make("a b/#1$x\\y") == "a\\ b/\\#1$$x\\\\y"


def test_check_passes_over_other_files_of_a_folder(folder: Path, command: Command) -> None:
    shutil.copy(folder / "other.json", folder / "kernels" / "index.json")
    shutil.copy(folder / "array.json", folder / "kernels" / "array.json")
    run = command("check kernels --device cpu -q")
    assert (run.status, run.stderr) == (0, "warning: kernels/array.json is no sidecar of a kernel\n")


@pytest.mark.parametrize("words", ["check kernels --device cpu", "tune kernels -o tuned.toml --device llvmpipe --rounds 3"])
@pytest.mark.parametrize("left", [0, 300], ids=["empty", "truncated"])
def test_a_damaged_sidecar_in_a_folder_is_no_kernel_to_pass_over(command: Command, folder: Path, words: str, left: int) -> None:
    sidecar = folder / "kernels" / "rows.json"
    sidecar.write_bytes(sidecar.read_bytes()[:left])
    run = command(words)
    assert run.status == 1
    assert run.stderr.startswith("error[QG903]: this is no sidecar of a kernel: it is not JSON")
    assert "kernels/rows.json" in run.stderr
    assert not (folder / "tuned.toml").exists()


def test_check_all_in_shards_goes_on_from_a_file(folder: Path, command: Command) -> None:
    run = command("check --all --device cpu --shard 3/9999 --resume done.jsonl")
    assert run.status == 0
    count = len((folder / "done.jsonl").read_text(encoding="utf-8").splitlines())
    assert run.stdout.startswith(f"1 kernel as {count} texts, ")
    assert run.stdout.endswith(" elements on the CPU: every bit as the oracle's\n")
    again = command("check --all --device cpu --shard 3/9999 --resume done.jsonl")
    assert again.stdout == run.stdout.replace(" texts, ", f" texts ({count} of them checked before), ")


def test_onnx_writes_the_bundle_of_the_api(folder: Path, command: Command) -> None:
    run = command("onnx model.onnx -o out")
    qgen.from_onnx(folder / "model.onnx").save(folder / "same")
    written = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert written == {path.name: path.read_bytes() for path in (folder / "same").iterdir()}
    assert run.stdout == command("onnx model.onnx --dry-run").stdout


def test_validate_takes_the_words_as_they_are(folder: Path, command: Command) -> None:
    run = command("validate --engine tint kernels/blocked.wgsl")
    assert (run.stdout, run.status) == ("Validation successful\n", 0)
    (folder / "bad.wgsl").write_text("fn f() { let }\n", encoding="utf-8")
    assert command("validate --engine tint --format json bad.wgsl").status == 1
    assert command("validate --help").stdout.startswith("Usage: qgen validate")
    assert command("validate --engine dawn kernels/blocked.wgsl").stderr.startswith("Error parsing option '--engine'")
