"""Runs kernels in Node, with Dawn in the process, on SwiftShader."""

from __future__ import annotations

from collections.abc import Sequence

from tests.runtime.jobs import Job, run_on


def run_jobs(jobs: Sequence[Job]) -> list[dict[str, bytes]]:
    """Return the outputs of each job; fails where the stack is absent, a job is refused or a canary is gone."""
    return run_on("node", jobs)
