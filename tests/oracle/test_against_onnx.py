"""The oracle against onnx.reference and ONNX Runtime on every signature they have, and the table of where they are not right.

Compared is equality of numbers with the sign of zero, NaN as a class (SEMANTICS 1.6). Where an implementation divides in another type than
SEMANTICS 1.2 says, the oracle is given the division type of that implementation, so that everything else is compared all the same; that
our choice is another is the table's matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from qgen.arrays import numpy_dtype
from qgen.dtypes import DTYPES, EXACT, DType
from qgen.oracle import evaluate_reference
from qgen.oracle.formats import decode, max_value, round_to_float
from qgen.shapes import Granularity, blocked, per_axis, per_tensor, scale_shape
from qgen.signatures import Division, GranularityKind, Signature, enumerate_signatures
from tests.oracle.implementations import run_onnx_reference, run_onnxruntime
from tests.oracle.nodes import Array, make_signature, name_inputs, same_numbers
from tests.oracle.programs import build_program
from tests.oracle.samples import dividends, edge_array, near_ties, random_array

FLOAT32, FLOAT16, BFLOAT16, INT32 = (DTYPES[name] for name in ("float32", "float16", "bfloat16", "int32"))
FLOAT4, E8M0 = DTYPES["float4e2m1"], DTYPES["float8e8m0"]
SHAPE = (2, 5, 3)
GRANULARITIES: dict[GranularityKind, Granularity] = {"per_tensor": per_tensor(), "per_axis": per_axis(1), "blocked": blocked(1, 2)}
ONNX_VERSIONS = (10, 13, 19, 21, 23, 24, 25, 28)
Cases = list[tuple[Signature, GranularityKind]]


@pytest.mark.parametrize("version", ONNX_VERSIONS)
def test_quantize_linear_is_that_of_onnx_reference(version: int) -> None:
    compared = total = 0
    for seed, (signature, kind) in enumerate(_signatures("ai.onnx", "QuantizeLinear", version)):
        division = _division_of_reference(signature)
        arrays = _inputs(signature, kind, seed)
        got = _evaluate(replace(signature, division=division), kind, arrays)
        want = run_onnx_reference(signature, GRANULARITIES[kind], arrays)
        defined = _is_defined_by_reference(signature, kind, arrays, division)
        assert same_numbers(got[defined], want[defined]), _describe(signature, kind, arrays, got, want)
        compared, total = compared + int(defined.sum()), total + defined.size
    assert compared > total // 2


@pytest.mark.parametrize("version", [version for version in ONNX_VERSIONS if version >= 19])
def test_dequantize_linear_is_that_of_onnx_reference(version: int) -> None:
    for seed, (signature, kind) in enumerate(_signatures("ai.onnx", "DequantizeLinear", version)):
        if signature.x.bits == 32 and signature.zero_point:
            continue  # row 20: the reference subtracts in float64, ONNX Runtime and qgen in int32
        arrays = _inputs(signature, kind, seed)
        if signature.x.is_float8 or signature.x.name == "float4e2m1":
            arrays[2:] = [np.zeros_like(array) for array in arrays[2:]]  # rows 12 and 13: float8 must be 0, float4 is not read
        got, want = _evaluate(signature, kind, arrays), run_onnx_reference(signature, GRANULARITIES[kind], arrays)
        assert same_numbers(got, want), _describe(signature, kind, arrays, got, want)


@pytest.mark.parametrize(
    ("domain", "version", "op", "count"),
    [
        ("ai.onnx", 10, "QuantizeLinear", 3),
        ("ai.onnx", 13, "QuantizeLinear", 6),
        ("ai.onnx", 19, "QuantizeLinear", 44),
        ("ai.onnx", 21, "QuantizeLinear", 168),
        ("ai.onnx", 23, "QuantizeLinear", 1008),
        ("ai.onnx", 24, "QuantizeLinear", 1008),
        ("ai.onnx", 25, "QuantizeLinear", 1152),
        ("com.microsoft", 1, "QuantizeLinear", 28),
        ("ai.onnx", 10, "DequantizeLinear", 6),
        ("ai.onnx", 13, "DequantizeLinear", 12),
        ("ai.onnx", 19, "DequantizeLinear", 56),
        ("ai.onnx", 21, "DequantizeLinear", 132),
        ("ai.onnx", 23, "DequantizeLinear", 264),
        ("ai.onnx", 24, "DequantizeLinear", 264),
        ("ai.onnx", 25, "DequantizeLinear", 312),
        ("com.microsoft", 1, "DequantizeLinear", 56),
    ],
)
def test_the_operator_is_that_of_onnxruntime(domain: str, version: int, op: str, count: int) -> None:
    """Counted at 23, say: 2 types of x, 2 of scale, 14 of y (float8 twice: saturation), 2 zero points, 3 granularities, 3 precisions."""
    cases = [case for case in _signatures(domain, op, version) if _has_onnxruntime_kernel(case[0])]
    for seed, (signature, kind) in enumerate(cases):
        arrays = _inputs(signature, kind, seed)
        defined = np.ones(SHAPE, np.bool_)
        ours = signature
        if signature.is_quantize:
            division = _division_of_onnxruntime(signature)
            ours = replace(signature, division=division)
            defined = _is_defined_by_onnxruntime(signature, kind, arrays, division)
        elif signature.x.is_float8:
            arrays[2:] = [np.zeros_like(array) for array in arrays[2:]]  # row 13
        got, want = _evaluate(ours, kind, arrays), run_onnxruntime(signature, GRANULARITIES[kind], arrays)
        assert same_numbers(got[defined], want[defined]), _describe(signature, kind, arrays, got, want)
    assert len(cases) == count


@dataclass(frozen=True, slots=True)
class Row:
    """A row of SEMANTICS 2.1 with x, scale and zero point, and what each gives; None where it has no kernel, or no defined result."""

    row: str
    op: str
    opset: int
    dtypes: str
    inputs: tuple[list[float], float, float | None]
    ours: list[float]
    reference: list[float] | None
    onnxruntime: list[float] | None
    precision: DType | None = None
    saturate: bool = True


NAN, INF = float("nan"), float("inf")
Q, D = "QuantizeLinear", "DequantizeLinear"
WIDE, BYTE = 2147483520.0, "float32 float32 uint8"
MIXED = ([0.0462799072265625], 0.030853271484375, 1.0)
DISAGREEMENTS = (
    Row("1: infinity and 2^31 saturate", Q, 13, BYTE, ([INF, 3e9], 1, 0), [255, 255], None, [255, 255]),
    Row("2: NaN and less than -2^31 with zp < 0", Q, 13, "float32 float32 int8", ([NAN, -INF, -3e9], 1, -1), [-128] * 3, None, [-128] * 3),
    Row("3: q + zp beyond int32", Q, 13, BYTE, ([WIDE], 1, 200), [255], [0], [255]),
    Row("4: NaN is the lowest integer", Q, 13, BYTE, ([NAN], 1, 0), [0], None, [0]),
    Row("5: from 23 on the scale's type divides", Q, 23, "float32 float16 uint8", MIXED, [2], [3], [2]),
    Row("5: unless precision says another", Q, 23, "float32 float16 uint8", MIXED, [3], [3], [3], precision=FLOAT32),
    Row("6: float16 divides in float16", Q, 21, "float16 float16 uint16", ([6148], 3, 0), [2050], [2050], [2049]),
    Row("6: float16 divides in float16 from 23 on", Q, 23, "float16 float16 uint16", ([6148], 3, 0), [2050], [2050], [2050]),
    Row("7: from 23 on int32 is divided in float32", Q, 23, "int32 float32 uint8", ([538153208], 4155623.25, 0), [130], [129], None),
    Row("12: float4 subtracts its zero point", D, 23, "float4e2m1 float32 float32", ([1, 6], 2, 1.5), [-1, 9], [2, 12], None),
    Row("14: 480 overflows", Q, 19, "float32 float32 float8e4m3fn", ([480], 1, 0), [NAN], [NAN], [448], saturate=False),
    Row("15: 61440 overflows", Q, 19, "float32 float32 float8e5m2", ([61440], 1, 0), [INF], [INF], [NAN], saturate=False),
    Row("17: NaN to float4", Q, 23, "float32 float32 float4e2m1", ([NAN], 1, 0), [6], None, None),
    Row("18: infinity to FNUZ", Q, 19, "float32 float32 float8e4m3fnuz", ([INF, -INF], 1, 0), [240, -240], [240, -240], [240, -240]),
    Row(
        "20: int32 with a zero point wraps, then rounds", D, 21, "int32 float32 float32",
        ([-2147483648, 16777217], 1, 1), [2147483648, 16777216], [-2147483648, 16777215], [2147483648, 16777216],
    ),
)  # fmt: skip


@pytest.mark.parametrize("row", DISAGREEMENTS, ids=lambda row: str(row.row))
def test_where_an_implementation_is_not_right_semantics_decides(row: Row) -> None:
    x, scale, y = (DTYPES[name] for name in row.dtypes.split())
    zero_point = row.inputs[2] is not None
    signature = make_signature(row.op, row.opset, (x, scale, y), zero_point=zero_point, precision=row.precision, saturate=row.saturate)
    quantized = y if signature.is_quantize else x
    arrays = [_array(row.inputs[0], x), _array([row.inputs[1]], scale).reshape(()), _array([row.inputs[2] or 0], quantized).reshape(())]
    got = evaluate_reference(build_program(signature), per_tensor(), name_inputs(row.op, arrays))["y"]
    assert same_numbers(got, _array(row.ours, y))
    if row.reference is not None:
        assert same_numbers(run_onnx_reference(signature, per_tensor(), arrays), _array(row.reference, y))
    if row.onnxruntime is not None:
        assert same_numbers(run_onnxruntime(signature, per_tensor(), arrays), _array(row.onnxruntime, y))


def _signatures(domain: str, op: str, version: int) -> Cases:
    return [
        (signature, kind) for signature, kind in enumerate_signatures(domain=domain) if (signature.op, signature.version) == (op, version)
    ]


def _division_of_reference(signature: Signature) -> Division:
    """Return what onnx.reference divides in: `precision`, or numpy's promotion of x and scale (row 5).

    That is float64 where one is int32 (rows 7 and 8), whose quotients are as good as the exact ones (SEMANTICS 1.2, step 3).
    """
    if signature.precision is not None:
        return signature.precision
    if INT32 in (signature.x, signature.scale):
        return EXACT
    return signature.x if signature.x == signature.scale else FLOAT32


def _division_of_onnxruntime(signature: Signature) -> DType:
    """Return what ONNX Runtime divides in: `precision`, the scale's type from opset 23 on, float32 before and in com.microsoft (row 6)."""
    return signature.precision or (signature.scale if signature.version >= 23 else FLOAT32)


def _has_onnxruntime_kernel(signature: Signature) -> bool:
    """Whether ONNX Runtime has a kernel on the CPU (SEMANTICS 1.1): QuantizeLinear of no int32; nothing at opset 28."""
    dtypes = (signature.x, signature.scale, signature.y, signature.precision)
    has_int32 = signature.is_quantize and INT32 in dtypes
    return signature.version < 28 and not has_int32 and not any(dtype in dtypes for dtype in (BFLOAT16, FLOAT4, E8M0))


def _is_defined_by_reference(signature: Signature, kind: GranularityKind, arrays: list[Array], division: Division) -> NDArray[np.bool_]:
    """Return on which elements the reference computes what its text says."""
    wide = np.dtype(np.float64) if division is EXACT else numpy_dtype(division)
    x, scale = arrays[0], _spread(arrays[1], kind)
    quotient = _quotient(x, scale, wide)
    if signature.y.is_integer:
        # Rows 1 to 4 of SEMANTICS 2.1: where the quotient, or its sum with the zero point, is no int32, the reference's is undefined.
        defined = np.abs(quotient) < 2.0**30
    elif signature.y.is_small_float:
        defined = ~np.isnan(quotient)  # row 17: what NaN becomes where there is none
        if division is EXACT and signature.zero_point:
            # Row 12: qgen adds the zero point to the quotient's float32; the reference to its float64, and rounds that to float32.
            zero_point = _spread(arrays[2], kind).astype(np.float64)
            with np.errstate(over="ignore"):
                defined &= (quotient + zero_point).astype(np.float32) == quotient.astype(np.float32) + zero_point.astype(np.float32)
    else:
        defined = np.ones(x.shape, np.bool_)
    for operand in (x, scale):
        if operand.dtype == np.int32 and division == BFLOAT16:
            # SEMANTICS 1.2, step 2: ml_dtypes rounds to float32 before it rounds to bfloat16.
            once = round_to_float(operand.astype(np.float64), BFLOAT16)
            defined &= once == operand.astype(wide).astype(np.float64)
    return defined


def _is_defined_by_onnxruntime(signature: Signature, kind: GranularityKind, arrays: list[Array], division: DType) -> NDArray[np.bool_]:
    """Return on which elements ONNX Runtime computes what the text says: its float8 without saturation does not overflow (rows 14, 15)."""
    wrong = {"float8e4m3fn": (480.0, 496.0), "float8e5m2": (61440.0, 65536.0)}
    if signature.saturate or signature.y.name not in wrong:
        return np.ones(arrays[0].shape, np.bool_)
    least, beyond = wrong[signature.y.name]
    quotient = np.abs(_quotient(arrays[0], _spread(arrays[1], kind), numpy_dtype(division)))
    return (quotient < least) | (quotient >= beyond) | np.isnan(quotient)


def _quotient(x: Array, scale: Array, wide: np.dtype[Any]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return np.asarray((x.astype(wide) / scale.astype(wide)).astype(np.float64))


def _spread(scale: Array, kind: GranularityKind) -> Array:
    if kind == "per_tensor":
        return np.broadcast_to(scale, SHAPE)
    if kind == "per_axis":
        return np.broadcast_to(scale[:, None], SHAPE)
    return scale[:, np.arange(SHAPE[1]) // 2, :]


def _evaluate(signature: Signature, kind: GranularityKind, arrays: list[Array]) -> Array:
    return evaluate_reference(build_program(signature), GRANULARITIES[kind], name_inputs(signature.op, arrays))["y"]


def _inputs(signature: Signature, kind: GranularityKind, seed: int) -> list[Array]:
    """Return x, scale and zero point: scales of all magnitudes, one in three moderate, x of all magnitudes, or near a tie of its scale."""
    random = np.random.default_rng(seed)
    shape = scale_shape(GRANULARITIES[kind], SHAPE)
    scale = _some(signature.scale, shape, seed, moderate=random.uniform(0.001, 2, shape))
    x = _some(signature.x, SHAPE, seed + 1)
    if signature.is_quantize:
        most = max_value(signature.y.format) if signature.y.format else signature.y.max
        greatest = float(min(2 * most + 2, 1 << 17))
        near = dividends(near_ties(_spread(decode(scale, signature.scale), kind), seed, greatest=greatest), signature.x)
        x = np.where(random.integers(0, 4, SHAPE) > 0, near, x)
    quantized = signature.y if signature.is_quantize else signature.x
    return [x, scale, *([_some(quantized, shape, seed + 2)] if signature.zero_point else [])]


def _some(dtype: DType, shape: tuple[int, ...], seed: int, moderate: Array | None = None) -> Array:
    """Return an array of codes drawn at random, one in four an edge; two in three from `moderate` where that is given."""
    random = np.random.default_rng(seed)
    edges = edge_array(dtype)
    drawn = random_array(dtype, int(np.prod(shape)), seed).reshape(shape)
    mixed = np.where(random.integers(0, 4, shape) == 0, edges[random.integers(0, len(edges), shape)], drawn)
    return np.asarray(mixed if moderate is None else np.where(random.integers(0, 3, shape) > 0, moderate.astype(mixed.dtype), mixed))


def _array(values: list[float], dtype: DType) -> Array:
    return np.array(values, dtype=np.float64).astype(numpy_dtype(dtype))


def _describe(signature: Signature, kind: GranularityKind, arrays: list[Array], got: Array, want: Array) -> str:
    names: Any = [dtype.name for dtype in (signature.x, signature.scale, signature.y)]
    at = np.flatnonzero((got.astype(np.float64) != want.astype(np.float64)).reshape(-1))
    return f"{signature.op}-{signature.version} {names} {kind} {signature.precision}: {arrays}\ngives {got}\nnot {want}\nat {at}"
