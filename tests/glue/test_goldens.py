"""The generated files in every language, for a kernel whose tensors may be parted and one of several passes, as they are read by people."""

from __future__ import annotations

from typing import Any, Final

import pytest

import qgen
from qgen.glue import LANGUAGES, write_glue
from qgen.kernel import Kernel
from tests.goldens import Goldens

WGSL: Final = """\
// The text of the kernel stands here: `backticks`, ${braces}, "quotes", \\backslashes, \"\"\"more\"\"\", what??/ and */ have to come.
@compute @workgroup_size(64)
fn main() {}
"""


def kernels() -> dict[str, Kernel]:
    blocks = qgen.blocked(-1, 32)
    return {
        "blocked": qgen.compile("DequantizeLinear", x="int4", y="float16", zero_point=True, granularity=blocks, name="blocked"),
        "dynamic": qgen.compile("DynamicQuantizeLinear", x="float32", name="dynamic", group=1),
    }


@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "ort-template"])  # made of the text itself: tests/package
def test_glue_reads_well(language: str, name: str, golden: Goldens) -> None:
    sidecar: dict[str, Any] = kernels()[name].sidecar
    files = write_glue(sidecar, WGSL, [language])
    assert files
    for file, text in files.items():
        golden.check(f"glue/{file}", text)


def test_the_same_sidecar_gives_the_same_glue() -> None:
    kernel = kernels()["blocked"]
    assert write_glue(kernel.sidecar, kernel.wgsl, LANGUAGES) == write_glue(kernel.sidecar, kernel.wgsl, LANGUAGES)
