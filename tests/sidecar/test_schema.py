"""The JSON Schema of sidecars takes those written by hand and nothing beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from qgen.sidecar.formulas import OPERATIONS
from tests.sidecar.handmade import dequantize_per_axis, squares_reversed, times_three

SCHEMA: dict[str, Any] = json.loads((files("qgen.sidecar") / "schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("build", [times_three, squares_reversed, dequantize_per_axis])
def test_sidecars_written_by_hand_are_taken(build: Callable[[], dict[str, Any]]) -> None:
    VALIDATOR.validate(build())


def _objects(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, part in value.items():
            yield from _objects(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _objects(part, (*path, index))


_FREE = {("let",), ("chunks", "let"), ("structs",), ("op", "attributes"), ("target", "options"), ("requires", "limits")}
"""Where the names are the kernel's own."""


def test_no_object_takes_an_unknown_key_and_none_does_without_a_known_one() -> None:
    whole = dequantize_per_axis()
    paths = [path for path, _ in _objects(whole) if path not in _FREE]
    assert len(paths) > 20
    for path in paths:
        for key in [*_reach(whole, path), "surplus"]:
            changed = dequantize_per_axis()
            part = _reach(changed, path)
            if key == "surplus":
                part[key] = 1
            else:
                del part[key]
            assert not VALIDATOR.is_valid(changed), (path, key)


def _reach(value: Any, path: tuple[object, ...]) -> dict[str, Any]:  # noqa: ANN401 - JSON has no narrower type
    for key in path:
        value = value[key]
    assert isinstance(value, dict)
    return value


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "a format of another kind": lambda s: s.update(format="other"),
    "a later version": lambda s: s.update(format_version=2),
    "a name in upper case": lambda s: s.update(name="Handmade"),
    "a path as a file": lambda s: s["passes"][0]["wgsl"].update(file="../x.wgsl"),
    "a short digest": lambda s: s["passes"][0]["wgsl"].update(sha256="abc"),
    "an unknown role": lambda s: s["buffers"][0].update(role="weights"),
    "a tensor with a struct": lambda s: s["buffers"][0].update(struct="Params"),
    "a uniform with an element": lambda s: s["buffers"][2].update(element={}),
    "a uniform that is written": lambda s: s["passes"][0]["bindings"][2].update(access="read_write"),
    "a field that is no u32": lambda s: s["structs"]["Params"]["fields"][0].update(type="f32"),
    "an unknown operation": lambda s: s["let"].update(N=["pow", 2, 3]),
    "too few operands": lambda s: s["let"].update(N=["add", 2]),
    "too many operands": lambda s: s["let"].update(N=["sub", 3, 2, 1]),
    "a tensor that is none": lambda s: s["let"].update(N=["numel", 3]),
    "one tensor for two": lambda s: s["let"].update(N=["same_dims_except", "x", 1]),
    "a number for the second tensor": lambda s: s["let"].update(N=["same_dims_except", "x", 1, 1]),
    "a fraction": lambda s: s["let"].update(N=1.5),
    "code": lambda s: s["let"].update(N="a + b"),
    "two workgroup counts": lambda s: s["passes"][0]["dispatch"].pop(),
    "a negative shape": lambda s: s.update(shape=[-1]),
    "an unknown mode": lambda s: s["numerics"].update(mode="loose"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused(case: str) -> None:
    changed = times_three()
    WRONG[case](changed)
    assert not VALIDATOR.is_valid(changed)


def test_the_schema_lists_the_operations() -> None:
    listed: set[str] = set()
    for _, part in _objects(SCHEMA["$defs"]["formula"]):
        listed |= {part["const"]} if "const" in part else set(part.get("enum", []))
    assert listed == set(OPERATIONS)
