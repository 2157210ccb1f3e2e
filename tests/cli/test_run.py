"""`qgen run`, and kernels back from their files: every form of an array, and every way in which text and sidecar do not fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import qgen
from qgen.cli.stored import load_kernel
from qgen.errors import QgenError
from tests.cli.conftest import Command

INPUTS = "--in x=x.npy y_scale=scale.npy y_zero_point=zero.npy --out y=y.npy"


def load(name: str) -> dict[str, NDArray[Any]]:
    kernel = qgen.compile("QuantizeLinear", x="float32", y="uint4", zero_point=True, granularity=qgen.blocked(-1, 32), shape=(4, 33))
    zero_point = np.load("zero.npy").view(ml_dtypes.uint4)
    inputs = {"x": np.load("x.npy"), "y_scale": np.load("scale.npy"), "y_zero_point": zero_point}
    return {"right": kernel.reference(inputs)["y"], "found": np.load(name)}


@pytest.mark.parametrize("device", ["cpu", "dawn:swiftshader", "wgpu:llvmpipe"])
def test_run_gives_what_the_oracle_gives(device: str, command: Command) -> None:
    assert command(f"run kernels/blocked.json {INPUTS} --device {device}").status == 0
    arrays = load("y.npy")
    assert arrays["found"].dtype.str == "|V1"
    np.testing.assert_array_equal(arrays["found"].view(ml_dtypes.uint4), arrays["right"])


def test_packed_bytes_are_the_same_input(command: Command) -> None:
    np.save("x_packed.npy", qgen.pack(np.load("x.npy"), "float32"))
    np.save("zero_packed.npy", qgen.pack(np.load("zero.npy").view(ml_dtypes.uint4), "uint4"))
    words = "--in x=x_packed.npy y_scale=scale.npy y_zero_point=zero_packed.npy --out y=y.npy --device cpu"
    assert command(f"run kernels/blocked.json {words}").status == 0
    arrays = load("y.npy")
    np.testing.assert_array_equal(arrays["found"].view(ml_dtypes.uint4), arrays["right"])


def test_untyped_items_are_codes_and_results_feed_the_next_kernel(command: Command) -> None:
    x = np.array([[-8, -1, 0, 7, 3], [1, 2, 3, 4, 5]]).astype(ml_dtypes.int4)
    scale = np.array([0.5, 1, 2, 3, -1]).astype(ml_dtypes.bfloat16)
    zero_point = np.array([-1, 0, 1, 2, 3]).astype(ml_dtypes.int4)
    for name, array in {"x": x, "scale": scale, "zero": zero_point}.items():
        np.save(f"{name}.npy", array)
    np.save("signed.npy", x.astype(np.int8).view("V1"))  # the same codes, with the sign in the upper bits
    np.save("packed.npy", qgen.pack(x, "int4"))
    kernel = qgen.compile("DequantizeLinear", x="int4", scale="bfloat16", zero_point=True, granularity=qgen.per_axis(-1))
    right = kernel.reference({"x": x, "x_scale": scale, "x_zero_point": zero_point})["y"]
    for given in ("x=x.npy", "x=signed.npy", "x=packed.npy --shape-of x=2,5"):
        assert command(f"run kernels/rows.json --in x_scale=scale.npy x_zero_point=zero.npy {given} --out y=y.npy --device cpu").status == 0
        np.testing.assert_array_equal(np.load("y.npy").view(ml_dtypes.bfloat16), right)


def test_a_zero_point_that_takes_no_part_is_a_warning_or_an_error(command: Command) -> None:
    zero_point = np.ones((), ml_dtypes.float8_e4m3fn)
    arrays: dict[str, NDArray[Any]] = {
        "x": np.ones(3, np.float32),
        "codes": np.ones(3, zero_point.dtype),
        "scale": np.ones((), np.float32),
        "zero": zero_point,
    }
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    assert command("emit QuantizeLinear --x float32 --y float8e4m3fn --zero-point --name quantize").status == 0
    assert command("emit DequantizeLinear --x float8e4m3fn --zero-point --name dequantize").status == 0
    run = command(f"run quantize.json {INPUTS} --device cpu")
    assert (run.status, run.stderr) == (0, "warning: `y_zero_point` of float8e4m3fn is not zero, and takes no part in the result\n")
    run = command("run dequantize.json --in x=codes.npy x_scale=scale.npy x_zero_point=zero.npy --out y=y.npy --device cpu")
    assert (run.status, run.stderr.partition(":")[0]) == (1, "error[QG112]")
    assert command("check quantize.json dequantize.json --device cpu -q").stderr == ""


def test_a_kernel_for_plain_scales_is_checked_on_these_and_run_on_no_others(folder: Path, command: Command) -> None:
    words = "emit DequantizeLinear --x int8 --per-axis 0 --shape 4,2"
    np.save("codes.npy", np.ones((4, 2), np.int8))
    np.save("ones.npy", np.ones(4, np.float32))
    np.save("zeros.npy", np.zeros(4, np.float32))
    assert command(f"{words} --known-scale ones.npy --name plain").status == 0
    assert command(f"{words} --plain-scale --name same").status == 0
    assert (folder / "plain.wgsl").read_text(encoding="utf-8") == (folder / "same.wgsl").read_text(encoding="utf-8")
    assert command("check plain.json --device cpu").status == 0
    assert command("run plain.json --in x=codes.npy x_scale=ones.npy --out y=y.npy --device cpu").status == 0
    run = command("run plain.json --in x=codes.npy x_scale=zeros.npy --out y=y.npy --device cpu")
    assert (run.status, run.stderr.partition(":")[0]) == (1, "error[QG113]")
    run = command(f"{words} --known-scale zeros.npy --name any")
    assert (run.status, run.stderr) == (
        0,
        "warning: the kernel takes any scale: not all of zeros.npy are plain, or there is no test to leave out\n",
    )
    assert "is_plain" in (folder / "any.wgsl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("array", "code", "message"),
    [
        (np.array([0x35, 0x01], np.uint8).view("V1"), "QG241", "these are not codes of uint4"),
        (np.zeros(3, np.uint8), "QG242", "3 bytes of packed uint4 were given, but the shape needs 4"),
        (np.zeros((4, 2), np.uint8), "QG240", "an array of uint8 was given where uint4 is needed"),
        (np.zeros((4, 2), "V2"), "QG240", "an array of |V2 was given where uint4 is needed"),
        (np.zeros((4, 2), [("a", "u1")]), "QG240", "an array of [('a', 'u1')] was given where uint4 is needed"),
    ],
    ids=["stray_bits", "few_bytes", "numbers", "two_bytes", "records"],
)
def test_what_is_no_code_is_refused(array: NDArray[Any], code: str, message: str, command: Command) -> None:
    np.save("zero.npy", array)
    run = command(f"run kernels/blocked.json {INPUTS} --device cpu")
    assert run.status == 1
    assert run.stderr.startswith(f"error[{code}]: {message}\n  --> input `y_zero_point`, zero.npy\n")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,"])
def test_a_broken_array_is_one_error(content: bytes, folder: Path, command: Command) -> None:
    (folder / "x.npy").write_bytes(content)
    run = command(f"run kernels/blocked.json {INPUTS} --device cpu")
    assert run.status == 1
    assert run.stderr.startswith("error[QG905]: this is no .npy file: ")


def test_pickles_are_not_read(command: Command) -> None:
    np.save("x.npy", np.array([{}], object))
    assert command(f"run kernels/blocked.json {INPUTS} --device cpu").stderr.startswith("error[QG905]")


def make_foreign(folder: Path) -> None:
    """Make a kernel of another version of qgen: text and sidecar go together, but the text is not what is compiled here."""
    path, sidecar = folder / "kernels" / "blocked.wgsl", folder / "kernels" / "blocked.json"
    text = path.read_text(encoding="utf-8") + "// of another version\n"
    path.write_text(text, encoding="utf-8")
    content = json.loads(sidecar.read_text(encoding="utf-8"))
    content["passes"][0]["wgsl"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    sidecar.write_text(json.dumps(content), encoding="utf-8")


def test_the_cpu_does_not_run_a_text_of_another_version(folder: Path, command: Command) -> None:
    make_foreign(folder)
    for words in (f"run kernels/blocked.json {INPUTS} --device cpu", "check kernels/blocked.json --device cpu"):
        run = command(words)
        assert run.status == 1
        assert run.stderr.startswith("error[QG904]: the text of kernels/blocked.json is not what this qgen compiles")


def test_an_adapter_runs_a_text_of_another_version(folder: Path, command: Command) -> None:
    make_foreign(folder)
    assert command(f"run kernels/blocked.json {INPUTS} --device dawn:swiftshader").status == 0
    arrays = load("y.npy")
    np.testing.assert_array_equal(arrays["found"].view(ml_dtypes.uint4), arrays["right"])


@pytest.mark.parametrize("file", ["../../secret.txt", "deep/blocked.wgsl", ".."])
def test_a_sidecar_cannot_name_a_text_elsewhere(file: str, folder: Path, command: Command) -> None:
    sidecar = folder / "kernels" / "blocked.json"
    content = json.loads(sidecar.read_text(encoding="utf-8"))
    content["passes"][0]["wgsl"]["file"] = file
    sidecar.write_text(json.dumps(content), encoding="utf-8")
    run = command(f"run kernels/blocked.json {INPUTS} --device cpu")
    assert run.stderr.startswith("error[QG903]: this is no sidecar of a kernel: its text") == (file != "..")
    assert run.status == 1


@pytest.mark.parametrize(
    "change",
    [{"op": None}, {"passes": []}, {"passes": None}, {"buffers": [{}]}, {"shape": ["a"]}, {"name": "../x"}, {"format_version": 2}],
    ids=["op", "no_passes", "null_passes", "buffers", "shape", "name", "format_version"],
)
def test_a_sidecar_that_was_changed_is_one_error(change: dict[str, Any], folder: Path, command: Command) -> None:
    sidecar = folder / "kernels" / "blocked.json"
    content = json.loads(sidecar.read_text(encoding="utf-8"))
    sidecar.write_text(json.dumps(content | change), encoding="utf-8")
    run = command(f"run kernels/blocked.json {INPUTS} --device cpu")
    assert run.status == 1
    assert run.stderr.startswith("error[QG")


@pytest.mark.parametrize(
    ("entry_point", "said"), [("nomain", "its text has no entry point `nomain`"), (None, "`None`"), ("ma.n", "`ma.n`")]
)
def test_a_sidecar_names_an_entry_point_of_its_text(entry_point: object, said: str, folder: Path, command: Command) -> None:
    sidecar = folder / "kernels" / "blocked.json"
    content = json.loads(sidecar.read_text(encoding="utf-8"))
    content["passes"][0]["entry_point"] = entry_point
    sidecar.write_text(json.dumps(content), encoding="utf-8")
    for device in ("cpu", "dawn:swiftshader"):
        run = command(f"run kernels/blocked.json {INPUTS} --device {device}")
        assert run.status == 1
        assert run.stderr.startswith("error[QG903]: this is no sidecar of a kernel")
        assert said in run.stderr


def _places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401 - JSON
    """Yield the place of every value of a sidecar."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*place, key)
        yield from _places(below, (*place, key))


def test_a_value_of_a_sidecar_that_was_changed_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    kernel = qgen.compile("DequantizeLinear", x="int8", scale="float16", zero_point=True, granularity=qgen.per_axis(0), name="k")
    kernel.save(tmp_path)
    text = (tmp_path / "k.json").read_text(encoding="utf-8")
    codes, scale = np.ones((4, 37), np.int8), np.ones(4, np.float16)
    inputs: dict[str, NDArray[Any]] = {"x": codes, "x_scale": scale, "x_zero_point": np.arange(4, dtype=np.int8)}
    refused = 0
    for number, place in enumerate(_places(json.loads(text))):
        for change in (0, None, ["x"], 1 << 32)[number % 2 :: 2]:
            sidecar = json.loads(text)
            *above, last = place
            reduce(lambda value, key: value[key], above, sidecar)[last] = change
            (tmp_path / "k.json").write_text(json.dumps(sidecar), encoding="utf-8")
            try:
                stored = load_kernel(tmp_path / "k.json")
                found = stored.kernel.run(inputs, device=stored.resolve_device("cpu"))
            except QgenError:
                refused += 1
            else:
                assert np.array_equal(found["y"], kernel.reference(inputs)["y"]), (place, change)
    assert refused > 500


def test_nested_json_is_no_sidecar(folder: Path, command: Command) -> None:
    (folder / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    assert command("run deep.json --out y=y.npy").stderr.startswith("error[QG903]")


def test_check_finds_a_wrong_kernel(folder: Path, command: Command) -> None:
    make_foreign(folder)
    path, sidecar = folder / "kernels" / "blocked.wgsl", folder / "kernels" / "blocked.json"
    text = path.read_text(encoding="utf-8").replace("4u * (i % 8u)", "4u * (7u - i % 8u)")
    path.write_text(text, encoding="utf-8")
    content = json.loads(sidecar.read_text(encoding="utf-8"))
    content["passes"][0]["wgsl"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    sidecar.write_text(json.dumps(content), encoding="utf-8")
    run = command("check kernels --device dawn:swiftshader -q")
    assert run.status == 1
    assert "elements are right; shape [4, 33], seed 0, element" in run.stdout
    assert run.stdout.splitlines()[-1].endswith(": 1 kernel wrong")
