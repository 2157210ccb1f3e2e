"""All legal signatures: their counts, that each one resolves to itself, and where a computation may be named."""

from __future__ import annotations

import pytest

from qgen.dtypes import DTYPES
from qgen.errors import InternalError, QgenError
from qgen.signatures import (
    TABLES,
    GranularityKind,
    Signature,
    distinct_key,
    enumerate_signatures,
    find_rows,
    opset_range,
    resolve_signature,
)
from qgen.signatures.tables import MICROSOFT, ONNX

LEGAL = list(enumerate_signatures())


def quantize(kind: GranularityKind = "per_tensor", **request: object) -> tuple[int, int]:
    return opset_range(resolve_signature("QuantizeLinear", **({"x": "f32"} | request)), kind)  # type: ignore[arg-type] # keywords of any type


def dequantize(kind: GranularityKind = "per_tensor", **request: object) -> tuple[int, int]:
    return opset_range(resolve_signature("DequantizeLinear", **request), kind)  # type: ignore[arg-type] # keywords of any type


def resolve_again(signature: Signature, kind: GranularityKind) -> Signature:
    return resolve_signature(
        signature.op,
        x=signature.x,
        scale=signature.scale,
        y=signature.y,
        zero_point=signature.zero_point,
        opset=max(signature.version, 10),
        precision=signature.precision,
        saturate=signature.saturate,
        domain=signature.domain,
        granularity_kind=kind,
    )


EARLIER = {"int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "float32", "float16", "bfloat16"}


def test_the_counts_of_the_integer_dtypes() -> None:
    """What remains without float8, float6, float4, e8m0 and an int32 x or scale of QuantizeLinear."""
    listed = [
        (signature, kind)
        for signature, kind in LEGAL
        if {signature.x.name, signature.scale.name, signature.y.name} <= EARLIER
        and not (signature.is_quantize and "int32" in {signature.x.name, signature.scale.name})
    ]
    assert len(listed) == 8091
    assert len({distinct_key(signature, kind) for signature, kind in listed}) == 1782


def test_the_counts_of_all_dtypes() -> None:
    assert len(LEGAL) == 34654
    assert len({distinct_key(signature, kind) for signature, kind in LEGAL}) == 6918


def test_the_counts_of_com_microsoft_and_that_it_adds_no_kernel() -> None:
    microsoft = list(enumerate_signatures(domain=MICROSOFT))
    # Quantize: 2 types, 6 outputs with a zero point and uint8 without; Dequantize: 7 inputs, 2 types, with and without; 2 granularities.
    assert len(microsoft) == 2 * (6 + 1) * 2 + 7 * 2 * 2 * 2
    onnx = {distinct_key(signature, kind) for signature, kind in LEGAL}
    assert {distinct_key(signature, kind) for signature, kind in microsoft} <= onnx


def test_nothing_is_listed_twice() -> None:
    assert len(set(LEGAL)) == len(LEGAL)


def test_each_listed_signature_resolves_to_itself() -> None:
    for signature, kind in [*LEGAL, *enumerate_signatures(domain=MICROSOFT)]:
        assert resolve_again(signature, kind) == signature


@pytest.mark.parametrize(("domain", "op"), TABLES, ids=[f"{domain}-{op}" for domain, op in TABLES])
def test_what_is_not_legal_does_not_resolve(domain: str, op: str) -> None:
    """Every triple of dtypes at every version, with and without zero point: what resolves is what the list has."""
    source = LEGAL if domain == ONNX else list(enumerate_signatures(domain=domain))
    legal = {(s.version, s.x, s.scale, s.y, s.zero_point) for s, _ in source if s.op == op}
    for row in find_rows(domain, op):
        for x in {*row.x, DTYPES["uint8"], DTYPES["float8e4m3fn"]}:
            for scale in DTYPES.values():
                for y in DTYPES.values():
                    for zero_point in (False, True):
                        try:
                            resolve_signature(
                                op, x=x, scale=scale, y=y, zero_point=zero_point, opset=max(row.version, 10), domain=domain
                            )  # fmt: skip
                            is_legal = True
                        except QgenError:
                            is_legal = False
                        assert is_legal == ((row.version, x, scale, y, zero_point) in legal), (row.version, x, scale, y, zero_point)


def test_a_key_tells_apart_what_computes_differently() -> None:
    base = resolve_signature("QuantizeLinear", x="f32", y="u8", zero_point=True)
    key = distinct_key(base, "per_tensor")
    others = [
        resolve_signature("QuantizeLinear", x="f32", y="i8", zero_point=True),
        resolve_signature("QuantizeLinear", x="f32", y="u8"),
        resolve_signature("QuantizeLinear", x="f32", scale="f16", y="u8", zero_point=True),
        resolve_signature("QuantizeLinear", x="f32", y="u8", zero_point=True, precision="f16"),
    ]
    assert len({key, *(distinct_key(other, "per_tensor") for other in others)}) == 5
    assert distinct_key(base, "blocked") != key


def test_a_key_does_not_tell_spellings_apart() -> None:
    spellings = [
        resolve_signature("QuantizeLinear", x="f32", y="u8", opset=10),
        resolve_signature("QuantizeLinear", x="f32", opset=28),
        resolve_signature("QuantizeLinear", x="f32", precision="f32", saturate=False),
        resolve_signature("QuantizeLinear", x="f32", domain="com.microsoft"),
    ]
    assert len({distinct_key(signature, "per_tensor") for signature in spellings}) == 1


def test_a_float8_zero_point_is_part_of_a_dequantize_kernel_only() -> None:
    """Its values are ignored by QuantizeLinear, and refused by DequantizeLinear when they are not zero."""
    keys: dict[str, set[object]] = {"QuantizeLinear": set(), "DequantizeLinear": set()}
    for signature, kind in LEGAL:
        narrow = signature.y if signature.is_quantize else signature.x
        if narrow == DTYPES["float8e5m2"] and signature.version == 28 and kind == "per_tensor":
            keys[signature.op].add(distinct_key(signature, kind)[4])
    assert keys == {"QuantizeLinear": {False}, "DequantizeLinear": {False, True}}


def test_opset_ranges_of_quantize() -> None:
    assert quantize(zero_point=True) == (10, 28)
    assert quantize() == (10, 28)
    assert quantize(y="i8", zero_point=True) == (10, 28)
    assert quantize(y="i8") == (21, 28)
    assert quantize("per_axis", granularity_kind="per_axis") == (13, 28)
    assert quantize("per_axis", granularity_kind="per_axis", opset=10) == (10, 28)
    assert quantize("blocked", granularity_kind="blocked") == (21, 28)
    assert quantize(x="f16", zero_point=True) == (19, 28)
    assert quantize(y="u4", zero_point=True) == (21, 28)
    assert quantize(y="u2", zero_point=True) == (25, 28)
    assert quantize(scale="f16") == (23, 28)
    assert quantize(precision="f16") == (23, 28)
    assert quantize(precision="f32") == (10, 28)
    assert quantize(domain="com.microsoft") == (1, 1)
    assert quantize(x="f16", domain="com.microsoft") == (1, 1)


def test_opset_ranges_of_dequantize() -> None:
    assert dequantize(x="u8") == (10, 28)
    assert dequantize(x="i32", zero_point=True) == (10, 28)
    assert dequantize(x="u8", scale="f16") == (19, 28)
    assert dequantize(x="u8", scale="f16", y="f32") == (23, 28)
    assert dequantize(x="i4", opset=22) == (21, 28)
    assert dequantize(x="i2") == (25, 28)
    assert dequantize(x="i8", domain="com.microsoft") == (1, 1)


def test_opset_ranges_of_what_comes_later() -> None:
    """The rational quotient of int32 x ends with opset 22: from 23 on the scale's type divides, and no `precision` asks for it."""
    found = {
        (s.x.short, s.scale.short): opset_range(s, kind) for s, kind in LEGAL if s.is_quantize and s.version == 13 and kind == "per_axis"
    }
    assert found == {("f32", "f32"): (13, 28), ("i32", "f32"): (13, 18)}


def test_a_range_holds_its_version_and_each_version_in_it_can_mean_the_computation() -> None:
    versions_of: dict[object, set[int]] = {}
    for signature, kind in LEGAL:
        key = (signature.op, signature.x, signature.scale, signature.y, signature.zero_point, kind, signature.division, signature.saturate)
        versions_of.setdefault(key, set()).add(signature.version)
    for signature, kind in LEGAL:
        key = (signature.op, signature.x, signature.scale, signature.y, signature.zero_point, kind, signature.division, signature.saturate)
        first, last = opset_range(signature, kind)
        assert first <= signature.version <= last
        assert {version for version in (10, 13, 19, 21, 23, 24, 25, 28) if first <= version <= last} == versions_of[key]


def test_a_version_that_is_not_in_the_tables_is_our_own_mistake() -> None:
    f32, u8 = DTYPES["float32"], DTYPES["uint8"]
    odd = Signature("ai.onnx", "QuantizeLinear", 17, f32, f32, u8, zero_point=True, precision=None, division=f32, saturate=True)
    with pytest.raises(InternalError, match="version"):
        opset_range(odd)
