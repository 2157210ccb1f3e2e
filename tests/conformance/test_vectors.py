"""The test vectors: what the oracle says, what onnx.reference says where it is right, and what every stack computes."""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pytest

from qgen.arrays import to_codes
from qgen.check.compare import find_mismatches, find_reference, run_kernel
from qgen.check.edges import decode
from qgen.dtypes import DTYPES
from qgen.oracle.groups import expand_groups
from tests.conformance.stacks import RUNTIMES
from tests.conformance.vectors import VECTORS, Array, load_vector, print_vector
from tests.goldens import Goldens
from tests.oracle.implementations import run_onnx_reference
from tests.oracle.nodes import same_numbers
from tests.runtime.stacks import STACKS

NOT_OF_THE_REFERENCE: Final = {
    "quantize_f32_by_f16_i4": "row 5: onnx.reference divides in float32",
    "dequantize_i32_f32_zero_point": "row 20: onnx.reference subtracts in float64",
}
"""Vectors in which onnx.reference computes something else, by rows of SEMANTICS 2.1."""


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_is_what_the_oracle_says(name: str, golden: Goldens) -> None:
    golden.check(f"vectors/{name}.json", print_vector(name))


def load(name: str, golden: Goldens) -> tuple[dict[str, Array], Array]:
    """Return the inputs and the output as they stand in the file."""
    arrays = load_vector(golden.read(f"vectors/{name}.json"))
    return {key: array for key, array in arrays.items() if key != "y"}, arrays["y"]


@pytest.mark.parametrize("device", ["cpu", *STACKS, *RUNTIMES])
def test_a_stack_computes_the_vectors(device: str, golden: Goldens) -> None:
    for name, vector in VECTORS.items():
        kernel = vector.kernel
        inputs, want = load(name, golden)
        assert inputs["x"].shape == want.shape == vector.shape
        wrong = find_mismatches(run_kernel(kernel, device, inputs)["y"], want, kernel.request.signature.y)
        assert wrong.size == 0, f"{name} on {device}: elements {wrong.tolist()}"


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_agrees_with_onnx_reference_where_that_is_right(name: str, golden: Goldens) -> None:
    kernel = VECTORS[name].kernel
    signature, granularity = kernel.request.signature, kernel.request.granularity
    inputs, want = load(name, golden)
    got = run_onnx_reference(signature, granularity, list(inputs.values()))
    inside = _is_inside(name, inputs) if signature.is_quantize else np.ones(want.shape, np.bool_)
    assert inside.mean() > 0.4
    agrees = same_numbers(got[inside], want[inside])
    assert agrees == (name not in NOT_OF_THE_REFERENCE)


def _is_inside(name: str, inputs: dict[str, Array]) -> Array:
    """Return where the quotient is finite in the division type and far from the ends of int32, beyond which the reference is undefined.

    Rows 1 to 4 of SEMANTICS 2.1; and row 17 is what becomes of NaN where there is none.
    """
    kernel = VECTORS[name].kernel
    x, scale = (decode(to_codes(array, array.dtype), kernel.compiled.checked.operand(key).dtype) for key, array in list(inputs.items())[:2])
    with np.errstate(all="ignore"):
        quotient = x / expand_groups("y_scale", scale, x.shape, kernel.request.granularity)
    division = kernel.request.signature.division
    return np.abs(quotient) < (2.0**15 if division == DTYPES["float16"] else 2.0**29)


def test_what_the_reference_does_otherwise_is_named_by_a_vector() -> None:
    assert set(NOT_OF_THE_REFERENCE) <= set(VECTORS)


def test_a_vector_says_which_node_it_is_of(golden: Goldens) -> None:
    node = json.loads(golden.read("vectors/quantize_f16_in_f32_u8.json"))["node"]
    assert node == {
        "op": "QuantizeLinear",
        "opset": 28,
        "attributes": {"axis": 0, "precision": "float32"},
        "output_dtype": "uint8",
    }


def test_a_vector_that_is_changed_is_seen(golden: Goldens) -> None:
    kernel = VECTORS["dequantize_u8_f32"].kernel
    inputs, want = load("dequantize_u8_f32", golden)
    changed = want.copy()
    changed.view(np.uint32)[5] ^= 1
    words = run_kernel(kernel, "cpu", inputs)["y"]
    assert find_mismatches(words, changed, kernel.request.signature.y).tolist() == [5]
    assert find_reference(kernel, inputs)["y"].tobytes() == want.tobytes()
