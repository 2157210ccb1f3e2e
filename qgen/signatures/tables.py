"""What each version of an operator allows, as cumulative rows: a new opset is one `_Step` that says what it adds.

The dtype sets and the attributes are those of `onnx.defs` (ai.onnx) and of ONNX Runtime's operator schemas (com.microsoft); a test compares
them. What the schemas cannot say (output type without a zero point, legal `precision`, the division type) is SEMANTICS 1.1, 1.2 and 1.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from qgen.dtypes import DTYPES, EXACT, DType, Exact

OLDEST_OPSET: Final = 10
NEWEST_OPSET: Final = 28
ONNX: Final = "ai.onnx"
MICROSOFT: Final = "com.microsoft"
QUANTIZE: Final = "QuantizeLinear"
DEQUANTIZE: Final = "DequantizeLinear"
DYNAMIC: Final = "DynamicQuantizeLinear"
DYNAMIC_VERSION: Final = 11
"""The only version of DynamicQuantizeLinear: float32 to uint8, one scale and zero point for the tensor, both of them results."""

GranularityKind: TypeAlias = Literal["per_tensor", "per_axis", "blocked"]


Division: TypeAlias = DType | Exact
"""The format that x and scale are converted to and that their quotient is rounded to, or `EXACT`."""

ATTRIBUTE_DEFAULTS: Final = {"axis": 1, "saturate": 1, "block_size": 0, "output_dtype": 0, "precision": 0}
"""The default of every attribute that either operator has; 0 stands for "not given" in the last three."""

UINT8: Final = DTYPES["uint8"]
INT32: Final = DTYPES["int32"]
FLOAT32: Final = DTYPES["float32"]
E8M0: Final = DTYPES["float8e8m0"]
PRECISIONS: Final = (FLOAT32, DTYPES["float16"], DTYPES["bfloat16"])
"""What `precision` may be (SEMANTICS 2.1, row 10)."""
SCALE_DECIDES: Final = 23
"""The opset from which the scale's type, not x's, is the division type."""


@dataclass(frozen=True, slots=True)
class Row:
    """One version of one operator: its dtypes by operand, its attributes, and the rules that tie operands together."""

    domain: str
    op: str
    version: int
    x: tuple[DType, ...]
    scale: tuple[DType, ...]
    y: tuple[DType, ...]
    attributes: frozenset[str]
    scale_is_x: bool
    """Whether the scale must have x's type."""

    @property
    def is_quantize(self) -> bool:
        """Whether this row is of QuantizeLinear."""
        return self.op == QUANTIZE

    @property
    def granularities(self) -> tuple[GranularityKind, ...]:
        """The granularities that this version's text has; opset 10 has the scalar scale alone."""
        axis: tuple[GranularityKind, ...] = ("per_axis",) if "axis" in self.attributes else ()
        block: tuple[GranularityKind, ...] = ("blocked",) if "block_size" in self.attributes else ()
        return ("per_tensor", *axis, *block)

    @property
    def precisions(self) -> tuple[DType | None, ...]:
        """What the attribute `precision` may be; None where it is absent."""
        return (None, *PRECISIONS) if "precision" in self.attributes else (None,)

    def scales_for(self, x: DType) -> tuple[DType, ...]:
        """Return the scale types that go with `x`."""
        return tuple(dtype for dtype in self.scale if dtype == x) if self.scale_is_x else self.scale

    def outputs_for(self, scale: DType, *, zero_point: bool) -> tuple[DType, ...]:
        """Return the output types: a zero point or `output_dtype` names one, else it is uint8 (Quantize) or the scale's (Dequantize)."""
        if "output_dtype" in self.attributes or (self.is_quantize and zero_point):
            return self.y
        only = UINT8 if self.is_quantize else scale
        return tuple(dtype for dtype in self.y if dtype == only)

    def saturations(self, y: DType) -> tuple[bool, ...]:
        """Return the values of `saturate` that make a difference: both for float8, else only the default."""
        return (True, False) if "saturate" in self.attributes and y.is_float8 else (True,)

    def division(self, x: DType, scale: DType, precision: DType | None) -> Division | None:
        """Return the division type of QuantizeLinear (SEMANTICS 1.2 step 1, and 1.7 for com.microsoft); None for DequantizeLinear."""
        if not self.is_quantize:
            return None
        if self.domain == MICROSOFT:
            return FLOAT32
        if precision is not None:
            return precision
        if scale == INT32:
            return EXACT
        if self.version < SCALE_DECIDES:
            return EXACT if x == INT32 else x
        return FLOAT32 if scale == E8M0 else scale


@dataclass(frozen=True, slots=True)
class _Step:
    """What a version adds to the one before it: dtype names by operand, and attributes."""

    version: int
    x: str = ""
    scale: str = ""
    y: str = ""
    attributes: str = ""
    scale_is_x: bool = False


def _cumulate(domain: str, op: str, *steps: _Step) -> tuple[Row, ...]:
    rows: list[Row] = []
    x: tuple[DType, ...] = ()
    scale: tuple[DType, ...] = ()
    y: tuple[DType, ...] = ()
    attributes: frozenset[str] = frozenset()
    for step in steps:
        x, scale, y = x + _named(step.x), scale + _named(step.scale), y + _named(step.y)
        attributes |= frozenset(step.attributes.split())
        rows.append(Row(domain, op, step.version, x, scale, y, attributes, step.scale_is_x))
    return tuple(rows)


def _named(names: str) -> tuple[DType, ...]:
    return tuple(DTYPES[name] for name in names.split())


_HALVES: Final = "float16 bfloat16"
_BYTES: Final = "uint8 int8"
_FLOAT8: Final = "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz"
_MORE_INTEGERS: Final = "uint16 int16 uint4 int4"
_FLOAT4: Final = "float4e2m1"
_CRUMBS: Final = "uint2 int2"
_FLOAT6: Final = "float6e2m3 float6e3m2"

TABLES: Final[dict[tuple[str, str], tuple[Row, ...]]] = {
    (ONNX, QUANTIZE): _cumulate(
        ONNX,
        QUANTIZE,
        _Step(10, x="float32 int32", scale="float32", y=_BYTES),
        _Step(13, attributes="axis"),
        _Step(19, x=_HALVES, scale=f"{_HALVES} int32", y=_FLOAT8, attributes="saturate", scale_is_x=True),
        _Step(21, y=_MORE_INTEGERS, attributes="block_size output_dtype", scale_is_x=True),
        _Step(23, y=_FLOAT4, attributes="precision"),
        _Step(24, scale="float8e8m0"),
        _Step(25, y=_CRUMBS),
        _Step(28, y=_FLOAT6),
    ),
    (ONNX, DEQUANTIZE): _cumulate(
        ONNX,
        DEQUANTIZE,
        _Step(10, x=f"{_BYTES} int32", scale="float32", y="float32"),
        _Step(13, attributes="axis"),
        _Step(19, x=_FLOAT8, scale=_HALVES, y=_HALVES),
        _Step(21, x=_MORE_INTEGERS, attributes="block_size"),
        _Step(23, x=_FLOAT4, attributes="output_dtype"),
        _Step(24, scale="float8e8m0"),
        _Step(25, x=_CRUMBS),
        _Step(28, x=_FLOAT6),
    ),
    (MICROSOFT, QUANTIZE): _cumulate(
        MICROSOFT,
        QUANTIZE,
        _Step(
            1, x="float32 float16", scale="float32 float16", y=f"{_BYTES} {_MORE_INTEGERS}", attributes="axis", scale_is_x=True
        ),
    ),
    (MICROSOFT, DEQUANTIZE): _cumulate(
        MICROSOFT,
        DEQUANTIZE,
        _Step(1, x=f"{_BYTES} int32 {_MORE_INTEGERS}", scale="float32 float16", y="float32 float16", attributes="axis"),
    ),
}  # fmt: skip
"""The rows of every operator, oldest first, by domain and name."""

DYNAMIC_ROW: Final = Row(ONNX, DYNAMIC, DYNAMIC_VERSION, (FLOAT32,), (FLOAT32,), (UINT8,), frozenset(), scale_is_x=True)
"""The one version of DynamicQuantizeLinear; its scale is a result, so it is no row of the other operators' tables."""

OPERANDS: Final = ("x", "scale", "y")


def find_rows(domain: str, op: str) -> tuple[Row, ...]:
    """Return the rows of an operator, oldest first, or nothing when there is no such operator."""
    return TABLES.get((domain, op), ())
