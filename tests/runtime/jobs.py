"""Kernels as jobs for a WebGPU that lives in JavaScript: `node.mjs` and `chromium.mjs` run what this module makes."""

from __future__ import annotations

import json
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qgen.runtime.images import Image, build_images, read_image
from qgen.runtime.opening import driver_environment
from qgen.sidecar.plan import DispatchPlan

_HERE: Final = Path(__file__).parent
_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a kernel; `images` are its buffers, those of storage between canaries."""

    wgsl: str
    plan: DispatchPlan
    images: Mapping[str, Image]


def make_job(wgsl: str, sidecar: Mapping[str, Any], plan: DispatchPlan, inputs: Mapping[str, bytes]) -> Job:
    """Return the job that runs `wgsl` as `plan` says, which must not be empty."""
    roles = {buffer["name"]: buffer["role"] for buffer in sidecar["buffers"]}
    return Job(wgsl, plan, build_images(plan, roles, inputs, canaries=True))


def run_script(script: str, adapter: str, jobs: Sequence[Job]) -> list[dict[str, bytes]]:
    """Return the outputs of each job as `script` ran it; canaries and inputs are checked.

    Fails where the script does, where a job is refused, or where the adapter's name does not contain `adapter`.
    """
    request = json.dumps([_encode(job) for job in jobs])
    with driver_environment("dawn"):
        done = subprocess.run(["node", _HERE / script], input=request, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, f"{script} ended with {done.returncode}: {done.stderr}"
    reply = json.loads(done.stdout)
    assert adapter in reply["adapter"].lower(), f"{script} ran on `{reply['adapter']}`, not on {adapter}"
    assert len(reply["results"]) == len(jobs)
    return [_decode(job, result) for job, result in zip(jobs, reply["results"], strict=True)]


def _encode(job: Job) -> dict[str, Any]:
    return {
        "wgsl": job.wgsl,
        "buffers": {
            name: {
                "data": b64encode(image.data).decode(),
                "offset": image.offset,
                "size": len(image.content),
                "usage": "uniform" if image.role == "uniform" else "storage",
            }
            for name, image in job.images.items()
        },
        "passes": [
            {
                "entryPoint": step.entry_point,
                "bindings": [{"group": bound.group, "binding": bound.binding, "buffer": bound.buffer} for bound in step.bindings],
                "dispatch": step.dispatch,
            }
            for step in job.plan.passes
        ],
        "read": _read(job),
    }


def _read(job: Job) -> list[str]:
    return [image.name for image in job.images.values() if image.has_canaries]


def _decode(job: Job, result: Mapping[str, Any]) -> dict[str, bytes]:
    assert "error" not in result, f"the job was refused: {result['error']}\n{job.wgsl}"
    contents = {name: read_image(job.images[name], b64decode(result["buffers"][name])) for name in _read(job)}
    return {name: content for name, content in contents.items() if job.images[name].role == "output"}
