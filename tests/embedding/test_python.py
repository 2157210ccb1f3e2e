"""The Python modules, over wgpu and over wgpudawn, bit-equal to the oracle."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.embedding.adapters import open_native
from tests.embedding.cases import Work, check_runs, works

MARGIN = 512
STACKS = {"wgpu": "llvmpipe", "dawn": "swiftshader"}


def load_glue(folder: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("stack", STACKS)
def test_outputs_are_the_oracles(stack: str, glue_folder: Path) -> None:
    device = open_native(stack, STACKS[stack])
    for work in works():
        glue = load_glue(glue_folder, work.case.name)
        kernel = glue.Kernel(device)
        found = kernel.run({name: (data, work.shapes[name]) for name, data in work.inputs.items()})
        for name, want in work.outputs.items():
            assert found[name] == want[: len(found[name])]
            assert len(want) - 4 < len(found[name]) <= len(want)
        plan = glue.plan(work.shapes, work.limit) if work.limit else kernel.plan(work.shapes)
        assert check_runs(work, len(plan.runs))
        assert work.is_empty or run_in_place(device, kernel, plan, work) == work.outputs


def test_a_device_with_a_low_limit_gets_several_runs(glue_folder: Path) -> None:
    for work in works():
        if not work.limit:
            continue
        device = open_native("wgpu", "llvmpipe", (("max-storage-buffer-binding-size", work.limit),))
        assert device.limits["max-storage-buffer-binding-size"] == work.limit
        kernel = load_glue(glue_folder, work.case.name).Kernel(device)
        plan = kernel.plan(work.shapes)
        assert len(plan.runs) > 1
        assert run_in_place(device, kernel, plan, work) == work.outputs


def run_in_place(device: Any, kernel: Any, plan: Any, work: Work) -> dict[str, bytes]:  # noqa: ANN401 - neither API nor glue has types
    """Return the outputs that `encode` leaves, with each tensor beginning inside a larger buffer that is not touched elsewhere."""
    margin = b"\xa5" * MARGIN
    places = {}
    for name, size in plan.sizes.items():
        content = margin + work.inputs.get(name, b"\xa5" * size) + margin
        places[name] = (device.create_buffer_with_data(data=content, usage="STORAGE|COPY_SRC"), MARGIN)
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    kernel.encode(compute_pass, places, plan)
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    after = {name: bytes(device.queue.read_buffer(buffer)) for name, (buffer, _) in places.items()}
    assert all(content[:MARGIN] == content[-MARGIN:] == margin for content in after.values())
    return {name: after[name][MARGIN:-MARGIN] for name in work.outputs}
