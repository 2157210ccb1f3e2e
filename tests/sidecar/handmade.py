"""Sidecars and kernels written by hand, so that what reads sidecars is not tested by what writes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

WORDS = {"dtype": "uint32", "bits": 32, "period": [1, 1], "order": "lsb_first"}
BYTES = {"dtype": "uint8", "bits": 8, "period": [4, 1], "order": "lsb_first"}
FLOATS = {"dtype": "float32", "bits": 32, "period": [1, 1], "order": "lsb_first"}

TIMES = """\
struct Params { count: u32, row: u32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = (workgroup.y * params.row + workgroup.x) * 64u + lane;
    if (i < params.count) {
        y[i] = x[i] * 3u;
    }
}
"""
"""y = 3 x, one word an invocation."""

PAIRS = """\
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> t: array<u32>;
@group(0) @binding(2) var<storage, read> s: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn square(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) {
        t[id.x] = x[id.x] * x[id.x];
    }
}

@compute @workgroup_size(64)
fn turn(@builtin(global_invocation_id) id: vec3<u32>) {
    let count = arrayLength(&s);
    if (id.x < count) {
        y[id.x] = s[count - 1u - id.x];
    }
}
"""
"""Two dispatches: the squares of x, then these in reverse order, by way of a scratch buffer."""


def binding(number: int, buffer: str, access: str, wgsl_type: str = "array<u32>") -> dict[str, Any]:
    space = "storage" if wgsl_type.startswith("array") else "uniform"
    return {"group": 0, "binding": number, "buffer": buffer, "address_space": space, "access": access, "wgsl_type": wgsl_type}


def dispatch(wgsl: str, entry_point: str, bindings: Sequence[dict[str, Any]], workgroups: Sequence[object]) -> dict[str, Any]:
    digest = hashlib.sha256(wgsl.encode()).hexdigest()
    return {
        "wgsl": {"file": "handmade.wgsl", "sha256": digest},
        "entry_point": entry_point,
        "workgroup_size": [64, 1, 1],
        "bindings": list(bindings),
        "dispatch": list(workgroups),
    }


def sidecar(buffers: Sequence[dict[str, Any]], passes: Sequence[dict[str, Any]], **parts: object) -> dict[str, Any]:
    return {
        "format": "qgen.kernel",
        "format_version": 1,
        "name": "handmade",
        "op": {"domain": "qgen.test", "type": "Handmade", "opset": [1, 1], "attributes": {}},
        "numerics": {"mode": "strict", "relies_on": [], "max_error": 0},
        "target": {"name": "webgpu", "options": {"max_workgroups_per_dimension": 65535}},
        "shape": None,
        "buffers": list(buffers),
        "structs": {},
        "let": {},
        "passes": list(passes),
        "requires": {"features": [], "language_features": [], "limits": {"maxStorageBuffersPerShaderStage": 2}},
        "constraints": [],
        "chunks": None,
    } | parts


def tensor(name: str, role: str, element: dict[str, Any], size_bytes: object, count: object = ("numel", "x")) -> dict[str, Any]:
    count = list(count) if isinstance(count, tuple) else count
    return {"name": name, "role": role, "element": dict(element), "count": count, "size_bytes": size_bytes}


def times_three(wgsl: str = TIMES, *, row: int = 65535) -> dict[str, Any]:
    """Return the sidecar of `TIMES`, or of a text with its bindings; `row` is the most workgroups in x."""
    return sidecar(
        [
            tensor("x", "input", WORDS, ["mul", 4, "N"]),
            tensor("y", "output", WORDS, ["mul", 4, "N"]),
            {"name": "params", "role": "uniform", "struct": "Params", "size_bytes": 8},
        ],
        [
            dispatch(
                wgsl,
                "main",
                [binding(0, "x", "read"), binding(1, "y", "read_write"), binding(2, "params", "read", "Params")],
                ["GX", ["ceil_div", "G", "GX"], 1],
            )
        ],
        structs={
            "Params": {
                "size": 8,
                "align": 4,
                "fields": [
                    {"name": "count", "type": "u32", "offset": 0, "value": "N"},
                    {"name": "row", "type": "u32", "offset": 4, "value": "GX"},
                ],
            }
        },
        let={"GX": ["min", "G", row], "G": ["ceil_div", "N", 64], "N": ["numel", "x"]},
        constraints=[["le", "N", 4294967295]],
    )


def squares_reversed() -> dict[str, Any]:
    """Return the sidecar of `PAIRS`."""
    size, workgroups = ["mul", 4, ["numel", "x"]], [["ceil_div", ["numel", "x"], 64], 1, 1]
    return sidecar(
        [tensor("x", "input", WORDS, size), tensor("t", "scratch", WORDS, size), tensor("y", "output", WORDS, size)],
        [
            dispatch(PAIRS, "square", [binding(0, "x", "read"), binding(1, "t", "read_write")], workgroups),
            dispatch(PAIRS, "turn", [binding(2, "t", "read"), binding(3, "y", "read_write")], workgroups),
        ],
    )


def dequantize_per_axis() -> dict[str, Any]:
    """Return the sidecar of a kernel for uint8 with a scale for each element of axis 1, and a zero point that it does not read."""
    count = ["mul", 4, ["numel", "x_scale"]]
    return sidecar(
        [
            tensor("x", "input", BYTES, ["mul", 4, ["ceil_div", "N", 4]], "N"),
            tensor("x_scale", "input", FLOATS, count, ["numel", "x_scale"]),
            tensor("x_zero_point", "ignored", BYTES, ["mul", 4, ["ceil_div", ["numel", "x_zero_point"], 4]], ["numel", "x_zero_point"]),
            tensor("y", "output", FLOATS, ["mul", 4, "N"], "N"),
            {"name": "params", "role": "uniform", "struct": "Params", "size_bytes": 16},
        ],
        [
            dispatch(
                "",
                "dequantize_linear",
                [
                    binding(0, "x", "read"),
                    binding(1, "x_scale", "read"),
                    binding(2, "y", "read_write"),
                    binding(3, "params", "read", "Params"),
                ],
                ["GX", ["ceil_div", "G", "GX"], 1],
            )
        ],
        op={"domain": "ai.onnx", "type": "DequantizeLinear", "opset": [13, 28], "attributes": {"axis": 1, "block_size": 0}},
        structs={
            "Params": {
                "size": 16,
                "align": 4,
                "fields": [
                    {"name": "count", "type": "u32", "offset": 0, "value": "N"},
                    {"name": "inner", "type": "u32", "offset": 4, "value": ["prod_dims", "x", 2, "R"]},
                    {"name": "channels", "type": "u32", "offset": 8, "value": ["dim", "x", 1]},
                    {"name": "row", "type": "u32", "offset": 12, "value": "GX"},
                ],
            }
        },
        let={
            "N": ["numel", "x"],
            "R": ["rank", "x"],
            "W": ["ceil_div", "N", 4],
            "G": ["ceil_div", "W", 64],
            "GX": ["min", "G", 65535],
        },
        constraints=[["le", "N", 4294967295], ["eq", ["numel", "x_scale"], ["dim", "x", 1]]],
        chunks={
            "count": "N",
            "multiple": 256,
            "most": 1 << 20,
            "length": ["mul", 256, ["floor_div", "limit", 1024]],
            "let": {"half": ["floor_div", "start", 2]},
            "bind": [
                {"buffers": ["x", "y"], "first": "start", "count": "N"},
                {"buffers": ["x_scale"], "first": 0, "count": ["numel", "x_scale"]},
            ],
        },
    )
