"""Each engine accepts and rejects what it should, says where, survives what can be survived, and never passes a text it has not judged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qgen.errors import QgenError, UnavailableError
from qgen.validate import command, engines, hosts, validate_texts
from qgen.validate.binaries import NagaBinary, TintBinary
from qgen.validate.hosted import NagaWasm, WebGpu, naga_words
from qgen.validate.report import Report
from qgen.validate.webgpu_host import ENTRY_POINT, OPEN_OVERRIDE, strip_comments
from tests.goldens import Goldens

ROOT = Path(__file__).parents[2]
VALID = "@compute @workgroup_size(1) fn main() {}"

VERDICTS = {
    "accepted": (None, None, None),
    "half_precision": (None, None, None),
    "two_entry_points": (None, "pipeline", "pipeline"),
    "open_override": (None, None, None),
    "parse_error": ("parse", "parse", "parse"),
    "validator_error": ("validation", "validation", "parse"),
    "mixed_operators": (None, None, "parse"),
    "workgroup_size": (None, "pipeline", "pipeline"),
    "workgroup_storage": (None, None, "pipeline"),
}
"""Where naga-wasm, wgpu and Tint reject each input of `golden/validate/inputs`, or None. Only WebGPU implementations make pipelines."""


@pytest.fixture(scope="module")
def naga_wasm() -> NagaWasm:
    node, package = shutil.which("node"), engines.find_naga_package(ROOT)
    assert node is not None
    assert package is not None
    return NagaWasm(node, package)


@pytest.fixture(scope="module", params=["naga-wasm", "wgpu", "tint"])
def engine(request: pytest.FixtureRequest, naga_wasm: NagaWasm) -> engines.Engine:
    if request.param == "naga-wasm":
        return naga_wasm
    library = WebGpu(request.param)
    assert library.why_unavailable() is None
    return library


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name: str, engine: engines.Engine, golden: Goldens) -> None:
    [report] = engine.judge([(name, golden.read(f"validate/inputs/{name}.wgsl"))])
    assert report.rejected_at == VERDICTS[name][["naga-wasm", "wgpu", "tint"].index(engine.name)]
    assert report.ok == (report.rejected_at is None)
    assert report.ok or any(one.severity == "error" for one in report.diagnostics)


def place(report: Report) -> tuple[int | None, int | None, int | None]:
    first = report.diagnostics[0]
    return first.line, first.column, first.end_column


def test_parse_errors_have_their_place(engine: engines.Engine, golden: Goldens) -> None:
    [report] = engine.judge([("a label", golden.read("validate/inputs/parse_error.wgsl"))])
    assert place(report) == (5, 17, 22)
    assert report.diagnostics[0].path == report.label == "a label"
    assert "twice" in report.diagnostics[0].message


def test_naga_and_wgpu_say_the_same(naga_wasm: NagaWasm, golden: Goldens) -> None:
    texts = [(name, golden.read(f"validate/inputs/{name}.wgsl")) for name in ("parse_error", "validator_error")]
    for ours, theirs in zip(naga_wasm.judge(texts), WebGpu("wgpu").judge(texts), strict=True):
        assert ours.raw == theirs.raw


def test_reports_keep_the_order_of_the_texts(engine: engines.Engine) -> None:
    texts = [(str(index), VALID if index % 3 else "fn") for index in range(50)]
    assert [(report.label, report.ok) for report in engine.judge(texts)] == [(label, wgsl == VALID) for label, wgsl in texts]


def test_a_null_character_does_not_end_the_text(engine: engines.Engine) -> None:
    assert [report.ok for report in engine.judge([("a", f"{VALID}\0 and more"), ("b", VALID)])] == [False, True]


def test_naga_wasm_survives_its_own_traps(naga_wasm: NagaWasm) -> None:
    deep = f"fn f(x: u32) -> u32 {{ return {'+'.join(['x'] * 20000)}; }}"
    reports = naga_wasm.judge([("a", VALID), ("b", deep), ("c", VALID), ("d", "fn"), ("e", deep), ("f", VALID)])
    assert [report.ok for report in reports] == [True, False, True, False, False, True]
    assert "trapped" in reports[1].diagnostics[0].message


def test_tint_leaves_this_process_alone() -> None:
    program = (
        "import os, sys; from qgen.validate import validate_texts; "
        f"[report] = validate_texts([('a', '{VALID}')], engine='tint'); "
        "print(report.ok, 'wgpudawn' in sys.modules, 'WGPU_BACKEND_TYPE' in os.environ)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "True False False\n"


def test_all_gives_a_report_for_each_engine_and_text() -> None:
    reports = validate_texts([("a", VALID), ("b", "fn")], engine="all", naga_wasm=ROOT)
    assert [(report.engine, report.label, report.ok) for report in reports] == [
        ("naga-wasm", "a", True),
        ("naga-wasm", "b", False),
        ("tint", "a", True),
        ("tint", "b", False),
    ]


def test_auto_takes_naga_before_tint() -> None:
    assert [report.engine for report in validate_texts([("a", VALID)], naga_wasm=ROOT)] == ["naga-wasm"]


def test_a_library_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    (tmp_path / "wgpu.py").write_text("raise ImportError('no libvulkan')\n", encoding="utf-8")
    launch = (
        f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['', 'wgpu']; "
        f"runpy.run_path({WEBGPU_HOST!r}, run_name='__main__')"
    )
    host = hosts.Host("wgpu", (sys.executable, "-c", launch))
    assert host.hello == {"unavailable": "ImportError: no libvulkan"}
    host.close()


WEBGPU_HOST = str(ROOT / "qgen" / "validate" / "webgpu_host.py")
ECHO = "import sys; print('{}', flush=True)\nfor line in sys.stdin: "


@pytest.mark.parametrize("words", ["sys.exit('out of memory')", "sys.exit(9)"])
def test_an_engine_that_ends_is_an_error(words: str) -> None:
    host = hosts.Host("engine", (sys.executable, "-c", ECHO + words))
    for _ in range(2):
        with pytest.raises(QgenError) as caught:
            host.ask({}, "a label")
        assert caught.value.code == "QG702"
        assert caught.value.place == "a label"
    assert not host.is_alive()


def test_an_engine_that_falls_silent_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.Host("engine", (sys.executable, "-c", ECHO + "pass"))
    monkeypatch.setattr(hosts, "ANSWER_SECONDS", 0.1)
    with pytest.raises(QgenError, match="did not answer"):
        host.ask({}, "a label")
    assert not host.is_alive()


def test_a_dead_host_is_replaced() -> None:
    command_line = (sys.executable, "-c", ECHO + "print('{\"ok\": 1}', flush=True)")
    first = hosts.open_host("engine", command_line)
    assert hosts.open_host("engine", command_line) is first
    first.close()
    second = hosts.open_host("engine", command_line)
    assert second.ask({}, "a") == {"ok": 1}
    second.close()


def make_program(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_a_naga_binary_is_asked_for_words_only_where_it_rejects(tmp_path: Path) -> None:
    words = (
        "Could not parse WGSL:\\nerror: no\\n  ┌─ %s:1:2\\n  │\\n1 │ fn\\n  │  ^ here\\n\\n\\n",
        "error: bad\\n  ┌─ %s:3:4\\n  │\\n3 │ abcdef\\n  │    ^^ here\\n  │\\n  = because\\n\\n",
    )
    body = f"""echo "$#" >> {tmp_path}/calls
case "$1" in
--version) echo 29.0.4 ;;
--bulk-validate) case "$*" in */3.wgsl*) exit 1 ;; esac ;;
*/1.wgsl) printf '{words[0]}' "$1" >&2; exit 1 ;;
*/2.wgsl) printf '{words[1]}' "$(basename "$1")" >&2; exit 255 ;;
esac"""
    naga = NagaBinary(make_program(tmp_path / "naga", body))
    reports = naga.judge([(name, VALID) for name in "abcd"])
    assert [report.rejected_at for report in reports] == [None, "parse", "validation", None]
    assert reports[1].raw == "error: no\n  ┌─ wgsl:1:2\n  │\n1 │ fn\n  │  ^ here\n\n"
    assert [place(report) for report in reports[1:3]] == [(1, 2, 3), (3, 4, 6)]
    assert reports[2].diagnostics[0].message == "bad: because"
    assert reports[0].version == "29.0.4"
    (tmp_path / "calls").unlink()
    assert all(report.ok for report in naga.judge([("", VALID)] * 3))
    assert (tmp_path / "calls").read_text(encoding="utf-8").split() == ["4"]


def test_a_naga_binary_that_contradicts_itself_is_an_error(tmp_path: Path) -> None:
    naga = NagaBinary(make_program(tmp_path / "naga", 'test "$1" != --bulk-validate'))
    with pytest.raises(QgenError, match="none of them alone"):
        naga.judge([("a", VALID), ("b", VALID)])


def test_a_tint_binary_is_read(tmp_path: Path) -> None:
    body = 'case "$(cat "$3" 2>/dev/null)" in fn*) printf "%s:1:3 error: no\\nfn\\n  ^\\n\\n" "$3" >&2; exit 1 ;; esac'
    tint = TintBinary(make_program(tmp_path / "tint", body))
    good, bad = tint.judge([("a", VALID), ("b", "fn")])
    assert good.ok
    assert (bad.rejected_at, place(bad)) == ("parse", (1, 3, 4))
    with pytest.raises(QgenError) as caught:
        TintBinary(make_program(tmp_path / "panel", "exit 1")).judge([("a", VALID)])
    assert caught.value.code == "QG703"


def test_entry_points_are_found_outside_comments() -> None:
    text = (
        "/* @compute /* fn a() */ fn b() */ @ compute @workgroup_size(4, 1)\nfn é_1() {} // @compute fn c()\n fn d() {} @compute fn e() {}"
    )
    assert ENTRY_POINT.findall(strip_comments(text)) == ["é_1", "e"]
    assert strip_comments("a /* b // c */ d /* e") == "a   d  "


def test_overrides_without_a_value_are_found() -> None:
    assert OPEN_OVERRIDE.findall("@id(1) override a: u32; override b = 2; override c: f32 = 1.0; override d ;") == ["a", "d"]


def test_errors_of_pipelines_keep_their_chain_of_causes() -> None:
    text = "Validation Error\n\nCaused by:\n  In wgpuDeviceCreateComputePipeline\n    Error matching\n      Size too large"
    assert naga_words(text, "pipeline") == ("pipeline", "error: Error matching: Size too large\n\n")


def without_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgen.validate.engines.shutil.which", lambda _name: None)
    monkeypatch.setattr("qgen.validate.engines.importlib.util.find_spec", lambda _name: None)


@pytest.mark.parametrize("choice", ["auto", "naga", "tint", "all"])
def test_no_engine_is_no_verdict(choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_engines(monkeypatch)
    with pytest.raises(UnavailableError):
        validate_texts([("a", VALID)], engine=choice)


def test_a_named_naga_wasm_needs_node(monkeypatch: pytest.MonkeyPatch) -> None:
    without_engines(monkeypatch)
    with pytest.raises(UnavailableError, match="Node"):
        validate_texts([("a", VALID)], naga_wasm=ROOT)


def end_in_the_middle() -> None:
    hosts.Host("naga-wasm", (sys.executable, "-c", ECHO + "sys.exit('out of memory')")).ask({}, "kernel.wgsl")


def another_naga() -> None:
    make_program(Path("naga"), "echo 'naga: cannot open display' >&2; exit 2")
    NagaBinary("./naga").judge([("kernel.wgsl", VALID)])


def write_an_output() -> None:
    command.run_validation(["--naga-wasm", str(ROOT), "a.wgsl", "b.wgsl"])


ERRORS: dict[str, Callable[[], object]] = {
    "QG701": lambda: engines.find_naga_package(Path("shaders")),
    "QG702": end_in_the_middle,
    "QG703": another_naga,
    "QG704": lambda: validate_texts([], engine="dawn"),
    "QG705": write_an_output,
    "QG706": lambda: command.run_validation(["--engine", "tint", "--validate", "0", "a.wgsl"]),
}


@pytest.mark.parametrize("code", ["QG700", *ERRORS])
def test_errors_read_well(code: str, golden: Goldens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.wgsl").write_text(VALID, encoding="utf-8")
    if code == "QG700":
        without_engines(monkeypatch)
    with pytest.raises(QgenError) as caught:
        ERRORS.get(code, lambda: validate_texts([]))()
    assert caught.value.code == code
    golden.check(f"errors/{code}.err", f"{caught.value}\n")
