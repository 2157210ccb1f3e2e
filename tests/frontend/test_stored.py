"""What ships parsed is what the parser makes of the sources, and is of no use to another text or another grammar."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from qgen import formulas
from qgen.errors import Span
from qgen.frontend import stored
from qgen.frontend.parse import parse_source
from qgen.frontend.stored import load_builtin, print_stored, read_stored
from qgen.numerics import library
from tests.setup.parse_sources import SOURCES, parse_anew, stored_path

ROOT = Path(__file__).parents[2]
EVERY_NODE = """
// A sum.
struct Pair { hi: u32, lo: int<20> }
op Test(x: X, s: S per group, z: Y per group = 0) -> y: Y
    attr wide: bool = true
{
    let peak = reduce max over group (abs(x));
    if wide { y = ((x / peak) as Y saturating); } else { if Y is integer { y = x as Y; } }
}
fn f<F: float>(a: F, b: u32) -> u32
    is a * a when exact
{
    require !(a > 0x10) && true;
    if b == 1 { return if a < 2 then F.bits else -b; } else { let c = true; }
    let p = Pair(a, i32(2));
    return p.hi + bits(float(b) * 0.1);
}
"""


def spans(node: object) -> list[Span]:
    if isinstance(node, tuple):
        return [span for item in node for span in spans(item)]
    if isinstance(node, Span):
        return [node]
    if is_dataclass(node):
        return [span for field in fields(node) for span in spans(getattr(node, field.name))]
    return []


def test_every_source_has_its_parsed_form() -> None:
    found = [path.relative_to(ROOT).as_posix() for path in (ROOT / "qgen").rglob("*.qg")]
    assert sorted(found) == sorted(SOURCES)
    assert sorted(f"{name}.json" for name in found) == sorted(
        path.relative_to(ROOT).as_posix() for path in (ROOT / "qgen").rglob("*.qg.json")
    )


@pytest.mark.parametrize("source", SOURCES)
def test_what_ships_parsed_is_what_the_parser_gives(source: str) -> None:
    assert stored_path(source).read_text(encoding="utf-8") == parse_anew(source), f"{source}.json is stale: run `make parsed`"


@pytest.mark.parametrize("source", SOURCES)
def test_it_is_read_back_whole(source: str) -> None:
    text = (ROOT / source).read_text(encoding="utf-8")
    parsed = parse_source(text, source)
    read = read_stored(stored_path(source).read_text(encoding="utf-8"), text, source)
    assert read == parsed
    assert read is not None
    for group in ("ops", "fns", "structs"):
        assert spans(getattr(read, group)) == spans(getattr(parsed, group))


def test_every_kind_of_node_is_read_back() -> None:
    parsed = parse_source(EVERY_NODE, "test.qg")
    text = print_stored(parsed)
    assert [kind for kind in stored._NODES if f'["{kind}",' not in text] == []
    read = read_stored(text, EVERY_NODE, "test.qg")
    assert read == parsed
    assert read is not None
    assert spans(read.ops + read.fns + read.structs) == spans(parsed.ops + parsed.fns + parsed.structs)


def test_a_changed_source_is_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkout whose source was just edited computes what the source says."""
    for name in formulas.FILES:
        for suffix in ("", ".json"):
            shipped = files("qgen.formulas").joinpath(name + suffix)
            (tmp_path / (name + suffix)).write_text(shipped.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(stored, "files", lambda _: tmp_path)
    path = tmp_path / "linear.qg"
    path.write_text(path.read_text(encoding="utf-8").replace("op DequantizeLinear", "op Other"), encoding="utf-8")
    assert [op.name for op in load_builtin("qgen.formulas", "linear.qg").ops] == ["QuantizeLinear", "Other"]


def test_another_grammar_is_parsed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    text = print_stored(parse_source(EVERY_NODE, "test.qg"))
    monkeypatch.setattr(stored, "read_resource", lambda *_: "another grammar")
    assert read_stored(text, EVERY_NODE, "test.qg") is None


def test_the_library_is_loaded_from_what_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qgen.frontend.parse.parse_source", lambda *_: pytest.fail("a built-in source is parsed"))
    for name in library.FILES:
        assert load_builtin(library.PACKAGE, name).fns
