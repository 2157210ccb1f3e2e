"""The ES modules, in Node and in a page of Chromium, bit-equal to the oracle."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Final

import pytest

from qgen.runtime.drivers import driver_environment
from tests.embedding.cases import check_runs, works

HERE: Final = Path(__file__).parent


@pytest.mark.parametrize("host", ["node", "chromium"])
def test_outputs_are_the_oracles(host: str, glue_folder: Path) -> None:
    request = [
        {
            "kernel": work.case.name,
            "shapes": work.shapes,
            "inputs": {name: b64encode(data).decode() for name, data in work.inputs.items()},
            "outputs": list(work.outputs),
            "limit": work.limit,
        }
        for work in works()
    ]
    with driver_environment("dawn"):
        done = subprocess.run(
            ["node", HERE / f"{host}.mjs", glue_folder], input=json.dumps(request), capture_output=True, text=True, timeout=300, check=False
        )
    assert done.returncode == 0, done.stderr
    reply = json.loads(done.stdout)
    assert "swiftshader" in reply["adapter"].lower()
    for work, result in zip(works(), reply["results"], strict=True):
        assert "error" not in result, (work.case.name, result["error"])
        assert result["margins"], work.case.name
        assert check_runs(work, result["runs"]), (work.case.name, result["runs"])
        for name, want in work.outputs.items():
            assert work.is_empty or b64decode(result["device"][name]) == want, work.case.name
            in_memory = b64decode(result["memory"][name])
            assert in_memory == want[: len(in_memory)]
            assert len(want) - 4 < len(in_memory) <= len(want)
