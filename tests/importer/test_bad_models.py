"""Files that are no models, models that are broken, and models made to do harm: one error each, or a reason at the node."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from qgen.errors import QgenError, UnavailableError
from qgen.importer import infer, load_bundle
from tests.goldens import Goldens
from tests.importer.models import build, load, one_node, parse, save

PLAIN = "g (float[2,3] a) => (y) <float s = {0.5}> { y = QuantizeLinear (a, s) }"


def quantize(x: str = "a", y: str = "y") -> onnx.NodeProto:
    return helper.make_node("QuantizeLinear", [x, "s"], [y])


SCALE = helper.make_tensor("s", TensorProto.FLOAT, [], [0.5])


def truncated(folder: Path) -> Path:
    path = save(parse(PLAIN), folder)
    path.write_bytes(path.read_bytes()[:-7])
    return path


def text_file(folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_text("pytorch, honestly\n", encoding="utf-8")
    return path


def empty_file(folder: Path) -> Path:
    (folder / "model.onnx").touch()
    return folder / "model.onnx"


def nested_too_deeply(folder: Path) -> Path:
    """Subgraphs within subgraphs, beyond what protobuf reads."""
    data = b""
    for _ in range(200):
        attribute = _field(1, b"then_branch") + b"\xa0\x01\x05" + _field(6, data)
        data = _field(1, _field(4, b"If") + _field(5, attribute))
    path = folder / "model.onnx"
    path.write_bytes(b"\x08\x0a" + _field(7, data) + _field(8, b"\x10\x15"))
    return path


def _field(number: int, payload: bytes) -> bytes:
    """Return a length-delimited field of protobuf."""
    length, size = bytearray(), len(payload)
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + payload


def defined_twice(folder: Path) -> Path:
    return save(build([quantize(), quantize()], [SCALE]), folder)


def initialiser_twice(folder: Path) -> Path:
    return save(build([quantize()], [SCALE, SCALE]), folder)


def function_twice(folder: Path) -> Path:
    model = parse(PLAIN)
    for _ in range(2):
        model.functions.append(helper.make_function("local", "f", [], [], [], [helper.make_opsetid("", 21)]))
    return save(model, folder)


def two_opsets(folder: Path) -> Path:
    model = parse(PLAIN)
    model.opset_import.append(helper.make_opsetid("ai.onnx", 19))
    return save(model, folder)


def undefined(folder: Path) -> Path:
    return save(build([quantize("nobody")], [SCALE]), folder)


def undefined_in_subgraph(folder: Path) -> Path:
    branch = helper.make_graph([quantize("nobody", "b")], "branch", [], [onnx.ValueInfoProto(name="b")])
    return save(build([helper.make_node("If", ["a"], ["y"], then_branch=branch, else_branch=branch)], [SCALE]), folder)


def undefined_output(folder: Path) -> Path:
    model = build([quantize()], [SCALE])
    model.graph.output[0].name = "nobody"
    return save(model, folder)


def cycle(folder: Path) -> Path:
    return save(build([helper.make_node("Neg", ["y"], ["b"]), quantize("b")], [SCALE]), folder)


def unsorted(folder: Path) -> Path:
    return save(build([quantize("b"), helper.make_node("Neg", ["a"], ["b"])], [SCALE]), folder)


def own_output(folder: Path) -> Path:
    return save(build([quantize("y")], [SCALE]), folder)


def with_functions(folder: Path, calls: dict[str, list[str]]) -> Path:
    """Write a model whose functions call others, each as often as it is named."""
    model = parse("g (float[2] a) => (y) { y = local.f0 (a) }")
    for name, called in calls.items():
        values = ["x", *(f"v{index}" for index in range(len(called)))]
        nodes = [helper.make_node(each, [values[index]], [values[index + 1]], domain="local") for index, each in enumerate(called)]
        nodes.append(helper.make_node("Neg", [values[-1]], ["y"]))
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
        model.functions.append(helper.make_function("local", name, ["x"], ["y"], nodes, imports))
    return save(model, folder)


def recursion(folder: Path) -> Path:
    return with_functions(folder, {"f0": ["f1"], "f1": ["f2"], "f2": ["f1"]})


def long_chain(folder: Path) -> Path:
    return with_functions(folder, {f"f{index}": [f"f{index + 1}"] for index in range(3000)} | {"f3000": []})


def explosion(folder: Path) -> Path:
    return with_functions(folder, {f"f{index}": [f"f{index + 1}"] * 10 for index in range(30)} | {"f30": []})


def with_tensor(folder: Path, change: Callable[[TensorProto], object]) -> Path:
    model = parse("g (float[2,3] a) => (y) <float s = {0.5}, uint8[2] z = {1, 2}> { y = QuantizeLinear (a, s, z) }")
    change(model.graph.initializer[1])
    return save(model, folder)


def negative_dims(folder: Path) -> Path:
    return with_tensor(folder, lambda tensor: tensor.dims.__setitem__(0, -2))


def wrong_length(folder: Path) -> Path:
    return with_tensor(folder, lambda tensor: tensor.dims.append(1 << 62))


def short_bytes(folder: Path) -> Path:
    def change(tensor: TensorProto) -> None:
        tensor.ClearField("int32_data")
        tensor.raw_data = b"\x01"

    return with_tensor(folder, change)


def no_type(folder: Path) -> Path:
    return with_tensor(folder, lambda tensor: setattr(tensor, "data_type", 0))


def external(folder: Path, location: str, **entries: str) -> Path:
    def change(tensor: TensorProto) -> None:
        tensor.ClearField("int32_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in ({"location": location} | entries).items():
            tensor.external_data.add(key=key, value=value)

    (folder / "there.bin").write_bytes(b"\x01\x02\x03\x04")
    return with_tensor(folder, change)


def absolute(folder: Path) -> Path:
    return external(folder, str(Path(os.sep) / "etc" / "passwd"))


def through_a_link(folder: Path) -> Path:
    (folder / "inside").mkdir()
    (folder / "secret.bin").write_bytes(b"\x01\x02")
    (folder / "inside" / "link.bin").symlink_to(folder / "secret.bin")
    return external(folder / "inside", "link.bin")


def missing(folder: Path) -> Path:
    return external(folder, "absent.bin")


def too_short(folder: Path) -> Path:
    return external(folder, "there.bin", offset="3")


def no_offset(folder: Path) -> Path:
    return external(folder, "there.bin", offset="-1")


def not_utf8(folder: Path) -> Path:
    path = save(parse(PLAIN), folder)
    path.write_bytes(path.read_bytes().replace(b"QuantizeLinear", b"Quanti\xffeLinear"))
    return path


def not_utf8_dim(folder: Path) -> Path:
    path = save(parse(PLAIN.replace("[2,3]", "[batch,3]")), folder)
    path.write_bytes(path.read_bytes().replace(b"batch", b"bat\xffh"))
    return path


GOLDEN = {
    "QG400": truncated,
    "QG401": lambda folder: folder / "absent.onnx",
    "QG410": defined_twice,
    "QG411": undefined,
    "QG412": cycle,
    "QG413": recursion,
    "QG414": negative_dims,
    "QG415": absolute,
    "QG416": missing,
    "QG417": not_utf8,
}
OTHERS = [
    *(("QG400", make) for make in (text_file, empty_file, nested_too_deeply)),
    *(("QG410", make) for make in (initialiser_twice, function_twice, two_opsets)),
    *(("QG411", make) for make in (undefined_in_subgraph, undefined_output)),
    *(("QG412", make) for make in (unsorted, own_output)),
    *(("QG413", make) for make in (long_chain, explosion)),
    *(("QG414", make) for make in (wrong_length, short_bytes, no_type, no_offset)),
    *(("QG415", make) for make in (through_a_link,)),
    *(("QG416", make) for make in (too_short,)),
    *(("QG417", make) for make in (not_utf8_dim,)),
]


def error_of(path: Path) -> QgenError:
    before = sorted(path.parent.rglob("*"))
    with pytest.raises(QgenError) as caught:
        load_bundle(path)
    assert sorted(path.parent.rglob("*")) == before
    return caught.value


@pytest.mark.parametrize("code", GOLDEN)
def test_a_bad_file_is_one_error(code: str, tmp_path: Path, golden: Goldens) -> None:
    error = error_of(GOLDEN[code](tmp_path))
    assert error.code == code
    golden.check(f"errors/{code}.err", f"{error}\n")


@pytest.mark.parametrize(("code", "make"), OTHERS, ids=[make.__name__ for _, make in OTHERS])
def test_other_bad_files_have_the_same_codes(code: str, make: Callable[[Path], Path], tmp_path: Path) -> None:
    error = error_of(make(tmp_path))
    assert (error.code, error.place is not None) == (code, True)


@pytest.mark.parametrize(
    "location", ["../there.bin", "a/../../there.bin", "C:\\there.bin", "..\\there.bin", "\\\\host\\there.bin", "", "a\0b"]
)
def test_external_data_stay_within_the_folder(location: str, tmp_path: Path) -> None:
    assert error_of(external(tmp_path, location)).code == "QG415"


def test_external_data_beside_the_model_are_accepted_also_through_a_link_to_both(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    path = external(tmp_path / "blobs", "data.bin")
    (tmp_path / "blobs" / "there.bin").rename(tmp_path / "blobs" / "1234")
    (tmp_path / "data.bin").symlink_to(tmp_path / "blobs" / "1234")
    (tmp_path / "model.onnx").symlink_to(path)
    (node,) = load_bundle(tmp_path / "model.onnx").nodes
    assert node.shapes["y_zero_point"] == (2,)


@pytest.mark.parametrize("path", ["a\0b", ".", "x" * 5000])
def test_what_is_no_path_to_a_file_cannot_be_read(path: str) -> None:
    with pytest.raises(QgenError, match="QG401"):
        load_bundle(path)


def test_a_file_of_2_gib_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "model.onnx").open("wb") as file:
        file.truncate(1 << 31)
    assert error_of(tmp_path / "model.onnx").code == "QG400"


def test_without_onnx_the_importer_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Goldens) -> None:
    for name in [name for name in sys.modules if name.startswith(("qgen.importer.", "onnx.")) and name != "qgen.importer.load"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UnavailableError) as caught:
        load_bundle(tmp_path / "model.onnx")
    golden.check("errors/QG402.err", f"{caught.value}\n")


def test_there_are_two_choices_of_shapes(tmp_path: Path, golden: Goldens) -> None:
    with pytest.raises(QgenError) as caught:
        load(tmp_path, PLAIN, shapes="bake")
    golden.check("errors/QG403.err", f"{caught.value}\n")


@pytest.mark.parametrize(("choice", "code"), [({"numerics": "lax"}, "QG104"), ({"target": "webgl"}, "QG103")])
def test_an_unknown_mode_or_target_is_an_error_and_no_reason(choice: dict[str, str], code: str, tmp_path: Path) -> None:
    with pytest.raises(QgenError, match=code):
        load(tmp_path, PLAIN, **choice)


REASONS = {
    "QG420": "g (float[2] a) => (y, s, z) { y, s, z = other.DynamicQuantizeLinear (a) }",
    "QG421": "g (float[2] a, float16 s) => (y) { b = other.Op (a)  y = QuantizeLinear <precision = 1> (b, s) }",
    "QG422": "g (double[2] a, float s) => (y) { y = QuantizeLinear (a, s) }",
    "QG423": "g (float[2] a, int64[R] r, float[1] t) => (y) { s = Reshape (t, r)  y = QuantizeLinear (a, s) }",
    "QG424": 'g (float[2] a, float s) => (y) { y = QuantizeLinear <axis = "first"> (a, s) }',
    "QG425": "g (float[2] a) => (y) { y = QuantizeLinear (a) }",
    "QG427": """g (float[2] a) => (y) { y = Neg (a) }
        <domain: "local", opset_import: ["" : 21]> f (x, s) => (y) { y = DequantizeLinear (x, s) }""",
    "QG428": "g (uint8[2] a, float s, int8 z) => (y) { y = DequantizeLinear (a, s, z) }",
}


@pytest.mark.parametrize("code", REASONS)
def test_a_bad_node_is_left_out_with_its_reason(code: str, tmp_path: Path, golden: Goldens) -> None:
    node = one_node(tmp_path, REASONS[code], '"" : 23, "other" : 1, "local" : 1')
    assert node.kernel is None
    assert node.reason is not None
    assert node.reason.code == code
    golden.check(f"errors/{code}.err", f"{node.path} {node.domain} {node.op}: {node.reason}\n")


def test_operators_that_are_not_imported_are_left_out(tmp_path: Path, golden: Goldens) -> None:
    node = one_node(tmp_path, PLAIN, '"other" : 1')
    assert node.reason is not None
    golden.check("errors/QG426.err", f"{node.path} {node.domain} {node.op}: {node.reason}\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("g (float[2] a, float s) => (y) { y = other.QuantizeLinear (a, s) }", "QG420"),
        ("g (float[2] a, float s) => (y) { y = com.microsoft.QLinearAdd (a, s) }", "QG420"),
        ("g (float[2] a, float s) => (y) { y = QuantizeLinear <axes = 1> (a, s) }", "QG424"),
        ("g (float[2] a, float s) => (y) { y = QuantizeLinear <output_dtype = 999> (a, s) }", "QG422"),
        ("g (float[2] a, float s, int8 z) => (y) { y = QuantizeLinear <output_dtype = 2> (a, s, z) }", "QG428"),
        ("g (float[2] a, float s) => (int8[2] y) { y = QuantizeLinear (a, s) }", "QG428"),
        ("g (float[2] a, float s) => (y) { y = QuantizeLinear (a, s, s, s) }", "QG425"),
        ("g (float[2] a, float s) => (y, z) { y, z = QuantizeLinear (a, s) }", "QG425"),
        ("g (float[2] a) => (y, s) { y, s = DynamicQuantizeLinear (a) }", "QG425"),
        ("g (float[2] a, float[2] b) => (y, s, z) { y, s, z = DynamicQuantizeLinear (a, b) }", "QG425"),
        ("g () => (y, s, z) { y, s, z = DynamicQuantizeLinear () }", "QG425"),
        ("g (float[2] a) => (y, s, z) { y, s, z = DynamicQuantizeLinear <axis = 1> (a) }", "QG424"),
        ("g (float16[2] a) => (y, s, z) { y, s, z = DynamicQuantizeLinear (a) }", "QG204"),
        ("g (float[2] a) => (int8[2] y, s, z) { y, s, z = DynamicQuantizeLinear (a) }", "QG428"),
        ("g (float[2] a) => (y, float16 s, z) { y, s, z = DynamicQuantizeLinear (a) }", "QG428"),
        ("g (float[2] a) => (y, s, int8 z) { y, s, z = DynamicQuantizeLinear (a) }", "QG428"),
        ("g (float[2] a) => (y, s, z) { y, s, z = com.microsoft.DynamicQuantizeLinear (a) }", "QG420"),
        ("g (seq(float[2]) a, double s) => (y) { y = DequantizeLinear (a, s) }", "QG422"),
        ("g (float[2] a, float[3] s) => (y) { y = QuantizeLinear <axis = 0> (a, s) }", "QG226"),
        ("g (float[2] a, float[2] s) => (y) { y = QuantizeLinear <axis = 3> (a, s) }", "QG222"),
        ("g (float[N,2] a, float[2] s) => (y) { y = QuantizeLinear <axis = 3> (a, s) }", "QG222"),
        ("g (float[N,2] a, float[3] s) => (y) { y = QuantizeLinear (a, s) }", "QG226"),
        ("g (float[N,2] a, float[3,3] s) => (y) { y = QuantizeLinear (a, s) }", "QG227"),
        ("g (float[N,2] a, float[3] s) => (y) { y = QuantizeLinear <block_size = 2> (a, s) }", "QG227"),
        ("g (float[N,2] a, float[3,3] s) => (y) { y = QuantizeLinear <axis = 0, block_size = 2> (a, s) }", "QG225"),
        ("g (float[N,2] a, float[2] s, uint8 z) => (y) { y = QuantizeLinear (a, s, z) }", "QG228"),
        ("g (float[N,2] a, float[1] s, uint8[2] z) => (y) { y = QuantizeLinear (a, s, z) }", "QG228"),
        ("g (float[N,2] a, float[3,1] s, uint8[3,2] z) => (y) { y = QuantizeLinear <block_size = 2> (a, s, z) }", "QG228"),
        ("g (float[N,2] a, float s) => (y) { y = QuantizeLinear <block_size = -1> (a, s) }", "QG223"),
        ("g (float[9007199254740993] a, float s) => (y) { y = QuantizeLinear (a, s) }", "QG221"),
        ("g (float[8589934592] a, float s) => (y) { y = QuantizeLinear (a, s) }", "QG302"),
        ("g (float[0,9007199254740992] a, float[9007199254740992] s) => (y) { y = QuantizeLinear (a, s) }", "QG302"),
    ],
)
def test_each_defect_of_a_node_has_its_code(text: str, code: str, tmp_path: Path) -> None:
    reason = one_node(tmp_path, text, '"" : 23, "other" : 1, "com.microsoft" : 1').reason
    assert reason is not None
    assert reason.code == code


@pytest.mark.parametrize(("opset", "code"), [(9, "QG202"), (29, "QG202"), (1 << 40, "QG202"), (12, None)])
def test_the_opset_that_a_model_imports_decides(opset: int, code: str | None, tmp_path: Path) -> None:
    reason = one_node(tmp_path, PLAIN, f'"" : {opset}').reason
    assert (reason and reason.code) == code


def test_a_node_that_names_an_attribute_twice_is_left_out(tmp_path: Path) -> None:
    model = parse("g (float[2] a, float[2] s) => (y) { y = QuantizeLinear <axis = 0> (a, s) }")
    model.graph.node[0].attribute.append(model.graph.node[0].attribute[0])
    (node,) = load_bundle(save(model, tmp_path)).nodes
    assert node.reason is not None
    assert node.reason.message == "the attribute `axis` is given twice"


def test_negative_dimensions_are_unknown_ones_with_a_warning(tmp_path: Path) -> None:
    model = parse("g (float[2,3] a) => (y) <float s = {0.5}> { b = Neg (a)  y = QuantizeLinear (b, s) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    bundle = load_bundle(save(model, tmp_path))
    (first, second) = bundle.nodes[0].shapes["x"] or ()
    assert (isinstance(first, int), second) == (False, 3)
    assert ["negative dimensions" in warning for warning in bundle.warnings] == [True]


DYING_HOSTS = {
    "dies": "import os, sys\nprint('{}', flush=True)\nsys.stdin.readline()\nos.abort()\n",
    "dies at once": "import os\nos.abort()\n",
    "fails": "import sys\nprint('{}', flush=True)\nsys.stdin.readline()\nprint('{\"failed\": \"a type is not inferable\"}', flush=True)\n",
}


@pytest.mark.parametrize("script", DYING_HOSTS.values(), ids=DYING_HOSTS)
def test_where_native_code_dies_what_the_model_declares_is_used(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = tmp_path / "host.py"
    host.write_text(script, encoding="utf-8")
    monkeypatch.setattr(infer, "_HOST_FILE", host)
    bundle = load(
        tmp_path, "g (float[2,3] a) => (uint8[2,3] y, z) <float s = {0.5}> { y = QuantizeLinear (a, s)  z = DequantizeLinear (y, s) }"
    )
    assert [node.kernel is not None for node in bundle.nodes] == [True, True]
    assert [warning.partition(":")[0] for warning in bundle.warnings] == [
        "shape inference failed on the model, so only what it declares is known"
    ]


WILD = (-(2**63), -(2**31), -1, 0, 1, 2, 7, 2**31, 2**32, 2**53, 2**62, 2**63 - 1)


@pytest.mark.parametrize("seed", range(4))
def test_wild_numbers_in_a_model_end_in_an_error_or_a_reason(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    source = parse(
        """
        g (float[1,8,8] a, bool c) => (y, o) <float s = {0.5}, uint8 z = {3}, float[4,8,3] w = {}, int64[2] r = {0, -1}> {
            v = Conv <strides = [1], pads = [1, 1], dilations = [1], group = 1> (a, w)   t = Reshape (v, r)   u = Concat <axis = 0> (t, t)
            p = Transpose <perm = [1, 0]> (u)   q = QuantizeLinear <axis = 1> (p, s, z)   y = DequantizeLinear <axis = 1> (q, s, z)
            o = If (c) <then_branch = e () => (f) { g0 = Slice (p, r, r)  f = QuantizeLinear (g0, s) },
                        else_branch = h () => (i) { i = QuantizeLinear <block_size = 2> (p, s) }>
        }""".replace("float[4,8,3] w = {}", "float[4,8,3] w = {" + ",".join(["1"] * 96) + "}")
    )
    outcomes = set()
    for _ in range(60):
        model = onnx.ModelProto()
        model.CopyFrom(source)
        for _ in range(chosen.randrange(1, 5)):
            _put_wild_number(model, chosen)
        try:
            bundle = load_bundle(save(model, tmp_path), shapes=chosen.choice(["baked", "uniform"]))
        except QgenError as error:
            outcomes.add(error.code)
        else:
            outcomes |= {"kernel" if node.reason is None else node.reason.code for node in bundle.nodes}
    assert {"kernel", "QG414"} <= outcomes


def _put_wild_number(model: onnx.ModelProto, chosen: random.Random) -> None:
    attributes = [attribute for node in model.graph.node for attribute in node.attribute if attribute.type != attribute.GRAPH]
    attribute = chosen.choice(attributes)
    match chosen.randrange(5):
        case 0 if attribute.ints:
            attribute.ints[chosen.randrange(len(attribute.ints))] = chosen.choice(WILD)
        case 1:
            attribute.i = chosen.choice(WILD)
        case 2:
            attribute.type = chosen.choice(list(onnx.AttributeProto.AttributeType.values()))
        case 3:
            tensor = chosen.choice(model.graph.initializer)
            tensor.dims[:] = [chosen.choice(WILD) for _ in tensor.dims]
        case _:
            for dim in model.graph.input[0].type.tensor_type.shape.dim:
                dim.dim_value = chosen.choice(WILD)
