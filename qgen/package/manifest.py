"""The contract of a package, `manifest.json`: operands, types, attributes, and how a host binds and dispatches each variant.

Expressions are Jinja's, over the functions that the card lists; a value is derived before what uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from qgen.dtypes import DTYPES
from qgen.errors import InternalError
from qgen.package.branches import Key, write_expression
from qgen.package.kernels import SINCE, VARIABLES, Row, Variant
from qgen.passes.plan import MAX_ELEMENTS

MANIFEST_SPEC: Final = "2.1"
DEFAULT_WORKGROUP_SIZE: Final = 128

_UNIFORMS: Final = {
    "n": "n",
    "units": "units",
    "groups_x": "groups_x",
    "axis": "axis_length",
    "inner": "inner(x, axis)",
    "blocks": "ceilDiv(axis_length, block_size)",
    "axis_start": "0",
}
"""The uniforms that kernels have, as expressions."""

_PRECISIONS: Final = ("float32", "float16", "bfloat16")

_ATTRIBUTES: Final = {
    "DequantizeLinear": {"axis": 1, "block_size": 0, "output_dtype": 0},
    "QuantizeLinear": {"axis": 1, "block_size": 0, "output_dtype": 0, "precision": 0, "saturate": 1},
}


def build_manifest(op: str, rows: Mapping[str, Sequence[Row]], variants: Sequence[Variant]) -> dict[str, Any]:
    """Return the manifest; `rows` are the kernels of each variant by its id."""
    is_quantize = op == "QuantizeLinear"
    scale, zero_point = ("y_scale", "y_zero_point") if is_quantize else ("x_scale", "x_zero_point")
    every = [row for found in rows.values() for row in found]
    types = {name: list(dict.fromkeys(row.key[at] for row in every)) for at, name in enumerate(VARIABLES[:3])}
    ordered = {name: [dtype for dtype in DTYPES if dtype in names] for name, names in types.items()}
    x, y = ("TF", "TQ") if is_quantize else ("TQ", "TF")
    return {
        "domain": "ai.onnx",
        "name": op,
        "sinceVersion": SINCE,
        "inputs": {
            "x": {"dtype": x, "storage": "packed-u32"},
            scale: {"dtype": "TS", "storage": "packed-u32"},
            zero_point: {"dtype": "TQ", "optional": True, "storage": "packed-u32"},
        },
        "outputs": {"y": {"dtype": y, "rank": "rank(x)", "shape": "shape(x)", "storage": "packed-u32"}},
        "attributes": {name: {"default": default} for name, default in _ATTRIBUTES[op].items()},
        "attributeConstraints": _constraints(op, ordered[y]),
        "args": {name: {"kind": "tensor"} for name in ("x", scale, zero_point, "y")},
        "typeConstraints": ordered,
        "tunables": {"WORKGROUP_SIZE": {"default": DEFAULT_WORKGROUP_SIZE}},
        "derive": _derive(op, zero_point, every),
        "when": [f"numel(x) <= {MAX_ELEMENTS}"],
        "bindings": _bindings(x, y, scale, zero_point),
        "variants": [_variant(variant, rows[variant.id], (scale, zero_point)) for variant in variants],
    }


def _constraints(op: str, outputs: Sequence[str]) -> dict[str, Any]:
    codes = [0, *sorted(DTYPES[name].onnx for name in outputs)]
    found: dict[str, Any] = {"output_dtype": {"values": codes}}
    if op == "QuantizeLinear":
        found |= {"precision": {"values": [0, *(DTYPES[name].onnx for name in _PRECISIONS)]}}
        found |= {"saturate": {"values": [0, 1]}}
    return found


def _derive(op: str, zero_point: str, rows: Sequence[Row]) -> dict[str, str]:
    float8 = ", ".join(f'"{name}"' for name, dtype in DTYPES.items() if dtype.is_float8)
    read = {row.key[0] for row in rows if row.key[3] == "yes"}
    ignored = ", ".join(f'"{name}"' for name in DTYPES if name in {row.key[0] for row in rows} - read)
    found = {"reads_zero_point": f"{zero_point} is defined" + (f" and TQ not in [{ignored}]" if ignored else "")}
    if op == "QuantizeLinear":
        own = '"exact" if TS == "int32" else "float32" if TS == "float8e8m0" else TS'
        asked = "".join(f'"{name}" if precision == {DTYPES[name].onnx} else ' for name in _PRECISIONS)
        found |= {"division": asked + own, "saturates": f"saturate != 0 or TQ not in [{float8}]"}
    bits: dict[Key, str] = {(name,): str(DTYPES[name].bits) for name in dict.fromkeys(name for row in rows for name in row.key[:3])}
    return found | {
        **{f"bits_of_{name}": write_expression(bits, [name]) for name in VARIABLES[:3]},
        "n": "numel(x)",
    }


def _dispatch(rows: Sequence[Row]) -> dict[str, str]:
    """Return how many elements an invocation of each kernel of a variant computes, and the workgroups that follow."""
    lanes = {row.key: str(_lanes(row.sidecar)) for row in rows}
    return {
        "lanes": write_expression(lanes, VARIABLES),
        "units": "ceilDiv(n, lanes)",
        "groups": "ceilDiv(units, tunables.WORKGROUP_SIZE)",
        "groups_x": "groups if groups <= DISPATCH_FOLD_WIDTH else DISPATCH_FOLD_WIDTH",
        "groups_y": "ceilDiv(groups, groups_x) if groups > 0 else 0",
    }


def _lanes(sidecar: Mapping[str, Any]) -> int:
    match sidecar["let"]["U"]:
        case ["ceil_div", "N", int(lanes)]:
            return lanes
        case other:
            raise InternalError(f"the invocations of {sidecar['name']} are {other}")


def _bindings(x: str, y: str, scale: str, zero_point: str) -> dict[str, Any]:
    def words(name: str, dtype: str) -> dict[str, Any]:
        return {"arg": name, "elementType": "u32", "length": f"ceilDiv(numel({name}) * bits_of_{dtype}, 32)"}

    return {
        "x": words("x", x) | {"buffer": "read-only-storage"},
        scale: words(scale, "TS") | {"buffer": "read-only-storage"},
        zero_point: words(zero_point, "TQ") | {"buffer": "read-only-storage", "when": "reads_zero_point"},
        "y": {"arg": "y", "elementType": "u32", "length": f"ceilDiv(n * bits_of_{y}, 32)", "buffer": "storage"},
    }


def _variant(variant: Variant, rows: Sequence[Row], names: tuple[str, str]) -> dict[str, Any]:
    uniforms = {tuple((field["name"], field["type"]) for field in row.sidecar["structs"]["Params"]["fields"]) for row in rows}
    if len(uniforms) != 1:
        raise InternalError(f"the kernels of {variant.id} have different uniforms: {uniforms}")
    fields = next(iter(uniforms))
    derive = _dispatch(rows) | ({"axis_length": "dim(x, axis)"} if any(name == "axis" for name, _ in fields) else {})
    struct = [{"name": name, "type": kind, "value": _UNIFORMS[name]} for name, kind in fields]
    return {
        "id": variant.id,
        "priority": variant.priority,
        "when": list(variant.when),
        "demoteWhen": [],
        "requires": {"features": []},
        "derive": derive,
        "intermediates": [],
        "passes": [
            {
                "id": "main",
                "name": variant.id,
                "shader": f"{variant.id}.wgsl.jinja",
                "derive": {},
                "bindings": ["x", *names, "y", {"key": "params", "buffer": "uniform", "struct": struct}],
                "dispatch": {"x": "groups_x", "y": "groups_y", "z": "1"},
            }
        ],
    }
