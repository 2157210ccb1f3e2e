"""The self-test: whether an adapter does what the mode `exact` relies on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from qgen.conform.bounds import OPERATIONS, Bounds, find_bounds
from qgen.conform.operands import Pair, make_operands
from qgen.conform.probe import NAME, OPERANDS, Probe, build_probe
from qgen.evaluate import IEEE, ArithmeticModel, evaluate_program
from qgen.files import save_files
from qgen.kernel import CPU
from qgen.runtime import open_device
from qgen.sidecar.plan import plan_dispatch
from qgen.sidecar.text import print_sidecar

Words = NDArray[np.uint32]
F32 = NDArray[np.float32]

VECTORS: Final = f"{NAME}.vectors.json"
"""The file with operands and bounds, for other hosts."""
_NAN: Final = 0x7FC00000
_NEAREST: Final = [operator for operator in OPERATIONS.values() if operator != "/"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A result that is not right, all as words."""

    operation: str
    a: int
    b: int
    got: int
    bounds: Bounds

    def __str__(self) -> str:
        """Return the failure in one line."""
        low, high = self.bounds
        wanted = f"{low:#010x}" if low == high else f"one from {low:#010x} to {high:#010x}"
        return f"{self.a:#010x} {OPERATIONS[self.operation]} {self.b:#010x} gives {self.got:#010x} instead of {wanted}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the self-test found: by operation, how many results were judged and how many of them are wrong; the first wrong one."""

    device: str
    tested: Mapping[str, int]
    wrong: Mapping[str, int]
    first: Failure | None

    @property
    def ok(self) -> bool:
        """Whether the adapter does what `exact` relies on."""
        return self.first is None

    def __str__(self) -> str:
        """Return the verdict in one line."""
        total = sum(self.tested.values())
        if self.first is not None:
            failed = ", ".join(f"{OPERATIONS[name]} {count:,} of {self.tested[name]:,}" for name, count in self.wrong.items() if count)
            return f"{self.device}: `exact` cannot rely on this device, take `strict`; wrong are {failed}; first {self.first}"
        rounded = f"f32 {' '.join(_NEAREST)} round to nearest even and / is within 2.5 ULP"
        return f"{self.device}: {rounded} in all {total:,} results, as `exact` relies on"


@cache
def _pairs() -> tuple[Pair, ...]:
    return make_operands()


@cache
def _bounds(operation: str) -> tuple[Bounds | None, ...]:
    return tuple(find_bounds(operation, a, b) for a, b in _pairs())


@cache
def _ends(operation: str) -> tuple[F32, F32]:
    """Return the least and the greatest right results, NaN where nothing is relied on."""
    least, greatest = (
        np.array([_NAN if bounds is None else bounds[end] for bounds in _bounds(operation)], np.uint32).view(np.float32) for end in (0, 1)
    )
    return least, greatest


def selftest_kernel() -> Probe:
    """Return the kernel that the self-test runs."""
    return build_probe(len(_pairs()))


def run_selftest(device: str, model: ArithmeticModel = IEEE) -> Verdict:
    """Run the self-test on `device`, as for `open_device`; on `cpu` the evaluator runs it under `model`.

    Raises what `open_device` and the device's `run` raise.
    """
    pairs, probe = _pairs(), selftest_kernel()
    words = {name: np.array([pair[at] for pair in pairs], np.uint32) for at, name in enumerate(OPERANDS)}
    plan = plan_dispatch(probe.sidecar, {name: array.shape for name, array in words.items()})
    if device == CPU:
        sizes = dict.fromkeys(OPERATIONS, len(pairs))
        results = evaluate_program(probe.program, words, sizes, {}, [step.dispatch for step in plan.passes], model)
        return judge_results(f"the evaluator ({model.name})", results)
    adapter = open_device(device)
    found = adapter.run(probe.wgsl, probe.sidecar, plan, {name: array.tobytes() for name, array in words.items()}, canaries=True)
    return judge_results(f"{adapter.name} ({adapter.backend})", {name: np.frombuffer(data, np.uint32) for name, data in found.items()})


def judge_results(device: str, results: Mapping[str, Words]) -> Verdict:
    """Return the verdict on the words of each operation's results."""
    tested: dict[str, int] = {}
    wrong: dict[str, int] = {}
    first = None
    for name in OPERATIONS:
        least, greatest = _ends(name)
        found = results[name].view(np.float32)
        failed = np.flatnonzero(~np.isnan(least) & ~((least <= found) & (found <= greatest)))
        tested[name], wrong[name] = int(np.count_nonzero(~np.isnan(least))), failed.size
        if first is None and failed.size:
            at = int(failed[0])
            first = Failure(
                name, *_pairs()[at], int(results[name][at]), (int(least.view(np.uint32)[at]), int(greatest.view(np.uint32)[at]))
            )
    return Verdict(device, tested, wrong, first)


def emit_selftest(folder: Path) -> tuple[Path, Path, Path]:
    """Write the kernel, its sidecar, and the operands with the bounds of each result into `folder`, and return the paths.

    In the last file a result is right where `least` is null, or where it lies from `least` to `greatest`, all three read as f32. Raises
    `QgenError` QG110 where the folder cannot be written.
    """
    probe = selftest_kernel()
    texts = {f"{NAME}.wgsl": probe.wgsl, f"{NAME}.json": print_sidecar(probe.sidecar), VECTORS: _print_vectors()}
    wgsl, sidecar, vectors = save_files(folder, texts)
    return wgsl, sidecar, vectors


def _print_vectors() -> str:
    lists: dict[str, Any] = {name: [pair[at] for pair in _pairs()] for at, name in enumerate(OPERANDS)}
    for name in OPERATIONS:
        for at, end in enumerate(("least", "greatest")):
            lists[f"{name}.{end}"] = [None if bounds is None else bounds[at] for bounds in _bounds(name)]
    rows = ",\n".join(f'  "{name}": [{", ".join(_json(word) for word in words)}]' for name, words in lists.items())
    return f'{{\n "format": "qgen.vectors",\n "format_version": 1,\n "kernel": "{NAME}.json",\n "words": {{\n{rows}\n }}\n}}\n'


def _json(word: int | None) -> str:
    return "null" if word is None else str(word)
