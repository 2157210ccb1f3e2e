"""Packages as a host loads them: `hub.mjs` renders a case, and Dawn runs what it renders."""

from __future__ import annotations

import hashlib
import json
import subprocess
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from qgen.arrays import pack_words, unpack
from qgen.dtypes import DTYPES
from qgen.runtime import Device
from qgen.sidecar.plan import Binding, DispatchPlan, PassPlan

_SCRIPT: Final = Path(__file__).parent / "hub.mjs"
_SECONDS: Final = 300
LIMIT: Final = 65535

Case = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a host does for a case."""

    variant: str
    wgsl: str
    bindings: tuple[dict[str, Any], ...]
    dispatch: tuple[int, int, int]


def load_cases(folder: Path, cases: Sequence[Case]) -> list[Loaded]:
    """Return what a host does for each case of the package in `folder` (with `manifest.json`)."""
    request = json.dumps({"folder": str(folder), "cases": cases})
    done = subprocess.run(["node", _SCRIPT], input=request, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == len(cases)
    return [Loaded(each["variant"], each["wgsl"], tuple(each["bindings"]), tuple(each["dispatch"])) for each in found]


def case_of(op: str, types: Mapping[str, str], shapes: Mapping[str, Sequence[int]], *, limit: int = LIMIT, **attributes: int) -> Case:
    """Return a case; `output_dtype` is set to the type of y unless it is among `attributes`."""
    y = types["TQ" if op == "QuantizeLinear" else "TF"]
    attributes = {"output_dtype": DTYPES[y].onnx, **attributes}
    return {"types": types, "attributes": attributes, "shapes": shapes, "limits": {"maxComputeWorkgroupsPerDimension": limit}}


def case_of_test(op: str, test: Mapping[str, Any], *, limit: int = LIMIT) -> Case:
    """Return the case that an entry of `test.json` describes."""
    x, scale, *_ = (tensor["dtype"] for tensor in test["inputs"].values())
    y = test["outputs"]["y"]["dtype"]
    types = {"TQ": y, "TF": x} if op == "QuantizeLinear" else {"TQ": x, "TF": y}
    shapes = {name: tensor["shape"] for name, tensor in test["inputs"].items()}
    return case_of(op, types | {"TS": scale}, shapes, limit=limit, **test["attributes"])


def words_of(tensor: Mapping[str, Any]) -> bytes:
    """Return the words of a tensor of `test.json`."""
    array = unpack(b64decode(tensor["data"]), tensor["dtype"], tensor["shape"])
    return pack_words(array, tensor["dtype"]).tobytes()


def run_loaded(device: Device, loaded: Loaded, inputs: Mapping[str, bytes], workgroup_size: int = 64) -> bytes:
    """Return the words of y, run between canaries in buffers of exactly the sizes that the manifest says."""
    digest = hashlib.sha256(loaded.wgsl.encode()).hexdigest()
    roles = {each["name"]: _role(each) for each in loaded.bindings}
    sidecar = {
        "name": loaded.variant,
        "buffers": [{"name": name, "role": role} for name, role in roles.items()],
        "passes": [{"wgsl": {"sha256": digest}}],
        "requires": {"features": [], "limits": {}},
    }
    bindings = tuple(Binding(0, number, each["name"], each["space"], each["access"]) for number, each in enumerate(loaded.bindings))
    uniforms = {
        each["name"]: b"".join(value.to_bytes(4, "little") for value in each["values"])
        for each in loaded.bindings
        if each["space"] == "uniform"
    }
    step = PassPlan("main", (workgroup_size, 1, 1), bindings, loaded.dispatch)
    sizes = {each["name"]: each["nbytes"] for each in loaded.bindings}
    plan = DispatchPlan(sizes, uniforms, (step,) if loaded.dispatch[0] else (), {})
    given = {name: data for name, data in inputs.items() if roles.get(name) == "input"}
    return device.run(loaded.wgsl, sidecar, plan, given, canaries=True)["y"]


def _role(binding: Mapping[str, Any]) -> str:
    if binding["space"] == "uniform":
        return "uniform"
    return "output" if binding["access"] == "read_write" else "input"
