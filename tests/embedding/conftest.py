"""A folder with the twelve kernels and their glue, as `qgen emit --glue` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from qgen.files import save_files
from qgen.glue import write_glue
from tests.embedding.cases import CASES, HOSTS, kernel_of


@pytest.fixture(scope="session")
def glue_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder."""
    folder = tmp_path_factory.mktemp("glue")
    (folder / "package.json").write_text('{ "type": "module" }\n', encoding="utf-8")  # what Node takes `.js` by
    for case in CASES:
        kernel = kernel_of(case)
        kernel.save(folder)
        save_files(folder, write_glue(kernel.sidecar, kernel.wgsl, HOSTS))
    return folder
