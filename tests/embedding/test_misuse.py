"""Calls of the glue that are wrong get one clear error, and what is only another kind of number or of array is taken."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.embedding.compilers import HERE, WGPU, compile_rust
from tests.embedding.test_python import load_glue

RIGHT: Final[dict[str, Any]] = {"x": (2, 64), "x_scale": (2, 2), "x_zero_point": (2, 2)}
LIMIT: Final = 4300
WRONG: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "no shapes": (({},), "x has no shape"),
    "no shape": (({"x": (2, 64)},), "x_scale has no shape"),
    "None": ((RIGHT | {"x": None},), "x has no shape"),
    "a number": ((RIGHT | {"x": 128},), "x has no shape"),
    "a fraction": ((RIGHT | {"x": (2, 64.0)},), "a dimension of x is 64.0, which is no whole number"),
    "numpy's fractions": ((RIGHT | {"x": np.array([2.0, 64.0])},), "a dimension of x is np.float64(2.0), which is no whole number"),
    "a text": ((RIGHT | {"x": "2x64"},), "a dimension of x is '2', which is no whole number"),
    "a negative dimension": ((RIGHT | {"x": (-2, 64)},), "x has a negative dimension, (-2, 64)"),
    "too large": ((RIGHT | {"x": (1 << 20, (1 << 20) + 1)},), "x is too large"),
    "numpy's, too large": ((RIGHT | {"x": np.array([1 << 32, 1 << 32])},), "x is too large"),
    "another order": ((RIGHT | {"x": (1, 2, 64), "x_scale": (2, 1, 2)},), "needs x_scale.shape = x.shape except dimension -1"),
    "a fraction as the limit": ((RIGHT, 4096.0), "max_binding_size is 4096.0, which is no whole number"),
    "a text as the limit": ((RIGHT, "4096"), "max_binding_size is '4096', which is no whole number"),
}


@pytest.mark.parametrize("case", WRONG)
def test_python_says_what_is_wrong(case: str, glue_folder: Path) -> None:
    arguments, message = WRONG[case]
    with pytest.raises(ValueError, match=f"^dq_i4_blocked: {re.escape(message)}$"):
        load_glue(glue_folder, "dq_i4_blocked").plan(*arguments)


@pytest.mark.parametrize("name", ["dq_i4_blocked", "dq_u8_axis1", "dql"])
def test_python_takes_whole_numbers_of_numpy(name: str, glue_folder: Path) -> None:
    glue = load_glue(glue_folder, name)
    shapes: dict[str, tuple[int, ...]] = (
        dict(RIGHT) if name == "dq_i4_blocked" else {"x": (3, 500), "x_scale": (500,), "x_zero_point": (500,)}
    )
    want = glue.plan(shapes)
    for dtype in (np.int64, np.int32, np.uint8 if max(shapes["x"]) < 256 else np.uint16):
        assert glue.plan({name: np.array(shape, dtype) for name, shape in shapes.items()}) == want
        assert glue.plan({name: tuple(dtype(dim) for dim in shape) for name, shape in shapes.items()}) == want
    if name == "dq_u8_axis1":
        parted = glue.plan(shapes | {"x": (300, 500)}, LIMIT)
        assert len(parted.runs) > 1
        assert glue.plan({name: np.array(shape) for name, shape in (shapes | {"x": (300, 500)}).items()}, np.int64(LIMIT)) == parted


def test_javascript_says_what_is_wrong(glue_folder: Path) -> None:
    done = subprocess.run(["node", HERE / "misuse.mjs", glue_folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    calls = json.loads(done.stdout)
    assert len(calls) > 20
    for call, (want, got) in calls.items():
        assert got == want, call


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (("gcc", "-std=c99"), "needs C11 or later"),
        (("gcc", "-std=c89"), "needs C11 or later"),
        (("g++", "-x", "c++", "-std=c++98"), "needs C++11 or later"),
        (("gcc", "-std=gnu99", "-D_GNU_SOURCE"), None),
        (("gcc", "-std=c11"), None),
        (("gcc", "-std=c2x"), None),
        (("g++", "-x", "c++", "-std=c++11"), None),
    ],
)
def test_c_that_is_too_old_is_told_so(command: tuple[str, ...], wanted: str | None, glue_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "webgpu").mkdir()
    (tmp_path / "webgpu" / "webgpu.h").symlink_to(WGPU / "webgpu.h")
    (tmp_path / "main.c").write_text(f'#include "{glue_folder / "dq_i4_blocked.h"}"\nint main(void) {{ return 0; }}\n', encoding="utf-8")
    options = ["-fsyntax-only", f"-I{tmp_path}", str(tmp_path / "main.c")]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    if wanted is None:
        assert (done.returncode, errors) == (0, [])
    else:
        assert wanted in errors[0]


def test_rust_that_uses_a_part_compiles_without_a_warning(glue_folder: Path, tmp_path: Path) -> None:
    path = glue_folder / "dq_i4_blocked.rs"
    shapes = "kernel::Shapes { x: &[2, 64], x_scale: &[2, 2], x_zero_point: &[2, 2] }"
    main = f'fn main() {{\n    println!("{{}}", kernel::plan(&{shapes}, 65536).unwrap().runs);\n}}\n'
    (tmp_path / "main.rs").write_text(f'#[path = "{path}"]\nmod kernel;\n{main}', encoding="utf-8")
    compile_rust(tmp_path / "main.rs", "-o", tmp_path / "main")
    assert subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout == "1\n"
