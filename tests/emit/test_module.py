"""Whole modules: what stands in a text and in which order, that nothing else does, and that equal requests have equal bytes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import qgen
from qgen.compiler import Compiled, compile_kernel
from qgen.validate import validate_texts
from tests.emit.sample import sample

ROOT = Path(__file__).parents[2]
FUNCTION = re.compile(r"^fn (\w+)\(", re.MULTILINE)

DIGESTS = """
import hashlib
from qgen.compiler import compile_kernel
from qgen.sidecar.text import print_sidecar
from tests.emit.sample import sample

for request in sample(101):
    compiled = compile_kernel(request)
    print(compiled.name, hashlib.sha256((compiled.wgsl + print_sidecar(compiled.sidecar)).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def kernels() -> list[Compiled]:
    return [compile_kernel(request) for request in sample(29)]


def code_of(text: str) -> str:
    """Return the text without comments."""
    return re.sub(r"//[^\n]*", "", text)


def bodies(text: str) -> dict[str, str]:
    """Return each function's text by its name, in the order of the module."""
    names, parts = FUNCTION.findall(code_of(text)), FUNCTION.split(code_of(text))
    return dict(zip(names, parts[2::2], strict=True))


def calls(body: str, names: set[str]) -> set[str]:
    return {name for name in re.findall(r"\b(\w+)\(", body.partition("{")[2]) if name in names}


def test_functions_are_those_used_and_stand_below_their_callers(kernels: list[Compiled]) -> None:
    for kernel in kernels:
        found = bodies(kernel.wgsl)
        entries = [each["entry_point"] for each in kernel.sidecar["passes"]]
        order = list(found)
        assert order[: len(entries)] == entries
        called = {name: calls(body, set(found)) for name, body in found.items()}
        for position, name in enumerate(order):
            assert all(order.index(callee) > position for callee in called[name]), f"{kernel.name}: {name}"
        assert set().union(*called.values()) == set(order) - set(entries), kernel.name


def test_structs_are_those_used(kernels: list[Compiled]) -> None:
    for kernel in kernels:
        code = code_of(kernel.wgsl)
        for name in re.findall(r"^struct (\w+)", code, re.MULTILINE):
            assert len(re.findall(rf"\b{name}\b", code)) > 1, kernel.name


def test_names_of_a_module_are_unique(kernels: list[Compiled]) -> None:
    for kernel in kernels:
        code = code_of(kernel.wgsl)
        names = re.findall(r"^(?:fn|struct) (\w+)", code, re.MULTILINE) + re.findall(r"var<[^>]*> (\w+):", code)
        assert len(set(names)) == len(names), kernel.name


def test_texts_and_kernels_have_one_name_each(kernels: list[Compiled]) -> None:
    assert len(kernels) > 100
    assert len({kernel.name for kernel in kernels}) == len({kernel.wgsl for kernel in kernels}) == len(kernels)
    assert all(re.fullmatch(r"[a-z0-9_]+_[0-9a-f]{8}", kernel.name) for kernel in kernels)


def test_texts_are_clean(kernels: list[Compiled]) -> None:
    for kernel in kernels:
        text = kernel.wgsl
        assert text.isascii()
        assert text.endswith("}\n")
        assert not text.endswith("\n\n")
        assert "\n\n\n" not in text
        assert "\t" not in text
        assert not re.search(r" $", text, re.MULTILINE)
        assert "qgen" not in text
        assert qgen.__version__ not in text


def test_the_header_says_what_is_computed(kernels: list[Compiled]) -> None:
    for kernel in kernels:
        header = kernel.wgsl.partition("\n\n")[0].splitlines()
        assert all(line.startswith("//") for line in header)
        assert header[0].startswith(f"// {kernel.request.signature.op}: y = ")
        operands = {line.split()[1]: line.split()[2] for line in header[2:] if line.startswith("//   ")}
        bound = {operand.name: operand.dtype.name for operand in kernel.checked.operands if not operand.is_ignored}
        assert {name: operands.get(name) for name in bound} == bound
        assert any(line.startswith(f"// Numerics: {kernel.request.mode}, ") for line in header)
        assert any(line.startswith("// Dispatch: ") for line in header)


def test_the_header_has_the_formula_and_the_shapes() -> None:
    kernel = qgen.compile(
        "QuantizeLinear",
        x="float32",
        y="uint4",
        zero_point=True,
        granularity=qgen.blocked(axis=-1, block_size=32),
        shape=(64, 100),
        numerics="strict",
    )
    assert kernel.wgsl.startswith(
        """\
// QuantizeLinear: y = saturate_uint4(round_even(x / y_scale) + y_zero_point)
//
//   x             float32  [64, 100]  1 a word
//   y_scale       float32  [64, 4]    one for 32 elements along axis 1
//   y_zero_point  uint4    [64, 4]    one for 32 elements along axis 1
//   y             uint4    [64, 100]  8 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: 7 workgroups of 128; an invocation computes 8 elements.
"""
    )


def test_a_sample_is_wgsl_to_both_compilers(kernels: list[Compiled]) -> None:
    texts = [(kernel.name, kernel.wgsl) for kernel in kernels[::4]]
    for report in validate_texts(texts, engine="all"):
        assert report.ok, f"{report.label}: {report.raw}"


def test_the_order_of_hashes_does_not_show() -> None:
    """Two processes that hash differently print the same names and the same bytes."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.splitlines()) > 10


def test_a_kernel_compiled_again_has_the_same_bytes(kernels: list[Compiled]) -> None:
    for kernel in kernels[::10]:
        again = compile_kernel(kernel.request)
        assert (again.name, again.wgsl, again.sidecar) == (kernel.name, kernel.wgsl, kernel.sidecar)


def test_the_host_chooses_names_and_the_group() -> None:
    kernel = qgen.compile("QuantizeLinear", x="float32", shape=(5,), name="mine", entry_point="quantize", group=2)
    assert kernel.name == "mine"
    assert "fn quantize(@builtin(global_invocation_id) id: vec3u)" in kernel.wgsl
    assert set(re.findall(r"@group\((\d)\)", kernel.wgsl)) == {"2"}
    assert {binding["group"] for each in kernel.sidecar["passes"] for binding in each["bindings"]} == {2}
    assert kernel.sidecar["passes"][0]["entry_point"] == "quantize"
    plain = qgen.compile("QuantizeLinear", x="float32", shape=(5,))
    assert plain.wgsl == kernel.wgsl.replace("fn quantize(", "fn main(").replace("@group(2)", "@group(0)")


def test_bindings_are_numbered_in_the_order_of_the_operands(kernels: list[Compiled]) -> None:
    for kernel in kernels:
        found = re.findall(r"@binding\((\d+)\) var<([^>]*)> (\w+)", kernel.wgsl)
        assert [int(number) for number, _, _ in found] == list(range(len(found)))
        names = [name for _, _, name in found if name != "params"]
        assert names == [operand.name for operand in kernel.legal.bound]
        assert all(access == "storage, read_write" for _, access, name in found if name == "y")
        assert ("params" in kernel.wgsl) == (kernel.request.shape is None)
