"""Sidecars against the texts they describe: as an independent library reads these, and as both engines derive layouts from them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest

import qgen
from qgen.check import matrix_requests
from qgen.kernel import Kernel
from qgen.runtime.limits import read_needs
from qgen.runtime.session import Session
from tests.conformance.sample import factors
from tests.runtime.stacks import LAVAPIPE, SWIFTSHADER, open_stack
from tests.sidecar.samples import MODES, sample_kernels
from tests.sidecar.test_schema import VALIDATOR

_SCRIPT: Final = Path(__file__).parent / "reflect.mjs"
_SAMPLED: Final = 200
_LAID_OUT: Final = 30
_SECONDS: Final = 300


@cache
def kernels() -> tuple[Kernel, ...]:
    """Return the sample, kernels whose host has chosen what it may choose, and kernels of several passes."""
    chosen = [
        qgen.compile(
            "QuantizeLinear", x="float32", y="int8", group=3, entry_point="quantize", name="chosen", target="webgpu:workgroup_size=128"
        ),
        qgen.compile("DequantizeLinear", x="uint4", shape=(3, 0, 5), granularity=qgen.blocked(-1, 2), zero_point=True, group=1),
        qgen.compile("DequantizeLinear", x="int8", shape=(64, 1000), target="webgpu:max_workgroups_per_dimension=7,workgroup_size=32"),
    ]
    reducing = [
        qgen.compile("DynamicQuantizeLinear", x="float32", shape=shape, granularity=granularity, numerics=mode, group=group)
        for mode, group in (("exact", 0), ("strict", 2))
        for granularity in (qgen.per_tensor(), qgen.per_axis(-1), qgen.blocked(0, 3))
        for shape in (None, (5, 7))
    ]
    return (*sample_kernels(_SAMPLED, seed=11), *chosen, *reducing)


@cache
def reflections() -> tuple[dict[str, Any], ...]:
    """Return what wgsl_reflect finds in each text, from one Node process."""
    texts = json.dumps([kernel.wgsl for kernel in kernels()])
    done = subprocess.run(["node", _SCRIPT], input=texts, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == len(kernels())
    return tuple(found)


def pairs() -> zip[tuple[Kernel, dict[str, Any]]]:
    return zip(kernels(), reflections(), strict=True)


def test_the_sample_has_every_choice_in_each_mode_and_form() -> None:
    assert len({kernel.wgsl for kernel in kernels()}) == len(kernels()) > 2 * _SAMPLED
    every = {pair for request in matrix_requests() for pair in factors(request).items()}
    assert {pair for kernel in kernels() if len(kernel.inputs) > 1 for pair in factors(kernel.request).items()} == every
    forms = {(kernel.request.mode, kernel.request.shape is None) for kernel in kernels()}
    assert forms == {(mode, uniform) for mode in MODES for uniform in (True, False)}


def test_sidecars_meet_the_schema() -> None:
    assert [kernel.name for kernel in kernels() if not VALIDATOR.is_valid(kernel.sidecar)] == []
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(kernels()[0].sidecar | {"surplus": 1})


def test_entry_points_and_workgroup_sizes_are_those_of_the_text() -> None:
    for kernel, found in pairs():
        said = [(step["entry_point"], step["workgroup_size"]) for step in kernel.sidecar["passes"]]
        assert sorted(said) == sorted((entry["name"], entry["workgroupSize"]) for entry in found["entries"]), kernel.name
        assert (found["overrides"], found["others"]) == ([], 0)


def test_bindings_are_those_of_the_text() -> None:
    for kernel, found in pairs():
        entries = {entry["name"]: entry["resources"] for entry in found["entries"]}
        variables = []
        for step in kernel.sidecar["passes"]:
            said = [
                (each["group"], each["binding"], each["buffer"], each["address_space"], each["access"], each["wgsl_type"])
                for each in step["bindings"]
            ]
            read = [
                (each["group"], each["binding"], each["name"], each["space"], each["access"], each["type"])
                for each in entries[step["entry_point"]]
            ]
            # Where a function has a parameter of a buffer's name, wgsl_reflect takes it for the buffer; engines do not (see below).
            hidden = {param.name for function in kernel.compiled.legal.functions for param in function.params}
            surplus = set(read) - set(said) if len(kernel.sidecar["passes"]) > 1 else set()
            assert {name for _, _, name, *_ in surplus} <= hidden, kernel.name
            assert sorted(said) == sorted(set(read) - surplus), kernel.name
            assert len({(group, binding) for group, binding, *_ in said}) == len(said)
            variables += [name for _, _, name, *_ in said]
        assert set(variables) == set(found["variables"]), kernel.name


def test_buffers_that_are_never_bound_are_the_ignored_ones() -> None:
    for kernel in kernels():
        bound = {each["buffer"] for step in kernel.sidecar["passes"] for each in step["bindings"]}
        roles = {buffer["name"]: buffer["role"] for buffer in kernel.sidecar["buffers"]}
        assert {name for name, role in roles.items() if role != "ignored"} == bound, kernel.name
    assert any(buffer["role"] == "ignored" for kernel in kernels() for buffer in kernel.sidecar["buffers"])


def test_structs_have_the_sizes_and_offsets_of_the_text() -> None:
    count = 0
    for kernel, found in pairs():
        structs = {struct["name"]: struct for struct in found["structs"]}
        uniforms = {buffer["struct"]: buffer["size_bytes"] for buffer in kernel.sidecar["buffers"] if buffer["role"] == "uniform"}
        assert set(uniforms) == set(kernel.sidecar["structs"])
        for name, said in kernel.sidecar["structs"].items():
            read = structs[name]
            assert (said["size"], said["align"], uniforms[name]) == (read["size"], read["align"], read["size"]), kernel.name
            assert [(field["name"], field["type"], field["offset"]) for field in said["fields"]] == [
                (member["name"], member["type"], member["offset"]) for member in read["members"]
            ], kernel.name
            count += 1
    assert count >= _SAMPLED


def test_digests_are_those_of_the_text() -> None:
    for kernel in kernels():
        digest = hashlib.sha256(kernel.wgsl.encode()).hexdigest()
        assert {step["wgsl"]["sha256"] for step in kernel.sidecar["passes"]} == {digest}
        assert {step["wgsl"]["file"] for step in kernel.sidecar["passes"]} == {f"{kernel.name}.wgsl"}


@pytest.mark.parametrize("stack", [LAVAPIPE, SWIFTSHADER])
def test_derived_layouts_take_exactly_the_bindings(stack: str) -> None:
    device = open_stack(stack)
    some = [*kernels()[: 2 * _LAID_OUT], *kernels()[2 * _SAMPLED :]]
    assert sum(len(kernel.sidecar["passes"]) > 1 for kernel in some) == 12
    for kernel in some:
        session = device._session(read_needs(kernel.sidecar["requires"]))
        assert isinstance(session, Session)
        module = session._native.create_shader_module(code=kernel.wgsl)
        for step in kernel.sidecar["passes"]:
            pipeline = session._native.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": step["entry_point"]}
            )
            for group in sorted({each["group"] for each in step["bindings"]}):
                bindings = [each for each in step["bindings"] if each["group"] == group]
                layout = pipeline.get_bind_group_layout(group)
                _bind(session, layout, bindings)
                for wrong in (bindings[1:], [*bindings, bindings[-1] | {"binding": len(bindings)}], _with_other_usage(bindings)):
                    with pytest.raises(session._module.GPUValidationError):
                        _bind(session, layout, wrong)


def _bind(session: Session, layout: Any, bindings: list[dict[str, Any]]) -> None:  # noqa: ANN401 - the API has no types
    usage = session._module.BufferUsage
    kinds = {"storage": usage.STORAGE, "uniform": usage.UNIFORM}
    buffers = [session._native.create_buffer(size=64, usage=kinds[each["address_space"]]) for each in bindings]
    entries = [
        {"binding": each["binding"], "resource": {"buffer": buffer, "offset": 0, "size": 64}}
        for each, buffer in zip(bindings, buffers, strict=True)
    ]
    session._native.create_bind_group(layout=layout, entries=entries)
    for buffer in buffers:
        buffer.destroy()


def _with_other_usage(bindings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    other = {"storage": "uniform", "uniform": "storage"}
    last = bindings[-1]
    return [*bindings[:-1], last | {"address_space": other[last["address_space"]]}]
