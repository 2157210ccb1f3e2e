"""Kernels written by hand, run on each stack: right words, exact sizes, and nothing that is written where it may not be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from qgen.errors import InternalError, QgenError, UnavailableError
from qgen.runtime import Device, open_device
from qgen.runtime.session import Session
from qgen.sidecar.plan import plan_dispatch
from tests.runtime.stacks import LAVAPIPE, OPENGL, STACKS, SWIFTSHADER, open_stack, run_times, words
from tests.sidecar.handmade import PAIRS, TIMES, squares_reversed, times_three

GARBAGE = 0xBEEFDEAD


@pytest.fixture(params=STACKS)
def device(request: pytest.FixtureRequest) -> Device:
    return open_stack(request.param)


@pytest.fixture
def unchecked() -> Device:
    return open_device(SWIFTSHADER, bounds_checks=False)


def edited(old: str, new: str) -> str:
    assert old in TIMES
    return TIMES.replace(old, new)


@pytest.mark.parametrize("canaries", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097])
def test_outputs_are_right_and_of_the_planned_size(device: Device, count: int, canaries: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert np.array_equal(run_times(device, count, canaries=canaries), words(count) * np.uint32(3))


def test_a_folded_dispatch_covers_every_word(device: Device) -> None:
    assert np.array_equal(run_times(device, 64 * 50 + 1, row=7), words(64 * 50 + 1) * np.uint32(3))


@pytest.mark.parametrize("count", [1, 65, 200])
def test_a_pass_reads_what_the_pass_before_wrote(device: Device, count: int) -> None:
    sidecar = squares_reversed()
    plan = plan_dispatch(sidecar, {"x": (count,)})
    found = device.run(PAIRS, sidecar, plan, {"x": words(count).tobytes()}, canaries=True)
    assert list(found) == ["y"]
    assert np.array_equal(np.frombuffer(found["y"], "<u4"), (words(count) * words(count))[::-1])


def test_bindings_lie_in_the_group_that_the_sidecar_names(device: Device) -> None:
    text = TIMES.replace("@group(0)", "@group(2)")
    sidecar = times_three(text)
    for bound in sidecar["passes"][0]["bindings"]:
        bound["group"] = 2
    found = device.run(text, sidecar, plan_dispatch(sidecar, {"x": (70,)}), {"x": words(70).tobytes()}, canaries=True)
    assert np.array_equal(np.frombuffer(found["y"], "<u4"), words(70) * np.uint32(3))


def test_an_empty_tensor_gives_an_empty_output(device: Device) -> None:
    sidecar = times_three()
    assert device.run(TIMES, sidecar, plan_dispatch(sidecar, {"x": (3, 0)}), {"x": b""}) == {"y": b""}


def test_the_length_of_an_array_is_that_of_the_plan(device: Device) -> None:
    lengths = edited("x[i] * 3u", "arrayLength(&x) + 1000u * arrayLength(&y)")
    assert set(run_times(device, 37, lengths).tolist()) == {37037}
    assert set(run_times(device, 37, lengths, canaries=False).tolist()) == {37037}


def test_a_word_that_is_not_written_is_neither_zero_nor_right(device: Device) -> None:
    found = run_times(device, 100, edited("i < params.count", "i + 1u < params.count"))
    assert found[-1] == GARBAGE
    assert np.array_equal(found[:-1], words(99) * np.uint32(3))


def test_a_write_into_an_input_is_seen(device: Device) -> None:
    writes = edited("<storage, read> x", "<storage, read_write> x").replace("y[i] = x[i] * 3u;", "y[i] = 1u; if (i == 7u) { x[i] = 5u; }")
    sidecar = times_three(writes)
    sidecar["passes"][0]["bindings"][0]["access"] = "read_write"
    plan = plan_dispatch(sidecar, {"x": (10,)})
    inputs = {"x": words(10).tobytes()}
    with pytest.raises(
        InternalError, match=f"wrote into `x`, which it only reads: the word at byte 28 was 0x{words(10)[7]:08x} and is 0x00000005"
    ):
        device.run(writes, sidecar, plan, inputs, canaries=True)


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("i + 1u", "wrote after the buffer `y`: the word at byte 0 was 0x3ca35ac5"),
        ("i + 63u", "wrote after the buffer `y`"),
        ("i - 1u", "wrote before the buffer `y`: the word at byte 252 was 0x3ca35ac5"),
    ],
)
def test_a_write_out_of_bounds_is_seen_where_nothing_redirects_it(unchecked: Device, index: str, reason: str) -> None:
    with pytest.raises(InternalError, match=reason):
        run_times(unchecked, 100, edited("y[i]", f"y[{index}]"))
    assert np.array_equal(run_times(unchecked, 100), words(100) * np.uint32(3))


def test_a_device_without_bounds_checks_is_another_one(unchecked: Device) -> None:
    assert unchecked is not open_device(SWIFTSHADER)
    assert unchecked is open_device(SWIFTSHADER, bounds_checks=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("let i", "lett i"),
        ("fn main", "fn other"),
        ("<storage, read> x", "<storage, read_write> x"),
        ("x: array<u32>", "x: array<u32, 999>"),
        ("@binding(2)", "@binding(3)"),
        ("@workgroup_size(64)", "@workgroup_size(512)"),
    ],
)
def test_a_text_that_the_stack_or_the_sidecar_contradicts_is_refused(device: Device, old: str, new: str) -> None:
    with pytest.raises(InternalError, match="refuses the kernel") as caught:
        run_times(device, 100, edited(old, new))
    assert edited(old, new) in str(caught.value)
    assert not device.is_lost
    assert np.array_equal(run_times(device, 100), words(100) * np.uint32(3))


def test_a_limit_beyond_the_default_is_there_for_the_kernel_that_says_so() -> None:
    wide = edited("@workgroup_size(64)", "@workgroup_size(512)").replace("* 64u", "* 512u")
    sidecar = times_three(wide)
    sidecar["requires"]["limits"] |= {"maxComputeInvocationsPerWorkgroup": 512, "maxComputeWorkgroupSizeX": 512}
    plan = plan_dispatch(sidecar, {"x": (100,)})
    found = open_stack(LAVAPIPE).run(wide, sidecar, plan, {"x": words(100).tobytes()})
    assert np.array_equal(np.frombuffer(found["y"], "<u4"), words(100) * np.uint32(3))
    with pytest.raises(UnavailableError, match="needs maxComputeInvocationsPerWorkgroup 512") as caught:
        open_stack(SWIFTSHADER).run(wide, sidecar, plan, {"x": words(100).tobytes()})
    assert caught.value.code == "QG613"


def test_a_feature_is_there_for_the_kernel_that_says_so() -> None:
    half = "enable f16;\n" + edited("x[i] * 3u", "u32(f16(x[i] & 15u) * 3h)")
    sidecar = times_three(half)
    sidecar["requires"]["features"] = ["shader-f16"]
    plan = plan_dispatch(sidecar, {"x": (100,)})
    found = open_stack(LAVAPIPE).run(half, sidecar, plan, {"x": words(100).tobytes()})
    assert np.array_equal(np.frombuffer(found["y"], "<u4"), (words(100) & 15) * np.uint32(3))
    with pytest.raises(UnavailableError, match="shader-f16") as caught:
        open_stack(OPENGL).run(half, sidecar, plan, {"x": words(100).tobytes()})
    assert caught.value.code == "QG613"
    with pytest.raises(InternalError, match="refuses the kernel"):
        run_times(open_stack(LAVAPIPE), 100, half)


def test_a_buffer_too_large_for_the_adapter_is_refused_before_it_is_made() -> None:
    sidecar = times_three()
    plan = plan_dispatch(sidecar, {"x": ((1 << 25) + 1,)})
    with pytest.raises(QgenError, match="a kernel too large for the adapter: the buffer `x` has 134217732 bytes") as caught:
        open_stack(LAVAPIPE).run(TIMES, sidecar, plan, {})
    assert caught.value.code == "QG612"


def test_too_many_workgroups_are_refused(device: Device) -> None:
    sidecar = times_three(row=70000)
    plan = plan_dispatch(sidecar, {"x": (64 * 65536,)})
    with pytest.raises(QgenError, match="65536 × 1 × 1 workgroups") as caught:
        device.run(TIMES, sidecar, plan, {})
    assert caught.value.code == "QG612"


@pytest.mark.parametrize("inputs", [{}, {"x": b""}, {"x": bytes(16)}, {"x": bytes(24)}])
def test_inputs_have_exactly_their_words(device: Device, inputs: dict[str, bytes]) -> None:
    sidecar = times_three()
    with pytest.raises(QgenError) as caught:
        device.run(TIMES, sidecar, plan_dispatch(sidecar, {"x": (5,)}), inputs)
    assert caught.value.code == "QG617"


def test_a_text_that_was_changed_is_refused(device: Device) -> None:
    sidecar = times_three()
    with pytest.raises(QgenError) as caught:
        device.run(edited("3u", "4u"), sidecar, plan_dispatch(sidecar, {"x": (5,)}), {"x": bytes(20)})
    assert caught.value.code == "QG616"


def test_the_pipelines_that_are_kept_are_bounded(device: Device) -> None:
    (session,) = {id(found): found for needs, found in device._sessions.items() if not needs.features and not needs.limits}.values()
    assert isinstance(session, Session)
    for factor in range(70):
        assert np.array_equal(run_times(device, 5, edited("3u", f"{factor}u")), words(5) * np.uint32(factor))
    assert len(session._pipelines) == 64
    again = next(reversed(session._pipelines.values()))
    run_times(device, 9, edited("3u", "69u"))
    assert next(reversed(session._pipelines.values())) is again


@pytest.fixture(params=STACKS)
def lost(request: pytest.FixtureRequest) -> Iterator[Device]:
    device = open_stack(request.param)
    for session in device._sessions.values():
        assert isinstance(session, Session)
        session._native.destroy()
    yield device
    assert not open_stack(request.param).is_lost


def test_a_device_that_is_lost_says_so_and_is_opened_anew(lost: Device) -> None:
    selector = next(stack for stack in STACKS if open_stack(stack) is lost)
    with pytest.raises(UnavailableError) as caught:
        run_times(lost, 5)
    assert caught.value.code == "QG619"
    assert lost.is_lost
    again = open_stack(selector)
    assert again is not lost
    assert np.array_equal(run_times(again, 5), words(5) * np.uint32(3))


def test_a_plan_is_all_that_decides_sizes(device: Device) -> None:
    sidecar = times_three()
    plan = plan_dispatch(sidecar, {"x": (5,)})
    short = dataclasses.replace(plan, sizes={**plan.sizes, "y": 16})
    found = device.run(TIMES, sidecar, short, {"x": words(5).tobytes()}, canaries=True)
    assert len(found["y"]) == 16
