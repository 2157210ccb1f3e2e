"""The evaluator's results come from the library and the LEGAL program alone: a fault in either moves them, and the oracle's stay."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import qgen
from qgen.check import make_inputs
from qgen.check.compare import find_mismatches, find_reference, run_kernel
from qgen.dtypes import DTYPES
from qgen.ir import nodes as ir
from qgen.kernel import Kernel
from tests.check.kernels import ties_to_odd, with_changed
from tests.oracle.nodes import Array

ROOT: Final = Path(__file__).parents[2]
SHAPE: Final = (40, 50)

_PROGRAM: Final = """
import hashlib, json, sys
import qgen
from qgen.check import make_inputs
from qgen.check.compare import find_mismatches, find_reference, run_kernel

op, x, y, numerics = sys.argv[1:]
kernel = qgen.compile(op, x=x, y=y, granularity=qgen.per_axis(0), numerics=numerics)
inputs = make_inputs(kernel, (40, 50), 1, calm=numerics == "exact")  # what is calm takes quick code
want = find_reference(kernel, inputs)["y"]
words = run_kernel(kernel, "cpu", inputs)["y"]
wrong = find_mismatches(words, want, kernel.request.signature.y)
print(json.dumps({"package": qgen.__file__, "oracle": hashlib.sha256(want.tobytes()).hexdigest(), "wrong": len(wrong)}))
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One constant of the library, changed; and a kernel that has to show it."""

    file: str
    old: str
    new: str
    kernel: tuple[str, str, str, str]


STRICT: Final = ("QuantizeLinear", "float32", "int8", "strict")
QUICK: Final = ("QuantizeLinear", "bfloat16", "int8", "exact")
PRODUCT: Final = ("DequantizeLinear", "int16", "float32", "strict")
FAULTS: Final = {
    "a tie goes to odd": Fault("float32.qg", "((value >> shift) & 1)", "((~value >> shift) & 1)", STRICT),
    "a quotient is one too large": Fault("float32.qg", "0x7ffff8", "0x800008", STRICT),
    "the exponent of a quotient is one too small": Fault("float32.qg", "b.exponent + 127", "b.exponent + 126", STRICT),
    "NaN has another code": Fault(
        "float32.qg", "(zero && infinite) { return 0x7fc00000; }", "(zero && infinite) { return 0x7fc00001; }", PRODUCT
    ),
    "half of a product is lost": Fault("float32.qg", "let al = a.significand & 0xfff", "let al = a.significand & 0x7ff", PRODUCT),
    "quick code rounds at a quarter": Fault("quick.qg", "(q + 0x8000)", "(q + 0xc000)", QUICK),
}


def run_in(root: Path, kernel: tuple[str, str, str, str]) -> dict[str, object]:
    """Return what the program prints with the package that lies in `root`."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM, *kernel], cwd=root, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    assert Path(str(found["package"])).is_relative_to(root)
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package with its grammar and targets."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("qgen", "grammar", "targets"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_constant_of_the_library_moves_the_kernel_and_not_the_oracle(copy: Path, fault: Fault) -> None:
    right = run_in(copy, fault.kernel)
    assert right["wrong"] == 0
    path = copy / "qgen" / "numerics" / fault.file
    text = path.read_text()
    assert fault.old in text
    path.write_text(text.replace(fault.old, fault.new))
    try:
        faulty = run_in(copy, fault.kernel)
    finally:
        path.write_text(text)
    assert faulty["wrong"] != 0
    assert faulty["oracle"] == right["oracle"]


def lower_the_greatest(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Builtin("clamp", (value, least, ir.Literal(255, scalar)), result):
            return ir.Builtin("clamp", (value, least, ir.Literal(254, scalar)), result)
        case _:
            return expr


def subtract_the_zero_point(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Binary("+", ir.Call(), ir.Name("zero_point"), result):
            return ir.Binary("-", expr.lhs, expr.rhs, result)
        case _:
            return expr


@pytest.mark.parametrize("numerics", ["strict", "exact"])
@pytest.mark.parametrize("change", [lower_the_greatest, ties_to_odd, subtract_the_zero_point])
def test_an_operation_of_a_legal_kernel_moves_the_evaluator_and_not_the_oracle(change: Callable[[ir.Expr], ir.Expr], numerics: str) -> None:
    kernel = qgen.compile("QuantizeLinear", x="float32", y="uint8", zero_point=True, granularity=qgen.per_axis(0), numerics=numerics)
    changed = with_changed(kernel, change)
    inputs = make_inputs(kernel, SHAPE, 2)
    assert outcome(kernel, inputs)[0] == 0
    assert outcome(changed, inputs)[0] > 0
    assert outcome(changed, inputs)[1] == outcome(kernel, inputs)[1]


def outcome(kernel: Kernel, inputs: dict[str, Array]) -> tuple[int, str]:
    """Return how many elements the evaluator gives that the oracle does not, and the hash of what the oracle gives."""
    want = find_reference(kernel, inputs)["y"]
    wrong = find_mismatches(run_kernel(kernel, "cpu", inputs)["y"], want, DTYPES["uint8"])
    return len(wrong), hashlib.sha256(want.tobytes()).hexdigest()
