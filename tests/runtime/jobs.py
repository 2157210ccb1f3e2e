"""Kernels as jobs for the stacks that live in JavaScript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qgen.runtime import open_device
from qgen.sidecar.plan import DispatchPlan


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a kernel."""

    wgsl: str
    sidecar: Mapping[str, Any]
    plan: DispatchPlan
    inputs: Mapping[str, bytes]


def make_job(wgsl: str, sidecar: Mapping[str, Any], plan: DispatchPlan, inputs: Mapping[str, bytes]) -> Job:
    """Return the job that runs `wgsl` as `plan` says."""
    return Job(wgsl, sidecar, plan, inputs)


def run_on(selector: str, jobs: Sequence[Job]) -> list[dict[str, bytes]]:
    """Return the outputs of each job, between canaries; fails where the adapter is not SwiftShader, and as a device does."""
    device = open_device(selector)
    assert "swiftshader" in device.name.lower(), f"{selector} runs on `{device.name}`"
    return [device.run(job.wgsl, job.sidecar, job.plan, job.inputs, canaries=True) for job in jobs]
