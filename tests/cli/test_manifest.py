"""The list of kernels: what is read, what is refused, and at which line."""

from __future__ import annotations

from pathlib import Path

import pytest

import qgen
from qgen.cli.manifest import load_manifest
from qgen.errors import QgenError, Span

HEAD = '[[kernel]]\nop = "QuantizeLinear"\nx = "float32"\n'


def write(folder: Path, text: str) -> str:
    path = folder / "list.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def compile_all(path: str) -> list[qgen.Kernel]:
    return [entry.compile() for entry in load_manifest(path)]


def test_every_key_means_what_the_api_means(tmp_path: Path) -> None:
    text = """\
[[kernel]]
op = "QuantizeLinear"
x = "float16"
scale = "float16"
y = "int8"
zero_point = true
per_axis = -1
shape = [2, 3, 5]
opset = 23
precision = "float32"
domain = "ai.onnx"
saturate = true
numerics = "exact"
plain_scale = true
target = "webgpu:workgroup_size=32"
name = "kernel"
entry_point = "quantize"
group = 1
"""
    (entry,) = load_manifest(write(tmp_path, text))
    same = qgen.compile(
        "QuantizeLinear",
        x="float16",
        scale="float16",
        y="int8",
        zero_point=True,
        granularity=qgen.per_axis(-1),
        shape=(2, 3, 5),
        opset=23,
        precision="float32",
        domain="ai.onnx",
        saturate=True,
        numerics="exact",
        plain_scale=True,
        target="webgpu:workgroup_size=32",
        name="kernel",
        entry_point="quantize",
        group=1,
    )
    kernel = entry.compile()
    assert (kernel.wgsl, kernel.sidecar) == (same.wgsl, same.sidecar)


@pytest.mark.parametrize(
    ("text", "code", "position", "message"),
    [
        (HEAD + "zero_points = true\n", "QG910", (4, 1), "a kernel has no key `zero_points`"),
        (HEAD + "  'no_saturate' = true\n", "QG910", (4, 3), "a kernel has no key `no_saturate`"),
        (HEAD + "\n" + HEAD + "zero_point = 1\n", "QG910", (8, 1), "`zero_point` is true or false, not 1"),
        (HEAD + "group = true\n", "QG910", (4, 1), "`group` is a whole number, not True"),
        (HEAD + "shape = [2, 3.0]\n", "QG910", (4, 1), "`shape` is an array of whole numbers, not [2, 3.0]"),
        (HEAD + "shape = '2,3'\n", "QG910", (4, 1), "`shape` is an array of whole numbers, not '2,3'"),
        (HEAD + "y = 4\n", "QG910", (4, 1), "`y` is a string, not 4"),
        (HEAD + "blocked = '-1'\n", "QG910", (4, 1), "`-1` is not AXIS:SIZE, as -1:32"),
        (HEAD + "blocked = '-1:32'\nper_axis = 1\n", "QG910", (5, 1), "a kernel is per-axis or blocked, not both"),
        ("# no x\n\n [[ kernel ]] # here\nop = 'QuantizeLinear'\n", "QG910", (3, 2), "a kernel needs `x`"),
        ('[["kernel"]]\nx = "float32"\n', "QG910", (1, 1), "a kernel needs `op`"),
        (HEAD + "y = 'uint5'\n", "QG101", (1, 1), "there is no dtype `uint5`"),
        (HEAD + "blocked = '-1:0'\n", "QG223", (1, 1), "a block of 0 elements is not possible"),
        (HEAD + "shape = [65536, 65536]\n", "QG302", (1, 1), "[65536, 65536] has more than 2^32 - 128 elements"),
        (HEAD + "\n[[kernel]\n", "QG909", (5, 9), "this is not TOML: Expected ']]' at the end of an array declaration"),
    ],
    ids=lambda value: str(value).replace("\n", " ")[-30:],
)
def test_what_is_wrong_is_shown_at_its_line(tmp_path: Path, text: str, code: str, position: tuple[int, int], message: str) -> None:
    with pytest.raises(QgenError) as caught:
        compile_all(write(tmp_path, text))
    assert (caught.value.code, caught.value.message) == (code, message)
    assert isinstance(caught.value.place, Span)
    assert (caught.value.place.line, caught.value.place.column) == position
    assert f"\n{position[0]} | {text.splitlines()[position[0] - 1]}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no list of kernels in this file"),
        ("kernel = []\n", "there is no list of kernels in this file"),
        ("kernel = [1]\n", "there is no list of kernels in this file"),
        ("[kernel]\nop = 'QuantizeLinear'\n", "there is no list of kernels in this file"),
        ("title = 'mine'\n" + HEAD, "a list of kernels has no `title`"),
    ],
    ids=["nothing", "empty", "numbers", "one_bracket", "other_key"],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(QgenError, match="QG910") as caught:
        load_manifest(write(tmp_path, text))
    assert caught.value.message == message


@pytest.mark.parametrize(
    "text",
    ["kernel = [{op = 'QuantizeLinear', x = 'float33'}]\n", "note = 1\n", HEAD + 'y = """\n[[kernel]]\n"""\n'],
    ids=["inline", "other", "header_in_a_string"],
)
def test_a_line_that_is_not_sure_is_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(QgenError) as caught:
        compile_all(write(tmp_path, text))
    assert isinstance(caught.value.place, str)
    assert caught.value.place.startswith(str(tmp_path))


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_bytes(b"# \xff\n")
    with pytest.raises(QgenError, match="byte 2 is not UTF-8"):
        load_manifest(str(tmp_path / "list.toml"))
