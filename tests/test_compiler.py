"""Requests and what comes of them: choices that do not exist, equal kernels from different words, and the errors of the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qgen
from qgen.arrays import from_codes
from qgen.compiler import compile_kernel
from qgen.errors import QgenError
from qgen.formulas import find_operator
from qgen.kernel import Kernel
from qgen.passes.pipeline import PASSES
from qgen.profile import Profile
from qgen.request import Request, make_request, request_of_sidecar
from qgen.shapes import Blocked, PerAxis, PerTensor
from tests.emit.sample import sample
from tests.goldens import Goldens
from tests.passes.build import lower


def quantize(**choices: Any) -> Kernel:  # noqa: ANN401 - what `qgen.compile` takes
    return qgen.compile("QuantizeLinear", **{"x": "float32", "y": "uint8", **choices})


def unwritable(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "kernels"


def shifted_float8() -> object:
    kernel = qgen.compile("DequantizeLinear", x="float8e4m3fn", scale="float32", y="float32", zero_point=True, name="k")
    one = from_codes(np.array([0x38], np.uint32), "float8e4m3fn", ())
    return kernel.run({"x": one, "x_scale": np.ones((), np.float32), "x_zero_point": one}, device="cpu")


def broken_sidecar() -> Request:
    sidecar = dict(quantize().sidecar)
    del sidecar["op"]
    return request_of_sidecar(sidecar)


UNCOMPUTED = """
op Widen(x: X, x_scale: S per group) -> y: Y
{
    y = ((x as float16) * (x_scale as float16)) as Y;
}
"""

COLLIDING = """
op Scale(mul_f32: X, x_scale: S per group) -> y: Y
{
    y = ((mul_f32 as float32) * (x_scale as float32)) as Y;
}
"""

ERRORS: dict[str, Callable[[Path], object]] = {
    "QG101": lambda _: quantize(y="unit8"),
    "QG102": lambda _: find_operator("Quantize"),
    "QG103": lambda _: quantize(target="webgpu:workgroup_size=257"),
    "QG104": lambda _: quantize(numerics="loose"),
    "QG105": lambda _: quantize(entry_point="target"),
    "QG106": lambda _: broken_sidecar(),
    "QG107": lambda _: quantize(granularity=32),
    "QG114": lambda folder: quantize(profile=folder / "none.toml"),
    "QG108": lambda _: quantize(target="software", profile=Profile("adapter", "wgpu:vulkan", "webgpu", ())),
    "QG110": lambda folder: quantize(name="k").save(unwritable(folder)),
    "QG111": lambda _: quantize(name="k").run({"x": np.zeros(3, np.float32), "scale": np.ones((), np.float32)}, device="cpu"),
    "QG112": lambda _: shifted_float8(),
    "QG113": lambda _: quantize(name="k", plain_scale=True).run({"x": np.zeros(3, np.float32), "y_scale": np.zeros((), np.float32)}, "cpu"),
    "QG301": lambda _: lower(UNCOMPUTED),
    "QG304": lambda _: lower(COLLIDING),
    "QG302": lambda _: quantize(shape=(2**16, 2**16)),
    "QG303": lambda _: quantize(shape=(2**15, 2**15)),
}
"""By code: what raises it, in a folder of its own."""


def fail(code: str, folder: Path) -> QgenError:
    with pytest.raises(QgenError) as caught:
        ERRORS[code](folder)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("code", ERRORS)
def test_errors_read_well(code: str, golden: Goldens, tmp_path: Path) -> None:
    golden.check(f"errors/{code}.err", f"{fail(code, tmp_path)}\n".replace(str(tmp_path), "folder"))


@pytest.mark.parametrize(
    ("choices", "code", "said"),
    [
        ({"numerics": ""}, "QG104", "modes are strict"),
        ({"entry_point": "1st"}, "QG105", "`1st` cannot name an entry point"),
        ({"entry_point": ""}, "QG105", "`` cannot name an entry point"),
        ({"entry_point": "__main"}, "QG105", "`__main` cannot name an entry point"),
        ({"entry_point": "größe"}, "QG105", "cannot name an entry point"),
        ({"entry_point": "x"}, "QG105", "`x` cannot name an entry point: it names something else in the text"),
        ({"entry_point": "quantize_linear"}, "QG105", "`quantize_linear` cannot name an entry point"),
        ({"entry_point": "round_shift", "numerics": "strict"}, "QG105", "`round_shift` cannot name an entry point"),
        ({"name": "../k"}, "QG105", "`../k` cannot name a kernel"),
        ({"name": "K"}, "QG105", "`K` cannot name a kernel"),
        ({"name": ""}, "QG105", "`` cannot name a kernel"),
        ({"name": "k" * 129}, "QG105", "cannot name a kernel"),
        ({"group": 4}, "QG105", "bind group 4 does not exist"),
        ({"group": -1}, "QG105", "bind group -1 does not exist"),
        ({"target": "webgpo"}, "QG103", "did you mean `webgpu`?"),
        ({"target": "webgpu:rows=4"}, "QG103", "a target has no option `rows`"),
        ({"target": "webgpu:lanes=132"}, "QG103", "`lanes` is a multiple of 4 from 4 to 128, not `132`"),
        ({"target": "webgpu:lanes=6"}, "QG103", "`lanes` is a multiple of 4 from 4 to 128, not `6`"),
        ({"target": "webgpu:lanes=0"}, "QG103", "`lanes` is a multiple of 4 from 4 to 128, not `0`"),
        ({"target": "webgpu:workgroup_size=x"}, "QG103", "is a whole number from 1 to 256"),
        ({"target": "webgpu:max_workgroups_per_dimension=0"}, "QG103", "is a whole number from 1 to 65535"),
        ({"granularity": "blocked"}, "QG107", "`granularity` cannot be of type `str`"),
        ({"granularity": qgen.blocked}, "QG107", "`granularity` cannot be of type `function`"),
        ({"zero_point": 128}, "QG107", "`zero_point` cannot be of type `int`"),
        ({"zero_point": np.zeros(3, np.uint8)}, "QG107", "`zero_point` cannot be of type `ndarray`"),
        ({"saturate": "no"}, "QG107", "`saturate` cannot be of type `str`"),
        ({"numerics": None}, "QG107", "`numerics` cannot be of type `NoneType`"),
        ({"target": None}, "QG107", "`target` cannot be of type `NoneType`"),
        ({"entry_point": 5}, "QG107", "`entry_point` cannot be of type `int`"),
        ({"name": 5}, "QG107", "`name` cannot be of type `int`"),
        ({"group": "1"}, "QG107", "`group` cannot be of type `str`"),
        ({"group": 1.0}, "QG107", "`group` cannot be of type `float`"),
        ({"group": True}, "QG107", "`group` cannot be of type `bool`"),
    ],
)
def test_choices_that_do_not_exist(choices: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(QgenError, match=re.escape(said)) as caught:
        quantize(**choices)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["x", "y_scale", "y_zero_point"])
@pytest.mark.parametrize("given", [None, 1.5, "1", [1.5, 2.5], [[1], [2, 3]], np.float64(1), np.ones(2, complex)], ids=repr)
def test_an_input_that_is_no_array_of_its_type_is_named(name: str, given: object) -> None:
    inputs: dict[str, Any] = {"x": np.ones(2, np.float32), "y_scale": np.float32(1), "y_zero_point": np.uint8(0)}
    kernel = quantize(zero_point=True)
    assert kernel.run(inputs, device="cpu")["y"].tolist() == kernel.reference(inputs)["y"].tolist() == [1, 1]
    for evaluate in (kernel.reference, partial(kernel.run, device="cpu")):
        with pytest.raises(QgenError, match="was given where") as caught:
            evaluate(inputs | {name: given})
        assert (caught.value.code, caught.value.place) == ("QG240", f"input `{name}`")


def test_a_list_of_numbers_of_the_right_type_is_an_array() -> None:
    inputs: dict[str, Any] = {"x": [np.float32(1), np.float32(2)], "y_scale": np.float32(1)}
    assert quantize().run(inputs, device="cpu")["y"].tolist() == quantize().reference(inputs)["y"].tolist() == [1, 2]


def test_a_tensor_at_the_limit_of_a_binding_is_taken_and_one_beyond_it_refused() -> None:
    elements = (1 << 27) // 4
    assert quantize(shape=(elements,)).request.shape == (elements,)
    with pytest.raises(QgenError, match=f"needs {4 * elements + 4} bytes of `x`"):
        quantize(shape=(elements + 1,))


def test_equal_kernels_have_equal_texts_whoever_asks_for_them() -> None:
    asked = [
        quantize(opset=10),
        quantize(opset=13),
        quantize(opset=28),
        quantize(scale="float32"),
        quantize(precision="float32"),
        quantize(domain="com.microsoft", opset=1),
        quantize(granularity=PerTensor()),
    ]
    assert len({kernel.wgsl for kernel in asked}) == 1
    assert len({kernel.name for kernel in asked}) == 1


def test_a_negative_axis_is_the_axis_it_means_where_the_shape_is_known() -> None:
    last, second = (quantize(granularity=PerAxis(axis), shape=(3, 4)) for axis in (-1, 1))
    assert last.wgsl == second.wgsl
    assert last.request.granularity == PerAxis(1)
    assert quantize(granularity=Blocked(-1, 2), shape=(3, 4)).request.granularity == Blocked(1, 2)
    assert quantize(granularity=PerAxis(-1)).request.granularity == PerAxis(-1)


def test_the_request_of_a_sidecar_compiles_to_the_same_kernel() -> None:
    for request in sample(67):
        compiled = compile_kernel(request)
        again = compile_kernel(request_of_sidecar(compiled.sidecar))
        assert (again.wgsl, again.sidecar) == (compiled.wgsl, compiled.sidecar)


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({}, "quantize_linear_f32_f32_u8"),
        ({"zero_point": True, "y": "int4"}, "quantize_linear_f32_f32_i4_zp"),
        ({"granularity": PerAxis(-1)}, "quantize_linear_f32_f32_u8_axism1"),
        ({"granularity": Blocked(1, 32), "shape": (64, 100)}, "quantize_linear_f32_f32_u8_axis1_block32_64x100"),
        ({"shape": ()}, "quantize_linear_f32_f32_u8_scalar"),
        ({"shape": (10,) * 5 + (1,) * 20}, "quantize_linear_f32_f32_u8_rank25"),
        ({"x": "float16", "precision": "float32"}, "quantize_linear_f16_f16_u8_div_f32"),
    ],
)
def test_names_are_readable(choices: dict[str, Any], name: str) -> None:
    kernel = quantize(**choices)
    assert re.fullmatch(rf"{name}_exact_[0-9a-f]{{8}}", kernel.name)


def test_passes_are_observed_in_order() -> None:
    seen: list[str] = []
    compile_kernel(make_request("QuantizeLinear", x="float32"), lambda name, _: seen.append(name))
    assert tuple(seen) == PASSES


def test_only_the_name_and_the_hash_change_with_the_shape() -> None:
    one, other = quantize(shape=(1000,)), quantize(shape=(1001,))
    assert one.name != other.name
    assert one.sidecar["shape"] == [1000]
    assert other.sidecar["shape"] == [1001]


def test_a_device_is_named_in_any_case_and_by_nothing_but_text() -> None:
    inputs = {"x": np.zeros(3, np.float32), "y_scale": np.ones((), np.float32)}
    assert quantize().run(inputs, device=" CPU ")["y"].tolist() == [0, 0, 0]
    for device in (None, 0):
        with pytest.raises(QgenError, match="`device` cannot be of type") as caught:
            quantize().run(inputs, device=device)  # type: ignore[arg-type]  # what a user may give
        assert caught.value.code == "QG107"
