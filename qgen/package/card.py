"""The card of a package, README.md: what the kernels compute, for whom, and where the files differ from those of other packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from qgen.dtypes import DTYPES
from qgen.emit.module import PROMISES
from qgen.package.kernels import Variant

_FORMULAS: Final = {
    "QuantizeLinear": "y = saturate(round_half_even(x / y_scale) + y_zero_point)",
    "DequantizeLinear": "y = (x - x_zero_point) * x_scale",
}

_FUNCTIONS: Final = (
    ("numel(t), rank(t), shape(t)", "elements, dimensions and the shape of a tensor"),
    ("dim(t, a), inner(t, a)", "the length of axis `a`, which may be negative, and the product of the dimensions behind it"),
    ("ceilDiv(a, b)", "the quotient of two integers, rounded up"),
)


def write_card(op: str, manifest: Mapping[str, Any], variants: Sequence[Variant], files: Sequence[str], mode: str) -> str:
    """Return the text of the card."""
    scale, zero_point = list(manifest["inputs"])[1:]
    lines = [
        *("---", "library_name: kernels", "license: apache-2.0", "tags:", "- kernel", "- webgpu", "- wgsl", "---"),
        f"# ai.onnx.{op}",
        "",
        f"`ai.onnx` · standard ONNX operator · ONNX opset ≥ {manifest['sinceVersion']} · made by qgen",
        "",
        "## Description",
        "",
        f"`{_FORMULAS[op]}`, with the arithmetic that the ONNX operator's text has. Numerics: {mode}, {PROMISES[mode]}.",
        "No device feature is needed, whatever the types: tensors are bound as words, and every conversion is integer code.",
        "",
        *_table(
            ("Input", "Type", "Presence"), [(f"`{name}`", f"`{row['dtype']}`", _presence(row)) for name, row in manifest["inputs"].items()]
        ),
        "",
        f"`{zero_point}` has the shape of `{scale}`; `y`, of type `{manifest['outputs']['y']['dtype']}`, has that of `x`.",
        "",
        "## Types",
        "",
        *_table(("Variable", "Allowed types"), [(f"`{name}`", _names(types)) for name, types in manifest["typeConstraints"].items()]),
        "",
        "## Attributes",
        "",
        *_table(("Attribute", "Default", "Values"), [_attribute(name, manifest) for name in manifest["attributes"]]),
        "",
        f"`output_dtype` and `precision` are ONNX type codes: {_codes(manifest)}. With `output_dtype` 0 the type of `y` is that of",
        f"`{zero_point if op == 'QuantizeLinear' else scale}`" + (", or uint8 where there is none." if op == "QuantizeLinear" else "."),
        "",
        "## Variants",
        "",
        *_table(("Template", "For"), [(f"[`{each.id}.wgsl.jinja`](build/webgpu/{each.id}.wgsl.jinja)", each.summary) for each in variants]),
        "",
        "## How to bind",
        "",
        "- A tensor is bound as `array<u32>`, packed as ONNX packs `raw_data`: flat, the first element in the lowest bits, the last word",
        "  filled with zeros. `storage: packed-u32` says so in the manifest. Nothing is widened to 32 bits.",
        "- Bindings of group 0 are numbered in the order of the pass; one whose `when` does not hold is left out, and takes no number.",
        "- A struct is declared as `Params`, the variable `params`, in the uniform address space; its fields are u32.",
        "- `env.wgsl.resourceDeclarations` is the text of these declarations.",
        "- `DISPATCH_FOLD_WIDTH` is the most workgroups in x, at most `device.limits.maxComputeWorkgroupsPerDimension`.",
        "- An empty tensor dispatches nothing.",
        "- Some texts call `unpack4xU8`, which is of WGSL's language feature `packed_4x8_integer_dot_product`.",
        "- Types (`TQ`, …), tensors, attributes, tunables, `device` and what `derive` names are the variables of expressions and",
        "  templates; an absent tensor is undefined. The functions of expressions:",
        "",
        *_table(("Function", "Value"), [(f"`{name}`", value) for name, value in _FUNCTIONS]),
        "",
        "## Files",
        "",
        *(f"- [`{name}`](build/webgpu/{name})" for name in files),
        "",
        "The contents of `test.json` and `bench.json` are of qgen's own form. A test has attributes, inputs and right outputs; `data` is",
        "the base64 of the packed bytes, `ceil(bits * elements / 8)` of them, and outputs are compared bit for bit (`compare: bits`). A",
        "benchmark has attributes, and types and shapes of inputs; any data will do. Digests in `metadata.json` are the base64 of the",
        "SHA-256 of each file's bytes.",
        "",
        "The texts are your own: qgen claims no rights in what it emits, and the licence above is a proposal.",
    ]
    return "\n".join(lines) + "\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]


def _presence(row: Mapping[str, Any]) -> str:
    return "optional" if row.get("optional") else "required"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _attribute(name: str, manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    values = manifest["attributeConstraints"].get(name, {}).get("values")
    return f"`{name}`", f"`{manifest['attributes'][name]['default']}`", "any" if values is None else ", ".join(map(str, values))


def _codes(manifest: Mapping[str, Any]) -> str:
    codes = sorted({code for row in manifest["attributeConstraints"].values() for code in row["values"]} - {0, 1})
    names = {dtype.onnx: name for name, dtype in DTYPES.items()}
    return ", ".join(f"{code} {names[code]}" for code in (1, *codes))
