"""The search for schedules: what is timed, on which adapters, and that what is wrong is never chosen."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import qgen
from qgen.check import check_kernel
from qgen.check.compare import CheckResult
from qgen.errors import QgenError, UnavailableError
from qgen.kernel import Kernel
from qgen.profile import Schedule, describe_kernel
from qgen.runtime import Device, TimedRun, open_device
from qgen.tune import search, tune_kernels
from qgen.tune.data import timing_inputs, timing_shape
from tests.goldens import Goldens

LAVAPIPE = "wgpu:llvmpipe"
SWIFTSHADER = "dawn:swiftshader"


def dequantize(**choices: Any) -> Kernel:  # noqa: ANN401 - whatever `compile` takes
    return qgen.compile("DequantizeLinear", **({"x": "uint8", "scale": "float32", "name": "k"} | choices))


def with_times(monkeypatch: pytest.MonkeyPatch, time_of: Callable[[Schedule, int], int]) -> list[list[Schedule]]:
    """Let the clock show `time_of` a schedule and the number of the run; the schedules of each run are collected in what is returned."""
    asked: list[list[Schedule]] = []

    def time(_self: Device, runs: list[TimedRun], rounds: int, done: Callable[[int], None]) -> list[list[int]]:
        schedules = []
        for run in runs:
            options = run.sidecar["target"]["options"]
            schedules.append(Schedule(options.get("lanes", 64), options.get("workgroup_size", 128)))
        asked.append(schedules)
        for turn in range(rounds):
            done(turn + 1)
        return [[time_of(schedule, len(asked))] * rounds for schedule in schedules]

    monkeypatch.setattr(Device, "time", time)
    return asked


@pytest.mark.parametrize("device", [LAVAPIPE, SWIFTSHADER])
def test_an_adapter_times_what_it_runs(device: str) -> None:
    little, much = dequantize(shape=(64,)), dequantize(shape=(1 << 22,))
    done: list[int] = []
    ticks = open_device(device).time([search._timed(kernel) for kernel in (little, much)], 5, done.append)
    assert [len(each) for each in ticks] == [5, 5]
    assert done == [1, 2, 3, 4, 5]
    assert statistics.median(ticks[0]) * 2 < statistics.median(ticks[1]), "four million elements cost more than 64"
    assert statistics.median(ticks[0]) > 100_000, "what is too short for the clock is repeated"


@pytest.mark.parametrize("device", [LAVAPIPE, SWIFTSHADER])
def test_a_kernel_is_tuned_on_an_adapter(device: str) -> None:
    kernel = dequantize(shape=(1 << 16,))
    (tuned,) = tune_kernels([kernel], device, rounds=3)
    assert Schedule(64, 128) in tuned.ratios
    assert len(tuned.ratios) == 12
    assert tuned.entry.key == describe_kernel(kernel.request)
    assert tuned.is_default == (tuned.entry.schedule == Schedule(64, 128))
    assert 0 < tuned.entry.time <= search.CLEARLY or tuned.is_default


def test_the_fastest_schedule_is_chosen_and_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    best, own = Schedule(32, 128), Schedule(64, 128)
    asked = with_times(monkeypatch, lambda schedule, run: (500 if run == 1 else 800) if schedule == best else 1000)
    shown: list[tuple[int, int]] = []
    (tuned,) = tune_kernels([dequantize(shape=(64,))], LAVAPIPE, rounds=1, show=lambda done, of: shown.append((done, of)))
    assert asked[0][0] == own
    assert asked[1] == [own, best]
    assert tuned.entry.schedule == best
    assert tuned.entry.time == 0.8
    assert shown == [(1, 2), (2, 2)]


@pytest.mark.parametrize("again", [990, 1500])
def test_what_is_not_clearly_faster_is_not_chosen(again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lucky = Schedule(64, 256)
    with_times(monkeypatch, lambda schedule, run: (900 if run == 1 else again) if schedule == lucky else 1000)
    (tuned,) = tune_kernels([dequantize(shape=(64,))], LAVAPIPE, rounds=1)
    assert tuned.is_default
    assert tuned.entry.schedule == Schedule(64, 128)


def test_a_schedule_that_gives_a_wrong_bit_is_refused(monkeypatch: pytest.MonkeyPatch, golden: Goldens) -> None:
    def check(kernel: Kernel, device: str, *, rounds: int) -> CheckResult:
        result = check_kernel(kernel, device, rounds=rounds)
        return replace(result, mismatches=1) if kernel.request.target.lanes == 128 else result

    monkeypatch.setattr(search, "check_kernel", check)
    with pytest.raises(QgenError, match="a schedule gives a wrong result") as caught:
        list(tune_kernels([dequantize(shape=(64,))], LAVAPIPE, rounds=1))
    assert caught.value.code == "QG109"
    golden.check("errors/QG109.err", f"{caught.value}\n")


@pytest.mark.parametrize(
    ("choices", "said"), [({"target": "webgpu:lanes=8"}, "whose options are what is tuned"), ({"shape": (0,)}, "has no elements")]
)
def test_kernels_that_cannot_be_tuned(choices: dict[str, Any], said: str) -> None:
    with pytest.raises(QgenError, match=said) as caught:
        list(tune_kernels([dequantize(**choices)], LAVAPIPE, rounds=1))
    assert caught.value.code == "QG108"


def test_what_is_driven_from_javascript_takes_no_times() -> None:
    with pytest.raises(UnavailableError) as caught:
        list(tune_kernels([dequantize(shape=(64,))], "node", rounds=1))
    assert caught.value.code in {"QG613", "QG621"}


@pytest.mark.parametrize(
    ("op", "choices"),
    [
        ("QuantizeLinear", {"x": "float32", "y": "int4", "granularity": qgen.blocked(-1, 32), "zero_point": True}),
        ("QuantizeLinear", {"x": "bfloat16", "y": "float8e5m2", "zero_point": True}),
        ("QuantizeLinear", {"x": "int32", "scale": "float32", "granularity": qgen.per_axis(2)}),
        ("DequantizeLinear", {"x": "float4e2m1", "scale": "float8e8m0", "y": "float16", "granularity": qgen.blocked(-3, 16)}),
        ("DequantizeLinear", {"x": "float8e4m3fn", "scale": "float32", "granularity": qgen.per_axis(-2)}),
        ("DynamicQuantizeLinear", {"x": "float32"}),
    ],
)
def test_kernels_are_timed_on_ordinary_inputs(op: str, choices: dict[str, Any]) -> None:
    kernel = qgen.compile(op, **choices)
    shape = timing_shape(kernel)
    assert np.prod(shape) == 1 << 20
    inputs = timing_inputs(kernel, shape)
    assert set(inputs) == set(kernel.inputs)
    kernel.plan({name: array.shape for name, array in inputs.items()})
    for name, array in inputs.items():
        values = array.astype(np.float64)
        assert np.isfinite(values).all(), name
        assert (values != 0).any() or name.endswith("zero_point"), name
