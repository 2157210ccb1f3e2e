"""Shaders of the tests' own on both native stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tests.embedding.adapters import open_native

STACKS: Final = {"wgpu": "llvmpipe", "dawn": "swiftshader"}

Words = NDArray[np.uint32]


def run_shader(stack: str, wgsl: str, buffers: Sequence[Words], count: int, workgroups: int) -> Words:
    """Return the `count` words of the last binding of group 0 after a dispatch of `main`; `buffers` are bound before it."""
    device = open_native(stack, STACKS[stack])
    module = device.create_shader_module(code=wgsl)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    usage = "STORAGE|COPY_SRC"
    made = [device.create_buffer_with_data(data=words.tobytes(), usage=usage) for words in (*buffers, np.zeros(count, np.uint32))]
    entries = [{"binding": number, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}} for number, buffer in enumerate(made)]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    compute_pass.dispatch_workgroups(workgroups)
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    return np.frombuffer(bytes(device.queue.read_buffer(made[-1])), np.uint32)
