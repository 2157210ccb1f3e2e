"""The whole matrix on one device, in shards, with a file of what is done so that it can be gone on with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qgen.check.compare import CheckResult, CounterExample, check_kernel
from qgen.check.matrix import kernel_variants, matrix_requests
from qgen.check.resume import ResumeFile
from qgen.errors import InternalError, QgenError
from qgen.evaluate import EvaluationError
from qgen.kernel import Kernel, compile_request

Progress = Callable[[int, int], None]
"""Called with the number of kernels done and that of all, of the shard."""

_SHARD: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_SEEDS: Final = 85
_STEP: Final = 17
"""Seeds from one kernel of the matrix to the next, and from one text of it to the next: no two runs have the same."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` (from 1) of `count` parts of the matrix: every `count`-th kernel."""

    index: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """One text: its result, or why there is none (`trap`: it was refused, wrote where it may not, or trapped in the evaluator)."""

    kernel: str
    device: str
    result: CheckResult | None
    trap: str | None

    @property
    def ok(self) -> bool:
        """Whether it ran and every bit is right."""
        return self.result is not None and self.result.ok

    def __str__(self) -> str:
        """Return the outcome in a line, or the trap's own lines."""
        return str(self.result) if self.trap is None else f"{self.kernel} on {self.device}: {self.trap}"


@dataclass(frozen=True, slots=True)
class Summary:
    """What a sweep came to. `kernels` are those of the matrix, each of which has several texts; `resumed` texts were done before."""

    device: str
    kernels: int
    texts: int
    resumed: int
    elements: int
    failures: tuple[Outcome, ...]

    @property
    def ok(self) -> bool:
        """Whether every bit of every text is right."""
        return not self.failures


def parse_shard(text: str) -> Shard:
    """Return the shard that `I/N` names. Raises `QgenError` QG850."""
    match = _SHARD.fullmatch(text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise QgenError("QG850", f"`{text}` names no part of the matrix", hint="write `2/3` for the second of three", place="the shard")
    return Shard(int(match[1]), int(match[2]))


def sweep(device: str, shard: Shard | None = None, resume: Path | None = None, progress: Progress | None = None) -> Summary:
    """Check every kernel of the matrix, or those of `shard`, on `device`: the texts for every shape in each mode, and three baked ones.

    `resume` is a file of JSON lines, one for each text that is done; it is made where it is not there, and what it has for this very text
    on this device is not run again. Raises `QgenError` QG851 where it is no such file, QG852 where it cannot be written, and as
    `open_device` does.
    """
    shard = Shard() if shard is None else shard
    numbered = list(enumerate(matrix_requests()))[shard.index - 1 :: shard.count]
    log = None if resume is None else ResumeFile(resume, parse_outcome)
    done_before = {} if log is None else {(outcome.kernel, outcome.device): outcome for outcome in log.entries}
    outcomes: list[Outcome] = []
    resumed = 0
    for done, (number, request) in enumerate(numbered):
        for step, variant in enumerate(kernel_variants(request, number)):
            kernel = compile_request(variant)
            known = done_before.get((kernel.name, device))
            resumed += known is not None
            outcome = known or check_text(kernel, device, _SEEDS * number + _STEP * step)
            outcomes.append(outcome)
            if log is not None and known is None:
                log.add(outcome)
        if progress is not None:
            progress(done + 1, len(numbered))
    elements = sum(outcome.result.elements for outcome in outcomes if outcome.result)
    return Summary(device, len(numbered), len(outcomes), resumed, elements, tuple(outcome for outcome in outcomes if not outcome.ok))


def check_text(kernel: Kernel, device: str, seed: int) -> Outcome:
    """Return the outcome of `check_kernel`, a trap as one of them."""
    try:
        return Outcome(kernel.name, device, check_kernel(kernel, device, seed=seed), None)
    except (InternalError, EvaluationError) as error:
        return Outcome(kernel.name, device, None, str(error))


def parse_outcome(fields: dict[str, Any]) -> Outcome:
    """Return the outcome that a line of the file of what is done holds."""
    result = fields["result"]
    if result is not None:
        first = result["first"]
        example = None if first is None else CounterExample(**first | {"shape": tuple(first["shape"])})
        result = CheckResult(**result | {"first": example})
    return Outcome(**fields | {"result": result})
