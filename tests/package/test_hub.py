"""Packages for the hub: the contract, templates that render to qgen's own kernels for every pair of types, and tests that hold."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

import qgen
from qgen.dtypes import DTYPES
from qgen.errors import QgenError
from qgen.kernel import Kernel
from qgen.package import build_package, write_package
from qgen.package.template import read_blocks
from qgen.runtime import open_device
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from qgen.validate import validate_texts
from tests.goldens import Goldens
from tests.package.loader import Case, Loaded, case_of, case_of_test, load_cases, run_loaded, words_of
from tests.runtime.stacks import SWIFTSHADER

OPS: Final = ("DequantizeLinear", "QuantizeLinear")
SCALES: Final = {"DequantizeLinear": "x_scale", "QuantizeLinear": "y_scale"}
ZERO_POINTS: Final = {"DequantizeLinear": "x_zero_point", "QuantizeLinear": "y_zero_point"}
PUBLISHED: Final = {
    "DequantizeLinear": {"TQ": {"uint8", "int8", "int16", "int32"}, "TF": {"float32", "float16"}, "TS": {"float32", "float16"}},
    "QuantizeLinear": {"TQ": {"uint8", "int8"}, "TF": {"float32", "float16"}, "TS": {"float32", "float16"}},
}
"""What the packages of the same name on the hub take."""
GRANULARITIES: Final[dict[str, tuple[Granularity, tuple[int, ...], tuple[int, ...]]]] = {
    "quant-linear-vec4": (PerTensor(), (5, 7), ()),
    "quant-linear-scalar": (PerAxis(1), (2, 5, 3), (5,)),
    "quant-linear-blocked-axis": (Blocked(1, 3), (2, 7), (2, 3)),
}
"""By variant, a granularity, a shape of x and that of its scale."""


def _json(folder: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    return loaded


def _check_the_files_are_those_of_the_layout(op: str, folder: Path) -> None:
    names = {"metadata.json", "manifest.json", "test.json", "bench.json", *(f"{name}.wgsl.jinja" for name in GRANULARITIES)}
    assert {path.name for path in folder.iterdir()} == names
    assert {path.name for path in folder.parent.parent.iterdir()} == {"README.md", "build"}
    card = (folder.parent.parent / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: kernels\nlicense: apache-2.0\n")
    assert f"# ai.onnx.{op}\n" in card
    assert "`test.json` and `bench.json` are of qgen's own form" in card
    assert all(f"(build/webgpu/{name})" in card for name in names)


def _check_digests_are_those_of_the_bytes(op: str, folder: Path) -> None:
    metadata = _json(folder, "metadata.json")
    assert metadata["name"] == f"ai.onnx.{op}"
    assert metadata["backend"] == {"type": "webgpu"}
    assert metadata["digest"]["algorithm"] == "sha256"
    others = [path for path in folder.iterdir() if path.name != "metadata.json"]
    assert metadata["digest"]["files"] == {path.name: b64encode(hashlib.sha256(path.read_bytes()).digest()).decode() for path in others}
    templates = metadata["webgpu"]["variants"]
    assert templates == {name: [f"{name}.wgsl.jinja"] for name in GRANULARITIES}


def _check_the_manifest_covers_what_is_published_and_every_dtype(op: str, folder: Path) -> None:
    manifest = _json(folder, "manifest.json")
    types = {name: set(names) for name, names in manifest["typeConstraints"].items()}
    assert all(PUBLISHED[op][name] <= types[name] for name in types)
    assert manifest["sinceVersion"] <= 25
    quantized = {name for name, dtype in DTYPES.items() if dtype.is_integer or dtype.is_float8 or dtype.is_small_float}
    assert types["TQ"] == quantized - ({"int32"} if op == "QuantizeLinear" else set())
    assert {"float32", "float16", "bfloat16", "float8e8m0"} <= types["TS"]
    assert {"float32", "float16", "bfloat16"} <= types["TF"]


def _flags(op: str, quantized: str) -> list[tuple[bool, int, int]]:
    """Return the choices of zero point, `precision` and `saturate` that take turns with a pair of types."""
    is_float8 = DTYPES[quantized].is_float8
    if op == "DequantizeLinear":
        return [(False, 0, 1)] if is_float8 else [(False, 0, 1), (True, 0, 1)]
    if is_float8:
        return [(False, 0, 1), (False, 1, 0), (False, 10, 1), (False, 16, 0), (False, 0, 0)]
    return [(True, 0, 1), (False, 1, 1), (True, 10, 1), (False, 16, 1), (False, 0, 1), (True, 1, 1)]


def _every_case(op: str, manifest: dict[str, Any]) -> list[tuple[Case, Kernel]]:
    """Return a case for each variant and each triple of types, and the kernel that it means."""
    found = []
    types = manifest["typeConstraints"]
    names = {dtype.onnx: name for name, dtype in DTYPES.items()}
    every = product(GRANULARITIES.items(), types["TQ"], types["TS"], types["TF"])
    for number, ((variant, (granularity, shape, scale_shape)), quantized, scale, real) in enumerate(every):
        flags = _flags(op, quantized)
        zero_point, precision, saturate = flags[number % len(flags)]
        shapes = {"x": shape, SCALES[op]: scale_shape} | ({ZERO_POINTS[op]: scale_shape} if zero_point else {})
        attributes = {} if isinstance(granularity, PerTensor) else {"axis": granularity.axis}
        attributes |= {"block_size": granularity.block_size} if isinstance(granularity, Blocked) else {}
        attributes |= {"precision": precision, "saturate": saturate} if op == "QuantizeLinear" else {}
        x, y = (real, quantized) if op == "QuantizeLinear" else (quantized, real)
        kernel = qgen.compile(
            op,
            x=x,
            scale=scale,
            y=y,
            zero_point=zero_point,
            granularity=granularity,
            precision=names.get(precision),
            saturate=bool(saturate),
        )
        case = case_of(op, {"TQ": quantized, "TS": scale, "TF": real}, shapes, **attributes)
        found.append((case | {"variant": variant}, kernel))
    return found


def _check_templates_render_to_the_kernels_for_every_triple_of_types(op: str, folder: Path) -> None:
    pairs = _every_case(op, _json(folder, "manifest.json"))
    assert len(pairs) == {"DequantizeLinear": 3 * 16 * 4 * 3, "QuantizeLinear": 3 * 15 * 5 * 4}[op]
    loaded = load_cases(folder, [case for case, _ in pairs])
    texts: dict[str, str] = {}
    for (case, kernel), found in zip(pairs, loaded, strict=True):
        assert found.variant == case["variant"]
        own, rendered = read_blocks(kernel.wgsl), read_blocks(found.wgsl)
        assert rendered[0] == own[0], kernel.name
        assert {block.name: block for block in rendered} == {block.name: block for block in own}, kernel.name
        assert len(rendered) == len(own)
        assert [each["name"] for each in found.bindings] == [each["buffer"] for each in kernel.sidecar["passes"][0]["bindings"]]
        texts.setdefault(found.wgsl, kernel.name)
    reports = validate_texts([(name, text) for text, name in texts.items()], engine="all")
    assert [report for report in reports if not report.ok] == []
    assert {report.engine for report in reports} == {"naga-wasm", "tint"}


def _check_that_the_tests_of_a_package_hold_on_dawn(op: str, folder: Path) -> None:
    tests = _json(folder, "test.json")["cases"]
    types = _json(folder, "manifest.json")["typeConstraints"]
    assert len(tests) == len(GRANULARITIES) * len(types["TQ"]) * len(types["TF"])
    device = open_device(SWIFTSHADER, bounds_checks=False)
    for test, loaded in zip(tests, load_cases(folder, [case_of_test(op, test) for test in tests]), strict=True):
        assert loaded.variant == test["variant"]
        inputs = {name: words_of(tensor) for name, tensor in test["inputs"].items()}
        assert run_loaded(device, loaded, inputs) == words_of(test["outputs"]["y"]), test["name"]


def _check_a_dispatch_is_folded_and_an_empty_tensor_dispatches_nothing(op: str, folder: Path) -> None:
    types, many = {"TQ": "uint8", "TS": "float32", "TF": "float32"}, (10 * 128 * 128 + 1,)
    large, empty = load_cases(
        folder, [case_of(op, types, {"x": many, SCALES[op]: ()}, limit=7), case_of(op, types, {"x": (3, 0), SCALES[op]: ()})]
    )
    x, y = ("float32", "uint8") if op == "QuantizeLinear" else ("uint8", "float32")
    plan = qgen.compile(op, x=x, y=y, target="webgpu:max_workgroups_per_dimension=7").plan({"x": many, SCALES[op]: ()})
    assert large.dispatch == plan.passes[0].dispatch
    assert large.dispatch[0] == 7
    assert large.dispatch[1] > 1
    assert b"".join(value.to_bytes(4, "little") for value in _values(large)) == plan.uniforms["params"]
    assert empty.dispatch == (0, 0, 1)


def _values(loaded: Loaded) -> list[int]:
    values: list[int] = loaded.bindings[-1]["values"]
    return values


@pytest.mark.parametrize("op", OPS)
def test_a_package_is_what_its_card_says(op: str, tmp_path: Path) -> None:
    """One test, so that one process makes the package."""
    paths = write_package(tmp_path, build_package(op))
    assert all(path.is_file() for path in paths)
    folder = tmp_path / "build" / "webgpu"
    _check_the_files_are_those_of_the_layout(op, folder)
    _check_digests_are_those_of_the_bytes(op, folder)
    _check_the_manifest_covers_what_is_published_and_every_dtype(op, folder)
    _check_templates_render_to_the_kernels_for_every_triple_of_types(op, folder)
    _check_that_the_tests_of_a_package_hold_on_dawn(op, folder)
    _check_a_dispatch_is_folded_and_an_empty_tensor_dispatches_nothing(op, folder)


def test_what_is_not_packaged_is_refused(golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        build_package("MatMul")
    assert caught.value.code == "QG950"
    golden.check("errors/QG950.err", f"{caught.value}\n")
    with pytest.raises(QgenError, match="no numerics mode `quickest`"):
        build_package("DequantizeLinear", "quickest")
