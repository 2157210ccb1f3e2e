"""The words of the command line's own errors, one golden a code."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command
from tests.goldens import Goldens

INPUTS = "--in x=x.npy y_scale=scale.npy y_zero_point=zero.npy --out y=y.npy"

ERRORS = {
    "QG450": "emit QuantizeLinear --x float32 --glue js,pyhton",
    "QG900": "explain QG9000",
    "QG901": "show QuantizeLinear --x float32 --print-ir-after realize",
    "QG902": "build missing.toml -o out",
    "QG903": "run array.json --out y=y.npy",
    "QG904": f"run stale/blocked.json {INPUTS} --device cpu",
    "QG905": "run kernels/blocked.json --in x=text.txt --out y=y.npy",
    "QG906": "run kernels/rows.json --in x=packed.npy --out y=y.npy",
    "QG907": "run kernels/blocked.json --in x=short.npy --out y=y.npy",
    "QG908": "run kernels/blocked.json --in scale=scale.npy --out y=y.npy",
    "QG909": "build syntax.toml -o out",
    "QG910": "build unknown.toml -o out",
    "QG911": "build twice.toml -o out",
    "QG912": "check empty",
}
"""A command line for each code but QG913, which takes a full disk."""


@pytest.fixture
def inputs(folder: Path) -> Path:
    """What the command lines above read beside what is in every folder."""
    stale = shutil.copytree(folder / "kernels", folder / "stale")
    text = (stale / "blocked.wgsl").read_text(encoding="utf-8")
    (stale / "blocked.wgsl").write_text(text + "\n", encoding="utf-8")
    np.save(folder / "packed.npy", np.arange(6, dtype=np.uint8))
    text = (folder / "kernels.toml").read_text(encoding="utf-8")
    (folder / "syntax.toml").write_text(text.replace('x = "float32"', "x = float32"), encoding="utf-8")
    (folder / "unknown.toml").write_text(text.replace("zero_point", "  zero-point"), encoding="utf-8")
    (folder / "twice.toml").write_text(text.replace("dequantize_rows", "quantize_weights"), encoding="utf-8")
    return folder


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, inputs: Path, command: Command, golden: Goldens) -> None:
    before = sorted(inputs.rglob("*"))
    run = command(ERRORS[code])
    assert (run.status, run.stdout) == (1, "")
    assert run.stderr.startswith(f"error[{code}]: ")
    assert sorted(inputs.rglob("*")) == before
    golden.check(f"errors/{code}.err", run.stderr)
