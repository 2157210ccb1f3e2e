"""A request in, one legal signature out, or a `QgenError` that says what the operator allows and from which opset on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from qgen.dtypes import DType, parse_dtype
from qgen.errors import QgenError
from qgen.signatures.tables import (
    DYNAMIC,
    DYNAMIC_VERSION,
    E8M0,
    FLOAT32,
    MICROSOFT,
    NEWEST_OPSET,
    OLDEST_OPSET,
    ONNX,
    PRECISIONS,
    QUANTIZE,
    TABLES,
    UINT8,
    Division,
    GranularityKind,
    Row,
    find_rows,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """One legal use of an operator, everything decided but granularity and shape.

    `version` is the operator's own version, the newest one not above the requested opset. `precision` is the attribute as given;
    `division` what QuantizeLinear divides in (`EXACT` for the rational quotient), None for DequantizeLinear. `saturate` is True wherever
    the attribute has no effect.
    """

    domain: str
    op: str
    version: int
    x: DType
    scale: DType
    y: DType
    zero_point: bool
    precision: DType | None
    division: Division | None
    saturate: bool

    @property
    def is_quantize(self) -> bool:
        """Whether this is a QuantizeLinear."""
        return self.op == QUANTIZE


def resolve_signature(
    op: str,
    *,
    x: object,
    scale: object = None,
    y: object = None,
    zero_point: bool = False,
    opset: int = NEWEST_OPSET,
    precision: object = None,
    saturate: bool = True,
    domain: str = ONNX,
    granularity_kind: GranularityKind = "per_tensor",
    axis: int = 1,
) -> Signature:
    """Return the signature that the request means (SEMANTICS 1.1, 1.2 step 1, 1.7).

    dtypes are anything that `parse_dtype` takes. `scale` defaults to x's type (QuantizeLinear) or to y's, float32 when that is not given
    either (DequantizeLinear); `y` to uint8 (QuantizeLinear) or to the scale's type. `opset` is the number a model imports, 10 to 28;
    com.microsoft has version 1 alone, and takes any. `axis` matters at opset 10 only, where per-axis is accepted along axis 1.
    Raises `QgenError` QG101 for a name that is no dtype, QG200 to QG211 for what the operator does not allow.
    """
    if op == DYNAMIC:
        return _resolve_dynamic(x, scale, y, opset, domain, is_plain=precision is None and saturate and not zero_point)
    row, rows = _find_row(op, "ai.onnx" if domain == "" else domain, opset)
    x_dtype, scale_dtype, y_dtype = _resolve_operands(row, rows, parse_dtype(x), _parse_optional(scale), _parse_optional(y))
    _check_scale(row, rows, x_dtype, scale_dtype)
    _check_output(row, rows, scale_dtype, y_dtype, zero_point=zero_point)
    _check_granularity(row, rows, granularity_kind, axis)
    precision_dtype = _check_precision(row, rows, _parse_optional(precision))
    if not saturate and "saturate" not in row.attributes:
        raise _missing_attribute(row, rows, "saturate")
    return Signature(
        domain=row.domain,
        op=row.op,
        version=row.version,
        x=x_dtype,
        scale=scale_dtype,
        y=y_dtype,
        zero_point=zero_point,
        precision=precision_dtype,
        division=row.division(x_dtype, scale_dtype, precision_dtype),
        saturate=saturate or not y_dtype.is_float8,
    )


def _resolve_dynamic(x: object, scale: object, y: object, opset: int, domain: str, *, is_plain: bool) -> Signature:
    place = f"{ONNX} {DYNAMIC}, version {DYNAMIC_VERSION}"
    if domain not in {"", ONNX}:
        raise QgenError("QG201", f"there is no {DYNAMIC} in {domain}", hint=f"it is an operator of {ONNX}")
    if isinstance(opset, bool) or not DYNAMIC_VERSION <= opset <= NEWEST_OPSET:
        hint = f"give an opset from {DYNAMIC_VERSION} to {NEWEST_OPSET}"
        raise QgenError("QG202", f"opset {opset!r} is out of range: {DYNAMIC} exists from opset {DYNAMIC_VERSION} on", hint=hint)
    for name, given, only in (("x", x, FLOAT32), ("scale", scale, FLOAT32), ("y", y, UINT8)):
        if given is not None and parse_dtype(given) != only:
            raise QgenError(
                "QG204", f"{DYNAMIC} takes no {name} of type {parse_dtype(given).name}", hint=f"{name} is {only.name}", place=place
            )
    if not is_plain:
        hint = "leave out `zero_point` (it is a result), `precision` and `saturate`"
        raise QgenError("QG209", f"{DYNAMIC} has no attributes, and its zero point is no input", hint=hint, place=place)
    return Signature(
        ONNX, DYNAMIC, DYNAMIC_VERSION, FLOAT32, FLOAT32, UINT8, zero_point=False, precision=None, division=None, saturate=True
    )


def signature_warnings(signature: Signature, granularity_kind: GranularityKind) -> tuple[str, ...]:
    """Return what a user should hear about a signature that is accepted although the operator's text does not have it."""
    if granularity_kind == "per_axis" and signature.domain == ONNX and signature.version == OLDEST_OPSET:
        return (f"{signature.op} at opset 10 has a scalar scale; a 1-D scale is read as per-axis along axis 1, as opset 13 does",)
    return ()


def _find_row(op: str, domain: str, opset: int) -> tuple[Row, tuple[Row, ...]]:
    domains = tuple(dict.fromkeys(known for known, _ in TABLES))
    if domain not in domains:
        near = difflib.get_close_matches(str(domain), domains, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"the domains are {_list(domains)}"
        raise QgenError("QG201", f"there is no operator domain `{domain}`", hint=hint, place="the domain")
    rows = find_rows(domain, op)
    if not rows:
        names = {known.lower(): known for _, known in TABLES} | {DYNAMIC.lower(): DYNAMIC}
        near = difflib.get_close_matches(str(op).lower(), list(names), n=1, cutoff=0.5)
        hint = f"did you mean `{names[near[0]]}`?" if near else f"the operators are {_list(names.values())}"
        raise QgenError("QG200", f"there is no operator `{op}` in {domain}", hint=hint, place="the operator")
    if domain == MICROSOFT:
        return rows[-1], rows
    hint = f"give an opset from {OLDEST_OPSET} to {NEWEST_OPSET}"
    if isinstance(opset, bool) or not isinstance(opset, int):
        raise QgenError("QG202", f"an opset is a whole number, not `{opset!r}`", hint=hint, place="the opset")
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        side = f"{op} exists from opset {OLDEST_OPSET} on" if opset < OLDEST_OPSET else f"opset {NEWEST_OPSET} is the newest one known"
        raise QgenError("QG202", f"opset {opset} is out of range: {side}", hint=hint, place="the opset")
    return [row for row in rows if row.version <= opset][-1], rows


def _resolve_operands(row: Row, rows: tuple[Row, ...], x: DType, scale: DType | None, y: DType | None) -> tuple[DType, DType, DType]:
    _check_operand(row, rows, "x", x)
    if y is not None:
        _check_operand(row, rows, "y", y)
    if scale is None:
        scale = x if row.is_quantize else y or FLOAT32
    _check_operand(row, rows, "scale", scale)
    if y is None:
        if scale == E8M0 and not row.is_quantize:
            raise _error(row, "QG208", "a float8e8m0 scale does not say the type of y", f"name y: {_list(row.y)}", "y")
        y = UINT8 if row.is_quantize else scale
    return x, scale, y


def _check_operand(row: Row, rows: tuple[Row, ...], operand: str, dtype: DType) -> None:
    allowed = _dtypes(row, operand)
    if dtype in allowed:
        return
    first = next((other.version for other in rows if dtype in _dtypes(other, operand)), None)
    if first is None:
        message = f"{row.op} takes no {operand} of type {dtype.name}"
        raise _error(row, "QG204", message, f"{operand} may be {_list(allowed)}", operand)
    message = f"{row.op} takes {operand} of type {dtype.name} from opset {first} on"
    raise _error(row, "QG203", message, f"use opset {first} or later, or make {operand} one of {_list(allowed)}", operand)


def _check_scale(row: Row, rows: tuple[Row, ...], x: DType, scale: DType) -> None:
    allowed = row.scales_for(x)
    if scale in allowed:
        return
    first = next((other.version for other in rows if x in other.x and other.version > row.version and scale in other.scales_for(x)), None)
    later = f", or use opset {first} or later" if first else ""
    message = f"the scale of {row.op} must have the type of x, {x.name}, not {scale.name}"
    raise _error(row, "QG205", message, f"make the scale {_list(allowed)}{later}", "scale")


def _check_output(row: Row, rows: tuple[Row, ...], scale: DType, y: DType, *, zero_point: bool) -> None:
    if y in row.outputs_for(scale, zero_point=zero_point):
        return
    first = next((other.version for other in rows if "output_dtype" in other.attributes), None)
    later = f", or use opset {first} or later, which has `output_dtype`" if first else ""
    if row.is_quantize:
        message = f"without a zero point {row.op} gives uint8 here, not {y.name}"
        raise _error(row, "QG206", message, f"give a zero point of type {y.name} (zeros will do){later}", "y")
    message = f"{row.op} gives the scale's type, {scale.name}, not {y.name}"
    raise _error(row, "QG207", message, f"make the scale {y.name}{later}", "y")


def _check_granularity(row: Row, rows: tuple[Row, ...], kind: GranularityKind, axis: int) -> None:
    if kind in row.granularities:
        return
    if kind == "per_axis":
        if axis != 1:
            message = f"{row.op} has no attribute `axis` at opset {row.version}: a 1-D scale lies along axis 1, not {axis}"
            raise _error(row, "QG211", message, "use opset 13 or later, or axis 1", "axis")
        return
    first = next((other.version for other in rows if kind in other.granularities), None)
    hint = f"use opset {first} or later, or {_list(row.granularities)}" if first else f"the granularities are {_list(row.granularities)}"
    raise _error(row, "QG211", f"{row.op} has no {kind.replace('_', '-')} granularity here", hint, "block_size")


def _check_precision(row: Row, rows: tuple[Row, ...], precision: DType | None) -> DType | None:
    if precision is None or precision in row.precisions:
        return precision
    if "precision" not in row.attributes:
        raise _missing_attribute(row, rows, "precision")
    raise _error(
        row, "QG210", f"the division cannot be in {precision.name}", f"`precision` may be {_list(PRECISIONS)}, or be left out", "precision"
    )


def _missing_attribute(row: Row, rows: tuple[Row, ...], attribute: str) -> QgenError:
    first = next((other.version for other in rows if attribute in other.attributes), None)
    since = f"from opset {first} on" if first else "at no opset"
    hint = f"use opset {first} or later, or leave `{attribute}` out" if first else f"leave `{attribute}` out"
    return _error(row, "QG209", f"{row.op} has the attribute `{attribute}` {since}", hint, attribute)


def _error(row: Row, code: str, message: str, hint: str, part: str) -> QgenError:
    return QgenError(code, message, hint=hint, place=f"{row.domain} {row.op}, version {row.version}, `{part}`")


def _dtypes(row: Row, operand: str) -> tuple[DType, ...]:
    return {"x": row.x, "scale": row.scale, "y": row.y}[operand]


def _parse_optional(spec: object) -> DType | None:
    return None if spec is None else parse_dtype(spec)


def _list(items: Iterable[DType | str]) -> str:
    names = [item if isinstance(item, str) else item.name for item in items]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
