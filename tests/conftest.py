"""What every test has: the goldens, deterministic examples from hypothesis, and a runtime folder for the graphics drivers."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis

from tests.goldens import (
    golden,
    pytest_addoption,
    pytest_configure,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)

__all__ = ["golden", "pytest_addoption", "pytest_configure", "pytest_sessionfinish", "pytest_terminal_summary", "pytest_testnodedown"]

# The same examples in every run, and no deadline: two cores that are shared say nothing about speed.
hypothesis.settings.register_profile("qgen", deadline=None, derandomize=True)
hypothesis.settings.load_profile("qgen")

# Mesa and Chromium want a folder of the user's own; a container has none.
if "XDG_RUNTIME_DIR" not in os.environ:
    runtime_folder = Path(__file__).parents[1] / ".setup" / "runtime"
    runtime_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime_folder)
