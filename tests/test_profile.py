"""Profiles: written and read again, the schedule that a kernel gets from one, and what is no profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qgen
from qgen.errors import QgenError
from qgen.profile import Entry, Profile, Schedule, describe_kernel, print_profile, read_profile
from qgen.request import Request, make_request
from tests.goldens import Goldens

HEAD = 'format = 1\nadapter = "a"\nbackend = "b"\ntarget = "webgpu"\n'


def request(shape: tuple[int, ...] | None = None, **choices: Any) -> Request:  # noqa: ANN401 - whatever `make_request` takes
    return make_request("DequantizeLinear", **({"x": "uint8", "scale": "float16", "shape": shape} | choices))


def profile(*entries: tuple[Request, Schedule]) -> Profile:
    return Profile('An "adapter" of\\many\nlines', "wgpu:vulkan", "webgpu", tuple(Entry(describe_kernel(r), s, 0.75) for r, s in entries))


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"shape": ()},
        {"shape": (3, 0, 5), "granularity": qgen.per_axis(1)},
        {"granularity": qgen.blocked(-1, 32), "zero_point": True, "opset": 21},
        {"x": "float8e4m3fn", "scale": "float8e8m0", "y": "bfloat16", "opset": 28, "numerics": "strict"},
    ],
)
def test_what_is_written_is_read_again(choices: dict[str, Any], tmp_path: Path) -> None:
    written = profile((request(**choices), Schedule(32, 128)), (request((7,)), Schedule(4, 1)))
    (tmp_path / "p.toml").write_text(print_profile(written), encoding="utf-8")
    assert read_profile(tmp_path / "p.toml") == written
    assert written.find(request(**choices)) == Schedule(32, 128)


def test_the_text_of_a_profile(golden: Goldens) -> None:
    golden.check("profile/profile.toml", print_profile(profile((request((64, 128), granularity=qgen.blocked(1, 32)), Schedule(32, 128)))))


def test_a_kernel_gets_its_own_schedule_else_that_of_the_nearest_size() -> None:
    small, large, uniform = Schedule(8, 64), Schedule(64, 64), Schedule(16, 256)
    found = profile((request((100,)), small), (request((1 << 20,)), large), (request(), uniform))
    assert found.find(request((100,))) == small
    assert found.find(request((50, 7))) == small
    assert found.find(request((1 << 18,))) == large
    assert found.find(request(())) == small
    assert found.find(request()) == uniform
    assert found.find(request(opset=21)) == uniform, "the opset changes nothing of this kernel"


def test_kernels_that_compute_something_else_are_not_taken_for_one_another() -> None:
    found = profile((request((64, 64), granularity=qgen.per_axis(0)), Schedule(8, 64)))
    assert found.find(request((2, 64, 64), granularity=qgen.per_axis(-2))) == Schedule(8, 64)
    others: tuple[dict[str, Any], ...] = (
        {"granularity": qgen.per_axis(1)},
        {"granularity": qgen.blocked(0, 32)},
        {"granularity": qgen.per_axis(0), "x": "int8"},
        {"granularity": qgen.per_axis(0), "zero_point": True},
        {"granularity": qgen.per_axis(0), "numerics": "strict"},
        {"granularity": qgen.per_axis(0), "shape": None},
    )
    for choices in others:
        assert found.find(request(**({"shape": (64, 64)} | choices))) is None


def test_a_compiled_kernel_has_the_schedule_and_the_same_results(tmp_path: Path) -> None:
    found = profile((request((4096,)), Schedule(32, 128)))
    (tmp_path / "p.toml").write_text(print_profile(found), encoding="utf-8")
    tuned = qgen.compile("DequantizeLinear", x="uint8", scale="float16", shape=(4096,), profile=tmp_path / "p.toml")
    plain = qgen.compile("DequantizeLinear", x="uint8", scale="float16", shape=(4096,))
    assert "@workgroup_size(128)" in tuned.wgsl
    assert "an invocation computes 32 elements" in tuned.wgsl
    assert tuned.request == replace(plain.request, target=tuned.request.target)
    assert qgen.compile("QuantizeLinear", x="float32", profile=found).wgsl == qgen.compile("QuantizeLinear", x="float32").wgsl


@pytest.mark.parametrize("target", ["software", "webgpu:lanes=32"])
def test_a_profile_of_another_target_is_refused(target: str) -> None:
    with pytest.raises(QgenError, match="the profile is for the target `webgpu`") as caught:
        profile((request(), Schedule(8, 64))).apply(request(target=target))
    assert caught.value.code == "QG108"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("x = ", "QG114", "this is no profile"),
        ("", "QG114", "`format` is missing"),
        (HEAD.replace("1", "true"), "QG114", "`format` is missing, or no int"),
        (HEAD.replace("1", "2"), "QG114", "format 2, and this qgen reads 1"),
        (HEAD + "kernel = 3", "QG114", "`kernel` is no list of tables"),
        (HEAD + "[kernel]\nlanes = 8", "QG114", "`kernel` is no list of tables"),
        (HEAD + "[[kernel]]\nlanes = 8", "QG114", "`workgroup_size` is missing"),
        (HEAD + "[[kernel]]\nlanes = 8\nworkgroup_size = 64.0\ntime = 1.0", "QG114", "`workgroup_size` is missing, or no int"),
        (HEAD + "[[kernel]]\nlanes = 7\nworkgroup_size = 64\ntime = 1.0", "QG103", "`lanes` is a multiple of 4"),
        (HEAD + "[[kernel]]\nlanes = 8\nworkgroup_size = -1\ntime = 1.0", "QG103", "`workgroup_size`"),
        (HEAD.replace("webgpu", "webgl") + "[[kernel]]\nlanes = 8\nworkgroup_size = 64\ntime = 1.0", "QG103", "there is no target `webgl`"),
    ],
)
def test_what_is_no_profile(text: str, code: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    with pytest.raises(QgenError, match=said) as caught:
        read_profile(tmp_path / "p.toml")
    assert caught.value.code == code


def test_a_profile_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(QgenError, match="this is no profile") as caught:
            read_profile(path)
        assert caught.value.code == "QG114"
    (tmp_path / "p.toml").write_bytes(b"\xff")
    with pytest.raises(QgenError, match="this is no profile"):
        read_profile(tmp_path / "p.toml")


def test_the_schedule_of_a_kernel_for_known_scales_is_its_own() -> None:
    words: dict[str, Any] = {"x": "uint8", "scale": "float32", "shape": (4096,), "known_scale": np.array(0.5, np.float32)}
    plain = qgen.compile("DequantizeLinear", **words)
    found = profile((plain.request, Schedule(16, 32)), (request((4096,), scale="float32"), Schedule(8, 64)))
    assert qgen.compile("DequantizeLinear", **words, profile=found).request.target.lanes == 16
