"""The oracle on other people's examples: the operators' specification, onnx.backend.test, and cases from public bug reports."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from qgen.arrays import from_codes, numpy_dtype
from qgen.dtypes import parse_dtype
from tests.oracle.nodes import Array, evaluate_node, same_bits

_FOLDER = Path(__file__).parent
SPEC_EXAMPLES: list[dict[str, Any]] = json.loads((_FOLDER / "spec_examples.json").read_text(encoding="utf-8"))
REPORT_CASES: list[dict[str, Any]] = json.loads((_FOLDER / "report_cases.json").read_text(encoding="utf-8"))
BACKEND_CASES = (
    "test_dequantizelinear",
    "test_dequantizelinear_axis",
    "test_dequantizelinear_blocked",
    "test_dequantizelinear_e4m3fn",
    "test_dequantizelinear_e4m3fn_float16",
    "test_dequantizelinear_e4m3fn_zero_point",
    "test_dequantizelinear_e5m2",
    "test_dequantizelinear_float4e2m1",
    "test_dequantizelinear_int16",
    "test_dequantizelinear_int2",
    "test_dequantizelinear_int4",
    "test_dequantizelinear_uint16",
    "test_dequantizelinear_uint2",
    "test_dequantizelinear_uint4",
    "test_quantizelinear",
    "test_quantizelinear_axis",
    "test_quantizelinear_blocked_asymmetric",
    "test_quantizelinear_blocked_symmetric",
    "test_quantizelinear_e4m3fn",
    "test_quantizelinear_e5m2",
    "test_quantizelinear_float4e2m1",
    "test_quantizelinear_int16",
    "test_quantizelinear_int2",
    "test_quantizelinear_int4",
    "test_quantizelinear_uint16",
    "test_quantizelinear_uint2",
    "test_quantizelinear_uint4",
)


@pytest.mark.parametrize("example", SPEC_EXAMPLES, ids=lambda example: str(example["name"]))
def test_an_example_of_the_specification(example: dict[str, Any]) -> None:
    got = evaluate_node(example["op"], example["opset"], example["attributes"], [_tensor(tensor) for tensor in example["inputs"]])
    assert same_bits(got, _tensor(example["y"]))


@pytest.mark.parametrize("case", REPORT_CASES, ids=lambda case: str(case["name"]))
def test_a_case_of_a_public_report(case: dict[str, Any]) -> None:
    got = evaluate_node(case["op"], case["opset"], case["attributes"], [_tensor(tensor) for tensor in case["inputs"]])
    values = [float(value) for value in case["expect"]]
    assert same_bits(got, _array(values, got.dtype, list(got.shape)))


@pytest.mark.parametrize("name", BACKEND_CASES)
def test_a_case_of_onnx_backend_test(name: str, backend_cases: dict[str, TestCase]) -> None:
    case = backend_cases[name]
    assert case.model is not None
    assert case.data_sets
    (node,) = case.model.graph.node
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    for inputs, outputs in case.data_sets:
        (want,) = (_from_onnx(array) for array in outputs)
        assert same_bits(evaluate_node(node.op_type, case.model.opset_import[0].version, attributes, [_from_onnx(a) for a in inputs]), want)


def test_no_case_of_onnx_backend_test_is_left_out(backend_cases: dict[str, TestCase]) -> None:
    assert sorted(backend_cases) == sorted(BACKEND_CASES)


@pytest.fixture(scope="module")
def backend_cases() -> dict[str, TestCase]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx computes the cases of all its operators, some of them at infinity
        cases = load_model_tests(kind="node")
    return {case.name: case for case in cases if case.name.startswith(("test_quantizelinear", "test_dequantizelinear"))}


def _from_onnx(array: Any) -> Array:  # noqa: ANN401 - what onnx has in its data sets: arrays, numpy scalars and TensorProto
    if isinstance(array, onnx.TensorProto):
        return onnx.numpy_helper.to_array(array)
    return np.asarray(array)


def _tensor(tensor: dict[str, Any]) -> Array:
    dtype = parse_dtype(tensor["dtype"])
    if "codes" in tensor:
        return from_codes(np.array(tensor["codes"], dtype=np.int64) & dtype.mask, dtype, tensor["shape"])
    return _array(tensor["values"], numpy_dtype(dtype), tensor["shape"])


def _array(values: list[float], dtype: np.dtype[Any], shape: list[int]) -> Array:
    """Return numbers as an array; NaN as the one code that qgen writes (SEMANTICS 1.6)."""
    if not any(math.isnan(value) for value in values):
        return np.array(values, dtype=np.float64).astype(dtype).reshape(shape)
    parsed = parse_dtype(dtype)
    assert parsed.format is not None
    assert parsed.format.nan_code is not None
    nan = from_codes(np.array([parsed.format.nan_code]), parsed, ())
    numbers = [nan if math.isnan(value) else np.float64(value).astype(dtype) for value in values]
    return np.array(numbers, dtype=dtype).reshape(shape)
