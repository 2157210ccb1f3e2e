"""What was measured, a row a kernel, and what it is held to.

A ratio is the median over rounds of two times of the same round, with the 10th and the 90th of a hundred beside it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from qgen.signatures.tables import DEQUANTIZE
from tests.bench.cases import KNOWN_SCALE, ONNX_CASES, Case

_LEAST_FOR_ORT: Final = 1 << 22
"""Elements from which a case is to be ahead of ONNX Runtime by a factor; below that it is not to be behind."""
_GROUPED: Final = 5.0
_PLAIN: Final = 1.6
_KNOWN_SCALE: Final = 2.5
_OF_COPY_ON_GPU: Final = 0.9
_UNKNOWN_SHAPE: Final = 0.4
_QUANTIZED: Final = ("uint8", "int4")


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median over rounds of one time divided by another of the same round."""

    median: float
    low: float
    high: float


def paired(first: Sequence[float], second: Sequence[float]) -> Ratio:
    """Return the ratio of the first's times to the second's, round by round."""
    ratios = sorted(one / other for one, other in zip(first, second, strict=True))
    last = len(ratios) - 1
    return Ratio(statistics.median(ratios), ratios[last // 10], ratios[last - last // 10])


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel on one adapter.

    `vs_x` is the time of x divided by that of the kernel: above 1, the kernel is faster. `ms` are medians.
    """

    stack: str
    adapter: str
    is_software: bool
    case: str
    form: str
    data: str
    mode: str
    count: int
    rounds: int
    nbytes: int
    """Bytes read and written, each once."""
    ms: float
    twin_ms: float
    copy_ms: float
    vs_twin: Ratio
    vs_copy: Ratio
    vs_twin_processor: float | None = None
    """`vs_twin` by the time on processors, of a software adapter: it stays much the same while others use the machine."""
    vs_fast: float | None = None
    """The time of this kernel divided by that of the same in `fast`."""
    ort_ms: float | None = None
    vs_ort: Ratio | None = None
    ort_wrong: int | None = None
    """Elements that ONNX Runtime computes otherwise than the oracle."""
    compile_ms: float | None = None
    """What the driver takes for a text that it has not seen."""
    wrong: int = 0
    """Words, or elements in a browser, that are not the oracle's."""

    @property
    def gb_per_s(self) -> float:
        """How fast bytes move, in 10^9 a second."""
        return self.nbytes / self.ms / 1e6

    @property
    def copy_gb_per_s(self) -> float:
        """How fast the copy moves as many bytes."""
        return self.nbytes / self.copy_ms / 1e6


@dataclass(frozen=True, slots=True)
class Goal:
    """The least that a ratio of a row is to be; `measure` is `vs_twin`, `vs_copy` or `vs_ort`."""

    measure: str
    least: float
    found: float

    @property
    def is_met(self) -> bool:
        """Whether the row reaches it."""
        return self.found >= self.least

    def __str__(self) -> str:
        """Return the goal in words."""
        what = {"vs_twin": "of the twin", "vs_copy": "of the copy", "vs_ort": "times as fast as ONNX Runtime"}[self.measure]
        return f"{self.found:.2f} {what}, at least {self.least:.2f} is wanted"


def goals_of(row: Row, case: Case) -> tuple[Goal, ...]:
    """Return what `row`, which is of `case`, is held to: nothing for modes other than `exact`, and for what is reported beside."""
    if row.mode != "exact":
        return ()
    goals = []
    if row.vs_ort is not None and row.form in {"baked", KNOWN_SCALE} and row.data == "random":
        is_grouped = case.granularity.kind != "per_tensor" or case.quantized.bits <= 4
        least = (_GROUPED if is_grouped else _KNOWN_SCALE if row.form == KNOWN_SCALE else _PLAIN) if row.count >= _LEAST_FOR_ORT else 1.0
        goals.append(Goal("vs_ort", least, row.vs_ort.median))
    if not row.is_software:
        return (*goals, Goal("vs_copy", _OF_COPY_ON_GPU, row.vs_copy.median))
    share = _share_of_twin(row, case)
    return (*goals, Goal("vs_twin", share, row.vs_twin.median)) if share else tuple(goals)


def _share_of_twin(row: Row, case: Case) -> float | None:
    is_lavapipe = "llvmpipe" in row.adapter.lower() and row.stack.startswith("wgpu")
    is_swiftshader = "swiftshader" in f"{row.stack} {row.adapter}".lower()
    is_table = case in ONNX_CASES and case.quantized.bits <= 8
    is_quantize = case.is_quantize and case.x == "float32" and case.quantized.name in _QUANTIZED
    if row.form == KNOWN_SCALE:
        return (0.65 if is_lavapipe else 0.6 if is_swiftshader else None) if is_table and row.data == "random" else None
    if row.form != "baked":
        return _UNKNOWN_SHAPE if is_lavapipe and (is_table or is_quantize) and row.data == "random" else None
    if is_table and row.data == "random":
        return 0.65 if is_lavapipe else 0.4 if is_swiftshader else None
    if is_lavapipe and case.op == DEQUANTIZE and case.y == "float16" and row.data == "random":
        return 0.6
    return 0.7 if is_lavapipe and is_quantize and row.data in {"random", "half-zero"} else None


def summarise(
    stamps: Mapping[str, Sequence[float]],
    arm: str,
    copies: Sequence[str],
    fast: str | None,
    **known: Any,  # noqa: ANN401 - fields of `Row`
) -> Row:
    """Return the row of the kernel `arm`, given the milliseconds of each arm in each round; the quickest of `copies` counts."""
    copy = min(copies, key=lambda name: statistics.median(stamps[name]))
    return Row(
        ms=statistics.median(stamps[arm]),
        twin_ms=statistics.median(stamps["twin"]),
        copy_ms=statistics.median(stamps[copy]),
        vs_twin=paired(stamps["twin"], stamps[arm]),
        vs_copy=paired(stamps[copy], stamps[arm]),
        vs_fast=None if fast is None else paired(stamps[arm], stamps[fast]).median,
        **known,
    )


def fast_of(form: str, kernels: Container[tuple[str, str]]) -> str | None:
    """Return the arm of `fast` with which `exact` of `form` is compared, if it is among `kernels`."""
    other = "baked" if form == KNOWN_SCALE else form  # what is known of the scale changes nothing of `fast`
    return f"{other} fast" if (other, "fast") in kernels else None


def share_of_processor(processor: Mapping[str, Sequence[float]], arm: str) -> float:
    """Return the share of the twin's speed by time on processors, less what a dispatch takes that does `nothing`."""
    nothing = statistics.median(processor["nothing"])
    return paired([time - nothing for time in processor["twin"]], [time - nothing for time in processor[arm]]).median


def to_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON has them, with what follows from them."""
    return [
        {key: _rounded(value) for key, value in (asdict(row) | {"gb_per_s": row.gb_per_s, "copy_gb_per_s": row.copy_gb_per_s}).items()}
        for row in rows
    ]


def _rounded(value: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """Return numbers with four digits: no timing has more."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if not isinstance(value, float) or not value or not math.isfinite(value):
        return value
    return round(value, 3 - math.floor(math.log10(abs(value))))
