"""A package in the layout of the kernels that the Hugging Face hub publishes for WebGPU: contract, templates, tests and card."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from qgen.errors import QgenError
from qgen.files import save_files
from qgen.package.card import write_card
from qgen.package.cases import build_bench, build_tests
from qgen.package.kernels import BLOCK_SIZE, VARIABLES, WORKGROUP_SIZE, Progress, compile_rows, find_operator, variant_requests, variants
from qgen.package.manifest import MANIFEST_SPEC, build_manifest
from qgen.package.template import write_template
from qgen.passes.realise import MODES

BUILD: Final = "build/webgpu"
VERSION: Final = 1
"""The version of the contract."""

_SETTINGS: Final = {WORKGROUP_SIZE: "tunables.WORKGROUP_SIZE", BLOCK_SIZE: "block_size"}


def build_package(op: str, mode: str = "exact", show: Progress = lambda _done, _total: None) -> dict[str, str]:
    """Return the text of each file of the package of `op` by its path; `show` is called with how many kernels are compiled.

    Raises `QgenError` QG950 for an operator that is not packaged, QG104 for a numerics mode that does not exist.
    """
    find_operator(op)
    if mode not in MODES:
        raise QgenError("QG104", f"there is no numerics mode `{mode}`", hint=f"modes are {', '.join(MODES)}")
    scale, types = ("y_scale", ("TF", "TQ")) if op == "QuantizeLinear" else ("x_scale", ("TQ", "TF"))
    chosen = variants(scale)
    requests = {variant.id: variant_requests(op, variant, mode) for variant in chosen}
    total, done = sum(map(len, requests.values())), 0
    rows = {}
    for name, each in requests.items():
        rows[name] = compile_rows(each, partial(_show_part, show, done, total))
        done += len(each)
    manifest = build_manifest(op, rows, chosen)
    files: dict[str, str] = {
        "manifest.json": _print(manifest),
        "test.json": _print(build_tests(op, manifest["typeConstraints"], chosen, mode)),
        "bench.json": _print(build_bench(op, chosen)),
    }
    for variant in chosen:
        head = [
            f"// {op}, {variant.id}: {variant.summary}.",
            f"// x {{{{ {types[0]} }}}}, {scale} {{{{ TS }}}}, y {{{{ {types[1]} }}}}.",
            "",
            "{{ env.wgsl.resourceDeclarations }}",
        ]
        texts = {row.key: row.wgsl for row in rows[variant.id]}
        files[f"{variant.id}.wgsl.jinja"] = write_template(head, texts, VARIABLES, _SETTINGS)
    files = {"metadata.json": _print(_metadata(op, mode, files, [variant.id for variant in chosen])), **files}
    card = write_card(op, manifest, chosen, list(files), mode)
    return {"README.md": card, **{f"{BUILD}/{name}": text for name, text in files.items()}}


def write_package(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write the files of a package below `folder` and return their paths: all of them, or none.

    Raises `QgenError` QG110 where the folder cannot be written.
    """
    return list(save_files(folder, files))


def _show_part(show: Progress, before: int, total: int, number: int, _part: int) -> None:
    show(before + number, total)


def _metadata(op: str, mode: str, files: Mapping[str, str], names: list[str]) -> dict[str, Any]:
    digests = {name: b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in files.items()}
    return {
        "name": f"ai.onnx.{op}",
        "id": f"qgen/ai.onnx.{op}",
        "version": VERSION,
        "license": "apache-2.0",
        "backend": {"type": "webgpu"},
        "digest": {"algorithm": "sha256", "files": digests},
        "provenance": {"generator": "qgen", "numerics": mode, "target": "webgpu"},
        "webgpu": {"manifestSpec": MANIFEST_SPEC, "variants": {name: [f"{name}.wgsl.jinja"] for name in names}},
    }


def _print(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
