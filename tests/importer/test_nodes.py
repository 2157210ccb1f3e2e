"""Which nodes of a model are found, and which kernel each of them gets."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

import qgen
from qgen.arrays import numpy_dtype
from qgen.dtypes import DTYPES
from qgen.errors import QgenError
from qgen.importer import load_bundle
from qgen.profile import Entry, Profile, Schedule, describe_kernel
from qgen.shapes import Blocked, Granularity, PerAxis, PerTensor
from tests.importer.models import load, one_node, parse, save

QUANTIZE = "g ({x} a) => (y) <{constants}> {{ y = QuantizeLinear{attributes} ({operands}) }}"


def quantize(x: str = "float[2,6]", constants: str = "float s = {0.5}", operands: str = "a, s", attributes: str = "") -> str:
    return QUANTIZE.format(x=x, constants=constants, operands=operands, attributes=attributes)


def test_a_node_of_the_main_graph_is_compiled_as_the_api_compiles_it(tmp_path: Path) -> None:
    bundle = load(tmp_path, quantize(constants="float[6] s = {1,2,3,4,5,6}, int8[6] z = {0,0,0,0,0,0}", operands="a, s, z"))
    kernel = qgen.compile(
        "QuantizeLinear",
        x="float32",
        scale="float32",
        y="int8",
        zero_point=True,
        granularity=qgen.per_axis(1),
        shape=(2, 6),
        opset=21,
        known_scale=np.arange(1, 7, dtype=np.float32),
    )
    assert list(bundle.kernels) == [kernel.name]
    assert bundle.kernels[kernel.name].wgsl == kernel.wgsl
    (node,) = bundle.nodes
    assert (node.path, node.op, node.domain, node.kernel, node.reason) == ("#0", "QuantizeLinear", "ai.onnx", kernel.name, None)
    assert node.tensors == {"x": "a", "y_scale": "s", "y_zero_point": "z", "y": "y"}
    assert node.sources == {"x": "input", "y_scale": "initializer", "y_zero_point": "initializer", "y": "value"}
    assert node.shapes == {"x": (2, 6), "y_scale": (6,), "y_zero_point": (6,), "y": (2, 6)}


def test_nodes_in_every_kind_of_subgraph_are_found_with_their_paths_and_shapes(tmp_path: Path) -> None:
    model = parse("""
        g (float[2,3] a, bool c, int64 n) => (float[2,3] o, float[2,3] p, float[4,3] q, float[4,3] xs) <float s = {0.5}, uint8 z = {3}> {
            o = If (c) <
                then_branch = t () => (float[2,3] t1) { t0 = QuantizeLinear (a, s, z)  t1 = DequantizeLinear (t0, s, z) },
                else_branch = e () => (float[2,3] e1) { e1 = Identity (a) }>
            p = Loop (n, c, a) <
                body = b (int64 i, bool k, float[2,3] v) => (bool k1, float[2,3] v2)
                { k1 = Identity (k)  v1 = QuantizeLinear (v, s)  v2 = DequantizeLinear (v1, s) }>
            q = Scan <num_scan_inputs = 1, body = w (float[3] row) => (float[3] r2)
                { r1 = QuantizeLinear (row, s)  r2 = DequantizeLinear (r1, s) }> (xs0)
            xs = Identity (xs0)
        }""")
    del model.graph.output[3]
    del model.graph.node[3]
    model.graph.input.append(onnx.helper.make_tensor_value_info("xs0", onnx.TensorProto.FLOAT, [4, 3]))
    model.graph.node[0].name = "choose"
    bundle = load_bundle(save(model, tmp_path))
    assert bundle.warnings == ()
    assert [(node.path, node.shapes["x"]) for node in bundle.nodes] == [
        ("choose/then_branch/#0", (2, 3)),
        ("choose/then_branch/#1", (2, 3)),
        ("#1/body/#1", (2, 3)),
        ("#1/body/#2", (2, 3)),
        ("#2/body/#0", (3,)),
        ("#2/body/#1", (3,)),
    ]
    assert all(node.kernel for node in bundle.nodes)


FUNCTIONS = """
    g (float[2,3] a, float16[5] b, float16 t) => (y1, y2, y3) <float s = {0.5}> {
        y1 = local.f <width = 1> (a, s)   y2 = local.f (b, t)   y3 = local.f <width = 1> (a, s)
    }
    <opset_import: ["" : 19, "local" : 1], domain: "local">
    f <width> (x, scale) => (y) { q = QuantizeLinear <axis: int = @width> (x, scale)  y = local.g (q, scale) }
    <opset_import: ["" : 23], domain: "local">
    g (x, scale) => (y) { y = DequantizeLinear (x, scale) }
    <opset_import: ["" : 23], domain: "local">
    unused (x, scale) => (y) { y = DequantizeLinear (x, scale) }
"""


def test_a_function_is_imported_once_a_call_with_the_types_and_opsets_of_its_own(tmp_path: Path) -> None:
    bundle = load(tmp_path, FUNCTIONS)
    paths = [node.path for node in bundle.nodes]
    assert paths == [
        *("#0/local.f/#0", "#0/local.f/#1/local.g/#0", "#1/local.f/#0", "#1/local.f/#1/local.g/#0"),
        *("#2/local.f/#0", "#2/local.f/#1/local.g/#0", "local.unused/#0"),
    ]
    kernels = [bundle.kernels[node.kernel].request.signature for node in bundle.nodes if node.kernel]
    assert [(each.x.name, each.scale.name, each.y.name) for each in kernels] == [
        *(("float32", "float32", "uint8"), ("uint8", "float32", "float32")),
        *(("float16", "float16", "uint8"), ("uint8", "float16", "float16")),
        *(("float32", "float32", "uint8"), ("uint8", "float32", "float32")),
    ]
    assert [node.shapes["x"] for node in bundle.nodes[:6]] == [(2, 3), (2, 3), (5,), (5,), (2, 3), (2, 3)]
    assert len(bundle.kernels) == 4
    reason = bundle.nodes[6].reason
    assert reason is not None
    assert reason.code == "QG427"


def test_a_function_has_the_opset_that_it_imports(tmp_path: Path) -> None:
    text = """
        g (float[4] a) => (y) <float s = {0.5}> { y = local.f (a, s) }
        <opset_import: ["" : 13], domain: "local">
        f (x, scale) => (y) { y = QuantizeLinear <block_size = 2> (x, scale) }"""
    reason = one_node(tmp_path, text).reason
    assert reason is not None
    assert (reason.code, reason.message) == ("QG424", "QuantizeLinear version 13 has no attribute `block_size`")


def test_an_input_that_a_call_leaves_out_is_absent_in_the_function(tmp_path: Path) -> None:
    text = """
        g (float[4] a) => (y) <float s = {0.5}> { y = local.f (a, s) }
        <opset_import: ["" : 21], domain: "local">
        f (x, scale, zero) => (y) { y = QuantizeLinear (x, scale, zero) }"""
    assert list(one_node(tmp_path, text).tensors) == ["x", "y_scale", "y"]


def test_scales_come_from_initialisers_constant_nodes_and_inputs(tmp_path: Path) -> None:
    bundle = load(
        tmp_path,
        """g (float[2,3] a, float[3] s2, uint8[3] z2) => (y0, y1, y2, y3) <float s0 = {0.5}, uint8 z0 = {1}> {
            s1 = Constant <value = float[3] {1, 2, 3}> ()   z1 = Constant <value = uint8[3] {1, 2, 3}> ()
            s3 = Constant <value_float = 0.5> ()
            y0 = QuantizeLinear (a, s0, z0)  y1 = QuantizeLinear (a, s1, z1)  y2 = QuantizeLinear (a, s2, z2)  y3 = QuantizeLinear (a, s3)
        }""",
        any_scale=True,
    )
    assert [(node.sources["y_scale"], node.shapes["y_scale"]) for node in bundle.nodes] == [
        *(("initializer", ()), ("constant", (3,)), ("input", (3,)), ("constant", ())),
    ]
    assert bundle.nodes[1].kernel == bundle.nodes[2].kernel
    assert len(bundle.kernels) == 3


def test_the_operators_of_com_microsoft_are_compiled_and_types_go_through_them(tmp_path: Path) -> None:
    bundle = load(
        tmp_path,
        """g (float16[2,3] a) => (y) <float16 s = {14336}, int16 z = {3}> {
            q = com.microsoft.QuantizeLinear (a, s, z)   d = com.microsoft.DequantizeLinear (q, s, z)
            n = Neg (d)   m = com.microsoft.QuantizeLinear <axis = 0> (n, s)   e = com.microsoft.DequantizeLinear (m, s)
            y = com.microsoft.Gelu (e)   w = com.microsoft.QuantizeLinear (y, s)
        }""",
    )
    domains = {(node.domain, node.op, node.shapes.get("x")) for node in bundle.nodes[:4]}
    assert domains == {("com.microsoft", "QuantizeLinear", (2, 3)), ("com.microsoft", "DequantizeLinear", (2, 3))}
    kernels = [bundle.kernels[str(node.kernel)].request.signature for node in bundle.nodes[:4]]
    assert [(each.x.name, each.y.name) for each in kernels] == [
        *(("float16", "int16"), ("int16", "float16"), ("float16", "uint8"), ("uint8", "float16")),
    ]
    assert kernels[0].division == kernels[2].division == qgen.compile("QuantizeLinear", x="float32").request.signature.division
    gelu, last = bundle.nodes[4:]
    assert (gelu.kernel, gelu.reason and gelu.reason.code, dict(gelu.tensors)) == (None, "QG420", {})
    assert (last.kernel is not None, last.shapes["x"]) == (True, None)


def test_types_go_through_com_microsoft_at_opsets_without_cast_like(tmp_path: Path) -> None:
    text = """g (float[2,3] a) => (y) <float s = {0.5}, uint8 z = {3}> {
        q = com.microsoft.QuantizeLinear (a, s, z)  d = com.microsoft.DequantizeLinear (q, s, z)  n = Neg (d)  y = QuantizeLinear (n, s, z)
    }"""
    bundle = load(tmp_path, text, '"" : 11, "com.microsoft" : 1')
    assert [node.shapes["x"] for node in bundle.nodes] == [(2, 3)] * 3
    assert all(node.kernel for node in bundle.nodes)


@pytest.mark.parametrize(
    ("text", "granularity", "shape"),
    [
        (quantize(), PerTensor(), (2, 6)),
        (quantize(constants="float[1] s = {0.5}", attributes="<axis = 9>"), PerTensor(), (2, 6)),
        (quantize(constants="float[6] s = {1,2,3,4,5,6}"), PerAxis(1), (2, 6)),
        (quantize(constants="float[2] s = {1,2}", attributes="<axis = -2>"), PerAxis(0), (2, 6)),
        (quantize(constants="float[2,2] s = {1,2,3,4}", attributes="<axis = -1, block_size = 4>"), Blocked(1, 4), (2, 6)),
        (quantize(x="float[N,6]"), PerTensor(), None),
        (quantize(x="float[N,6]", constants="float[6] s = {1,2,3,4,5,6}", attributes="<axis = -1>"), PerAxis(1), None),
        (quantize(x="float[N,6]", constants="float[2,2] s = {1,2,3,4}", attributes="<axis = -1, block_size = 4>"), Blocked(1, 4), None),
        (quantize(x="float[N]", constants="float[1] s = {1}", attributes="<axis = 0, block_size = 4>"), PerTensor(), None),
        (quantize(x="float"), PerTensor(), ()),
        (quantize(x="float[0,6]", constants="float[6] s = {1,2,3,4,5,6}"), PerAxis(1), (0, 6)),
        (quantize(x="float[2,0]", constants="float[0] s = {}"), PerAxis(1), (2, 0)),
    ],
)
def test_shapes_and_attributes_tell_the_granularity(
    text: str, granularity: Granularity, shape: tuple[int, ...] | None, tmp_path: Path
) -> None:
    baked, uniform = (load(tmp_path, text, shapes=shapes) for shapes in ("baked", "uniform"))
    assert baked.nodes[0].reason is None
    (kernel,) = baked.kernels.values()
    assert (kernel.request.granularity, kernel.request.shape) == (granularity, shape)
    (kernel,) = uniform.kernels.values()
    assert (kernel.request.granularity, kernel.request.shape) == (granularity, None)


@pytest.mark.parametrize("length", ["M", ""])
def test_a_scale_of_unknown_length_lies_along_the_axis_and_the_user_hears_of_it(length: str, tmp_path: Path) -> None:
    model = parse("g (float[2,N] a, float[M] s) => (y) { y = QuantizeLinear (a, s) }")
    (dim,) = model.graph.input[1].type.tensor_type.shape.dim
    dim.dim_param = length
    (node,) = load_bundle(save(model, tmp_path)).nodes
    assert node.kernel is not None
    assert [warning.partition(";")[0] for warning in node.warnings] == ["the length of the scale is not known"]
    (dim,) = model.graph.input[1].type.tensor_type.shape.dim
    dim.dim_param = "N"
    assert load_bundle(save(model, tmp_path)).nodes[0].warnings == ()


def test_x_of_unknown_rank_keeps_the_axis_that_the_node_names(tmp_path: Path) -> None:
    text = """g (float[6] a, int64[R] shape) => (y) <float[3] s = {1, 2, 3}> {
        r = Reshape (a, shape)  y = QuantizeLinear <axis = -1> (r, s)
    }"""
    bundle = load(tmp_path, text)
    (kernel,) = bundle.kernels.values()
    assert (bundle.nodes[0].shapes["x"], kernel.request.granularity) == (None, PerAxis(-1))


def test_shapes_are_inferred_through_what_computes_them(tmp_path: Path) -> None:
    text = """g (float[2,3,4] a) => (y) <float s = {0.5}, int64[1] end = {-1}, int64 first = {0}> {
        shape = Shape (a)  n = Gather (shape, first)  axes = Constant <value = int64[1] {0}> ()  n1 = Unsqueeze (n, axes)
        target = Concat <axis = 0> (n1, end)  r = Reshape (a, target)  y = QuantizeLinear (r, s)
    }"""
    assert one_node(tmp_path, text).shapes["x"] == (2, 12)


def test_models_that_differ_in_the_opset_alone_share_kernels(tmp_path: Path) -> None:
    texts = {next(iter(load(tmp_path, quantize(), f'"" : {opset}').kernels)) for opset in (10, 11, 13, 17, 19, 22, 24, 26, 28)}
    assert len(texts) == 1


def test_uniform_shapes_let_nodes_share_what_baked_shapes_do_not(tmp_path: Path) -> None:
    text = "g (float[2,3] a, float[7] b) => (y, z) <float s = {0.5}> { y = QuantizeLinear (a, s)  z = QuantizeLinear (b, s) }"
    assert [len(load(tmp_path, text, shapes=shapes).kernels) for shapes in ("baked", "uniform")] == [2, 1]


def test_a_scale_along_axis_1_at_opset_10_is_accepted_with_a_warning(tmp_path: Path) -> None:
    node = one_node(tmp_path, quantize(constants="float[6] s = {1,2,3,4,5,6}"), '"" : 10')
    assert node.kernel is not None
    assert "opset 10" in node.warnings[0]


@pytest.mark.parametrize(("zero", "count"), [("0", 0), ("1", 1)])
def test_a_zero_point_of_int32_that_is_not_zero_is_warned_of(zero: str, count: int, tmp_path: Path) -> None:
    text = f"g (int32[2] a) => (y) <float s = {{0.5}}, int32 z = {{{zero}}}> {{ y = DequantizeLinear (a, s, z) }}"
    assert len(one_node(tmp_path, text).warnings) == count


@pytest.mark.parametrize(("dtype", "code", "is_zero"), [(17, 0, True), (17, 128, True), (17, 56, False), (18, 128, False), (18, 0, True)])
def test_a_float8_zero_point_that_is_not_zero_is_ignored_or_refused(dtype: int, code: int, *, is_zero: bool, tmp_path: Path) -> None:
    model = parse("g (float[2] a) => (y) <float s = {0.5}> { q = QuantizeLinear (a, s, z)  y = DequantizeLinear (q, s, z) }")
    model.graph.initializer.append(onnx.TensorProto(name="z", data_type=dtype, raw_data=bytes([code])))
    quantize, dequantize = load_bundle(save(model, tmp_path)).nodes
    assert (quantize.kernel is not None, len(quantize.warnings)) == (True, 0 if is_zero else 1)
    assert (dequantize.reason and dequantize.reason.code) == (None if is_zero else "QG112")


def test_nodes_are_told_apart_whatever_their_names(tmp_path: Path) -> None:
    model = parse(
        "g (float[2] a) => (y) <float s = {0.5}> { b = QuantizeLinear (a, s) c = QuantizeLinear (a, s) y = QuantizeLinear (a, s) }"
    )
    for node, name in zip(model.graph.node, ("same", "same", "same#0"), strict=True):
        node.name = name
    paths = [node.path for node in load_bundle(save(model, tmp_path)).nodes]
    assert paths == ["same#0", "same#1", "same#0#2"]


HOSTILE = ["../../up", "a b/c", "*/ fn evil() {}", "\x1b[31mred\x00", "line\nbreak", "é\u202e", "x" * 3000]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_reach_neither_texts_nor_paths(name: str, tmp_path: Path) -> None:
    model = parse("g (float[2] a) => (y) <float s = {0.5}> { y = QuantizeLinear (a, s) }")
    node = model.graph.node[0]
    model.graph.name = model.graph.input[0].name = node.input[0] = node.name = name
    node.output[0] = model.graph.output[0].name = f"{name} out"
    bundle = load_bundle(save(model, tmp_path))
    bundle.save(tmp_path / "out")
    kernel = qgen.compile("QuantizeLinear", x="float32", y="uint8", shape=(2,), plain_scale=True)
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert names == sorted(["model.onnx", f"out/{kernel.name}.json", f"out/{kernel.name}.wgsl", "out/index.json"])
    assert (tmp_path / "out" / f"{kernel.name}.wgsl").read_text(encoding="utf-8") == kernel.wgsl
    text = (tmp_path / "out" / "index.json").read_text(encoding="utf-8")
    assert re.fullmatch(r"[ -~\n]+", text)
    (entry,) = json.loads(text)["nodes"]
    assert (entry["name"], entry["kernel"]) == (name, kernel.name)
    assert entry["node"].isprintable()


def test_the_index_tells_the_kernel_of_each_node_and_why_one_has_none(tmp_path: Path) -> None:
    text = """g (float[2] a, float[2] b) => (y, z, p, q) <float s = {0.5}> {
        y = QuantizeLinear (a, s)  z = QuantizeLinear (b, s)  p, q = com.microsoft.DynamicQuantizeLSTM (a)
    }"""
    bundle = load(tmp_path, text)
    written = bundle.save(tmp_path / "out")
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    index = json.loads((tmp_path / "out" / "index.json").read_text(encoding="utf-8"))
    assert (index["format"], index["format_version"], index["kernels"]) == ("qgen.bundle", 1, list(bundle.kernels))
    (name,) = bundle.kernels
    assert [(node["node"], node["kernel"], node["reason"] and node["reason"]["code"]) for node in index["nodes"]] == [
        *(("#0", name, None), ("#1", name, None), ("#2", None, "QG420")),
    ]
    (tmp_path / "again").mkdir()
    load(tmp_path / "again", text).save(tmp_path / "again" / "out")
    for path in written:
        assert (tmp_path / "again" / "out" / path.name).read_bytes() == path.read_bytes()


DYNAMIC = "g ({x} a) => (y, s, z) {{ y, s, z = DynamicQuantizeLinear (a) }}"


def test_a_dynamic_quantization_is_compiled_as_the_api_compiles_it(tmp_path: Path) -> None:
    bundle = load(tmp_path, DYNAMIC.format(x="float[2,6]"))
    kernel = qgen.compile("DynamicQuantizeLinear", x="float32", shape=(2, 6))
    assert {name: each.wgsl for name, each in bundle.kernels.items()} == {kernel.name: kernel.wgsl}
    (node,) = bundle.nodes
    assert (node.path, node.op, node.domain, node.kernel, node.reason) == ("#0", "DynamicQuantizeLinear", "ai.onnx", kernel.name, None)
    assert node.tensors == {"x": "a", "y": "y", "y_scale": "s", "y_zero_point": "z"}
    assert node.sources == {"x": "input", "y": "value", "y_scale": "value", "y_zero_point": "value"}
    assert node.shapes == {"x": (2, 6), "y": (2, 6), "y_scale": (), "y_zero_point": ()}
    assert node.warnings == ()


@pytest.mark.parametrize("opset", [11, 13, 17, 21, 28])
def test_a_dynamic_quantization_has_one_version(opset: int, tmp_path: Path) -> None:
    node = one_node(tmp_path, DYNAMIC.format(x="float[2]"), f'"" : {opset}')
    assert node.kernel == qgen.compile("DynamicQuantizeLinear", x="float32", shape=(2,)).name


def test_a_dynamic_quantization_before_opset_11_is_left_out(tmp_path: Path) -> None:
    node = one_node(tmp_path, DYNAMIC.format(x="float[2]"), '"" : 10')
    assert node.reason is not None
    assert node.reason.code == "QG202"


@pytest.mark.parametrize(("x", "shapes"), [("float[2,N]", "baked"), ("float[2,6]", "uniform"), ("float", "baked")])
def test_a_dynamic_quantization_of_unknown_shape_is_left_to_uniforms(x: str, shapes: str, tmp_path: Path) -> None:
    node = one_node(tmp_path, DYNAMIC.format(x=x), shapes=shapes)
    wanted = qgen.compile("DynamicQuantizeLinear", x="float32", shape=() if x == "float" else None)
    assert node.kernel == wanted.name


def test_a_dynamic_quantization_of_a_value_of_unknown_type_takes_its_only_type(tmp_path: Path) -> None:
    text = "g (float[2] a) => (y, s, z) { b = other.Op (a)  y, s, z = DynamicQuantizeLinear (b) }"
    node = one_node(tmp_path, text, '"" : 21, "other" : 1')
    assert node.kernel == qgen.compile("DynamicQuantizeLinear", x="float32").name


def test_results_of_a_dynamic_quantization_are_dequantized(tmp_path: Path) -> None:
    """Its scale and zero point are scalars for the next node, known by inference; in a subgraph and in a function as well."""
    text = """
        g (float[2,3] a, bool c) => (o, p) {
            y, s, z = DynamicQuantizeLinear (a)
            o = If (c) <
                then_branch = t () => (float[2,3] t1) { t0, ts, tz = DynamicQuantizeLinear (a)  t1 = DequantizeLinear (y, s, z) },
                else_branch = e () => (float[2,3] e1) { e1 = Identity (a) }>
            p = local.f (a)
        }
        <opset_import: ["" : 13], domain: "local"> f (x) => (q) { q, qs, qz = DynamicQuantizeLinear (x) }"""
    bundle = load(tmp_path, text)
    assert [(node.path, node.op, node.reason) for node in bundle.nodes] == [
        ("#0", "DynamicQuantizeLinear", None),
        ("#1/then_branch/#0", "DynamicQuantizeLinear", None),
        ("#1/then_branch/#1", "DequantizeLinear", None),
        ("#2/local.f/#0", "DynamicQuantizeLinear", None),
    ]
    assert len({node.kernel for node in bundle.nodes if node.op == "DynamicQuantizeLinear"}) == 1
    assert bundle.nodes[2].shapes["x_scale"] == ()


def test_external_data_are_not_read(tmp_path: Path) -> None:
    model = parse("g (int8[2] w) => (y) <float s = {0.5}> { y = DequantizeLinear (w, s) }")
    del model.graph.input[0]
    weights = model.graph.initializer.add(name="w", data_type=onnx.TensorProto.INT8, dims=[1 << 20, 1 << 12])
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "4096"), ("length", str(1 << 32))):
        weights.external_data.add(key=key, value=value)
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate((1 << 32) + 4096)
    (node,) = load_bundle(save(model, tmp_path), shapes="uniform").nodes
    assert (node.shapes["x"], node.sources["x"], node.kernel is not None) == ((1 << 20, 1 << 12), "initializer", True)


@pytest.fixture(scope="module")
def examples() -> list[TestCase]:
    """The examples of the three operators in onnx; making those of other operators warns, which is theirs to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return [case for case in cases if re.match(r"test_(de|dynamic)?quantizelinear", case.name) and not case.name.endswith("_expanded")]


def test_every_example_of_onnx_is_imported_and_gives_its_results(examples: list[TestCase], tmp_path: Path) -> None:
    compared = 0
    for case in examples:
        assert case.model is not None
        bundle = load_bundle(save(case.model, tmp_path))
        (node,) = bundle.nodes
        assert (case.name, node.reason) == (case.name, None)
        kernel = bundle.kernels[str(node.kernel)]
        for inputs, expected in case.data_sets or ():
            arrays = [_array(each) for each in inputs]
            results = kernel.run(dict(zip(kernel.inputs, arrays, strict=True)), device="cpu")
            for result, want in zip(results.values(), map(_array, expected), strict=True):
                assert (result.dtype, result.shape, result.tobytes()) == (want.dtype, want.shape, want.tobytes()), case.name
            compared += 1
    assert compared >= 30


def _array(value: object) -> np.ndarray[Any, Any]:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


FIXED = "float[6] s = {1,2,3,4,5,6}"


@pytest.mark.parametrize(
    ("scale", "is_plain"),
    [
        ("float[6] s = {1,2,3,4,5,6}", True),
        ("float[6] s = {1,2,3,4,5,0}", False),
        ("float[6] s = {1,2,3,4,5,1e-39}", False),
    ],
)
def test_a_kernel_relies_on_scales_that_the_model_fixes_where_they_are_plain(tmp_path: Path, scale: str, is_plain: bool) -> None:  # noqa: FBT001 - a case
    node = one_node(tmp_path, quantize(constants=scale, operands="a, s"))
    assert node.plain_scale is is_plain
    assert node.kernel is not None
    assert ("_exact_plain_" in node.kernel) is is_plain


def test_scales_of_constant_nodes_are_known_too(tmp_path: Path) -> None:
    bundle = load(
        tmp_path,
        """g (float[2,3] a, float s3) => (y0, y1, y2, y3, y4) {
            s0 = Constant <value = float[3] {1, 2, 3}> ()   s1 = Constant <value_float = 0.5> ()
            s2 = Constant <value_floats = [1.0, 2.0, 3.0]> ()   s4 = Constant <value_float = 0.0> ()
            y0 = QuantizeLinear (a, s0)  y1 = QuantizeLinear (a, s1)  y2 = QuantizeLinear (a, s2)  y3 = QuantizeLinear (a, s3)
            y4 = QuantizeLinear (a, s4)
        }""",
    )
    assert [node.plain_scale for node in bundle.nodes] == [True, True, True, False, False]
    assert [entry["plain_scale"] for entry in bundle.index["nodes"]] == [True, True, True, False, False]
    assert bundle.nodes[0].kernel == bundle.nodes[2].kernel
    assert bundle.nodes[3].kernel == bundle.nodes[4].kernel


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("form", ["raw", "typed", "large", "external"])
@pytest.mark.parametrize("last", [0.5, 0.0])
def test_the_values_of_scales_are_read_wherever_they_lie(tmp_path: Path, dtype: str, form: str, last: float) -> None:
    count = 40_000 if form == "large" else 6
    model = parse(f"g ({'float' if dtype == 'float32' else dtype}[2,{count}] a) => (y) {{ y = QuantizeLinear (a, s) }}", '"" : 23')
    values = np.full(count, 0.25, np.float32)
    values[-1] = last
    scale = numpy_helper.from_array(values.astype(numpy_dtype(DTYPES[dtype])), "s")
    if form == "typed":
        scale = helper.make_tensor("s", scale.data_type, [count], values)
    model.graph.initializer.append(scale)
    if form == "external":
        onnx.external_data_helper.convert_model_to_external_data(model, location="scales.bin", size_threshold=0)
        onnx.save(model, tmp_path / "model.onnx")
        bundle = load_bundle(tmp_path / "model.onnx")
    else:
        bundle = load_bundle(save(model, tmp_path))
    assert [node.plain_scale for node in bundle.nodes] == [last != 0]


def test_a_scale_that_is_but_the_default_of_an_input_is_not_known(tmp_path: Path) -> None:
    model = parse(quantize(constants=FIXED, operands="a, s"))
    assert load_bundle(save(model, tmp_path)).nodes[0].plain_scale
    model.graph.input.append(helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, [6]))
    assert not load_bundle(save(model, tmp_path)).nodes[0].plain_scale


def test_kernels_have_the_schedules_of_a_profile(tmp_path: Path) -> None:
    """That of the very kernel: where the model fixes the scale, of the one that relies on it."""
    text = quantize(constants=FIXED, operands="a, s")
    (own,) = load(tmp_path, text).kernels.values()
    found = Profile("", "", "webgpu", (Entry(describe_kernel(own.request), Schedule(16, 32), 0.5),))
    (tuned,) = load(tmp_path, text, profile=found).kernels.values()
    assert own.request.plain_scale
    assert tuned.request.target.workgroup_size == 32
    (other,) = load(tmp_path, text, profile=found, any_scale=True).kernels.values()
    assert other.wgsl == next(iter(load(tmp_path, text, any_scale=True).kernels.values())).wgsl
    with pytest.raises(QgenError, match="the profile is for the target `webgpu`"):
        load(tmp_path, text, profile=found, target="mobile")


def test_a_model_is_compiled_in_other_modes_and_for_other_targets(tmp_path: Path) -> None:
    text = quantize(constants=FIXED, operands="a, s")
    load(tmp_path, text)
    bundle = qgen.from_onnx(tmp_path / "model.onnx", numerics="strict", target="baseline")
    assert [(kernel.request.mode, kernel.request.target.name) for kernel in bundle.kernels.values()] == [("strict", "baseline")]


def test_kernels_take_any_scale_where_that_is_asked_for(tmp_path: Path) -> None:
    text = quantize(constants=FIXED, operands="a, s")
    known, other = load(tmp_path, text), load(tmp_path, text, any_scale=True)
    assert [bundle.nodes[0].plain_scale for bundle in (known, other)] == [True, False]
    assert load(tmp_path, text, numerics="strict").nodes[0].plain_scale is False
    assert qgen.from_onnx(tmp_path / "model.onnx", any_scale=True).kernels.keys() == other.kernels.keys()
