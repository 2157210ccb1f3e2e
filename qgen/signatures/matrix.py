"""All legal signatures, and which of them are one kernel.

`enumerate_signatures` follows the text of each version: at opset 10 the scale is a scalar, so per-axis, which `resolve_signature` accepts
there with a warning, is not listed. `saturate` is listed twice for float8 outputs only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TypeAlias

from qgen.dtypes import DType
from qgen.errors import InternalError
from qgen.signatures.resolve import Signature
from qgen.signatures.tables import (
    DYNAMIC,
    DYNAMIC_VERSION,
    MICROSOFT,
    NEWEST_OPSET,
    ONNX,
    TABLES,
    Division,
    GranularityKind,
    Row,
    find_rows,
)

DistinctKey: TypeAlias = "tuple[str, DType, DType, DType, bool, GranularityKind, Division | None, bool]"


def enumerate_signatures(*, domain: str = ONNX) -> Iterator[tuple[Signature, GranularityKind]]:
    """Yield every legal signature of `domain` with each granularity it may have, in the tables' order.

    One element for each (operator version, x, scale, y, zero point, granularity, precision, saturate).
    """
    for (row_domain, _), rows in TABLES.items():
        if row_domain == domain:
            for row in rows:
                yield from _enumerate_row(row)


def _enumerate_row(row: Row) -> Iterator[tuple[Signature, GranularityKind]]:
    for x, zero_point in product(row.x, (False, True)):
        for scale in row.scales_for(x):
            for y in row.outputs_for(scale, zero_point=zero_point):
                for kind, precision, saturate in product(row.granularities, row.precisions, row.saturations(y)):
                    division = row.division(x, scale, precision)
                    yield Signature(row.domain, row.op, row.version, x, scale, y, zero_point, precision, division, saturate), kind


def distinct_key(signature: Signature, kind: GranularityKind) -> DistinctKey:
    """Return what makes a kernel before shapes and numerics: equal keys, equal kernels, whatever the domain, version or `precision`.

    A float8 zero point of QuantizeLinear is ignored (SEMANTICS 2.1, row 11), so it does not tell kernels apart. That of DequantizeLinear
    does, for its values are checked to be zero before the kernel runs (row 13).
    """
    zero_point = signature.zero_point and not (signature.is_quantize and signature.y.is_float8)
    return (signature.op, signature.x, signature.scale, signature.y, zero_point, kind, signature.division, signature.saturate)


def opset_range(signature: Signature, kind: GranularityKind = "per_tensor") -> tuple[int, int]:
    """Return the first and the last opset number at which the operator can mean this very computation.

    The computation is (x, scale, y, zero point, division, granularity, saturate); `precision` is only a way of asking for a division, so
    a float32 division asked for at opset 23 reaches back to where float32 is the only one. For com.microsoft the range is (1, 1).
    """
    if signature.domain == MICROSOFT:
        return signature.version, signature.version
    if signature.op == DYNAMIC:
        return DYNAMIC_VERSION, NEWEST_OPSET
    rows = find_rows(signature.domain, signature.op)
    means = [row.version == signature.version or _can_mean(row, signature, kind) for row in rows]
    at = next((index for index, row in enumerate(rows) if row.version == signature.version), None)
    if at is None:
        raise InternalError(f"{signature} has a version that the tables do not have")
    first = last = at
    while first > 0 and means[first - 1]:
        first -= 1
    while last + 1 < len(rows) and means[last + 1]:
        last += 1
    return rows[first].version, rows[last + 1].version - 1 if last + 1 < len(rows) else NEWEST_OPSET


def _can_mean(row: Row, signature: Signature, kind: GranularityKind) -> bool:
    x, scale, y = signature.x, signature.scale, signature.y
    return (
        x in row.x
        and scale in row.scales_for(x)
        and y in row.outputs_for(scale, zero_point=signature.zero_point)
        and kind in row.granularities
        and signature.saturate in row.saturations(y)
        and any(row.division(x, scale, precision) == signature.division for precision in row.precisions)
    )
