"""The opset tables against the operators' own schemas: `onnx.defs` for ai.onnx, ONNX Runtime's for com.microsoft."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx.defs
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from qgen.signatures import TABLES, Row, find_rows
from qgen.signatures.tables import ATTRIBUTE_DEFAULTS, DEQUANTIZE, MICROSOFT, ONNX, QUANTIZE

OPS = (QUANTIZE, DEQUANTIZE)
ROWS = [row for rows in TABLES.values() for row in rows]


def names(tensor_types: Iterable[str]) -> set[str]:
    """Return the dtype names in `tensor(float16)` and the like."""
    found = {kind.removeprefix("tensor(").removesuffix(")") for kind in tensor_types}
    return {"float32" if name == "float" else name for name in found}


def allowed(row: Row) -> dict[str, set[str]]:
    return {"x": {d.name for d in row.x}, "scale": {d.name for d in row.scale}, "y": {d.name for d in row.y}}


@pytest.mark.parametrize("op", OPS)
def test_the_rows_of_ai_onnx_are_the_schemas(op: str) -> None:
    schemas = [schema for schema in onnx.defs.get_all_schemas_with_history() if schema.name == op and schema.domain == ""]
    rows = find_rows(ONNX, op)
    assert [row.version for row in rows] == sorted(schema.since_version for schema in schemas) == [10, 13, 19, 21, 23, 24, 25, 28]
    for schema in schemas:
        row = next(row for row in rows if row.version == schema.since_version)
        types: dict[str, set[str]] = {}
        for constraint in schema.type_constraints:
            types[constraint.type_param_str] = names(constraint.allowed_type_strs)
        x, scale, zero_point = (parameter.type_str for parameter in schema.inputs)
        y = schema.outputs[0].type_str

        def of(type_str: str, types: dict[str, set[str]] = types) -> set[str]:
            return types.get(type_str) or names([type_str])

        assert allowed(row) == {"x": of(x), "scale": of(scale), "y": of(y)}
        assert row.attributes == set(schema.attributes)
        assert {name: ATTRIBUTE_DEFAULTS[name] for name in row.attributes} == {
            name: attribute.default_value.i for name, attribute in schema.attributes.items()
        }
        assert row.scale_is_x == (x == scale), "one type parameter for both"
        assert zero_point == (y if op == QUANTIZE else x), "the zero point has the quantized type"
        if op == DEQUANTIZE:
            assert ("output_dtype" in row.attributes) == (scale != y), "one type for both, unless y has its own"


@pytest.mark.parametrize("op", OPS)
def test_the_rows_of_com_microsoft_are_onnx_runtimes(op: str) -> None:
    schemas: list[Any] = [schema for schema in get_all_operator_schema() if schema.name == op and schema.domain == MICROSOFT]
    (schema,) = schemas
    (row,) = find_rows(MICROSOFT, op)
    types = {constraint.type_param_str: names(constraint.allowed_type_strs) for constraint in schema.type_constraints}
    x, scale, zero_point = (parameter.typeStr for parameter in schema.inputs)
    y = schema.outputs[0].typeStr
    assert row.version == schema.since_version == 1
    assert allowed(row) == {"x": types[x], "scale": types[scale], "y": types[y]}
    assert row.attributes == set(schema.attributes) == {"axis"}
    assert row.scale_is_x == (x == scale)
    assert zero_point == (y if op == QUANTIZE else x)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.domain}-{row.op}-{row.version}" for row in ROWS])
def test_a_row_names_no_dtype_twice(row: Row) -> None:
    for dtypes in (row.x, row.scale, row.y):
        assert len(set(dtypes)) == len(dtypes)


def test_granularities_by_version() -> None:
    by_version = {row.version: row.granularities for row in find_rows(ONNX, QUANTIZE)}
    assert by_version == {row.version: row.granularities for row in find_rows(ONNX, DEQUANTIZE)}
    assert by_version[10] == ("per_tensor",)
    assert by_version[13] == by_version[19] == ("per_tensor", "per_axis")
    assert {by_version[version] for version in (21, 23, 24, 25, 28)} == {("per_tensor", "per_axis", "blocked")}
    assert {find_rows(MICROSOFT, op)[0].granularities for op in OPS} == {("per_tensor", "per_axis")}
