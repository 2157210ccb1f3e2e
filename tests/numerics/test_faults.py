"""The power of the property tests: faults of the kinds that such code has, each put into the library's text, and each found."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.numerics.clauses import clause_of, library_texts, mismatches
from tests.numerics.samples import arguments


@dataclass(frozen=True, slots=True)
class Fault:
    """`old` to `new` in a file; `found_by` is a function whose clause no longer holds."""

    title: str
    file: str
    old: str
    new: str
    found_by: str


FAULTS = (
    Fault("half up, not to even", "float32.qg", "(1 << (shift - 1)) - 1) + ((value >> shift) & 1)", "1 << (shift - 1))", "rint_f32"),
    Fault("half down, not to even", "float32.qg", " + ((value >> shift) & 1)", "", "mul_f32"),
    Fault("truncated", "float32.qg", "(value + ((1 << (shift - 1)) - 1) + ((value >> shift) & 1))", "value", "div_f32"),
    Fault("no sticky bit of a quotient", "float32.qg", " | (guard << 1) | sticky", " | (guard << 1)", "div_f32"),
    Fault("no guard bit of a quotient", "float32.qg", "let guard = u32(r4 >= d);", "let guard = 0;", "div_f32"),
    Fault("one step of the correction left out", "float32.qg", "let s3 = u32(r0 >= d << 3);", "let s3 = 0;", "div_f32"),
    Fault("no sticky bit of a product", "float32.qg", " | u32((low & ((1 << shift) - 1)) != 0)", "", "mul_f32"),
    Fault("no carry of a product", "float32.qg", " + (bottom >> 24)", "", "mul_f32"),
    Fault("no sticky bit of a sum", "float32.qg", " | u32((mb & ((1 << shift) - 1)) != 0)", "", "add_f32"),
    Fault("one guard bit too few of a sum", "float32.qg", "<< 23)) << 3;", "<< 23)) << 2;", "add_f32"),
    Fault("a sum of opposites is -0", "float32.qg", "if opposite then 0 else a & 0x80000000", "a & 0x80000000", "add_f32"),
    Fault("infinities of two signs add up", "float32.qg", " || (ab == 0x7f800000 && opposite)", "", "add_f32"),
    Fault("a difference is a sum", "float32.qg", "add_f32(x, y ^ 0x80000000)", "add_f32(x, y)", "sub_f32"),
    Fault("subnormal operands have a leading one", "float32.qg", "if exponent == 0 {", "if false {", "mul_f32"),
    Fault("subnormal results flushed", "float32.qg", "sign | min(bits, 0x7f800000)", "sign | (bits * u32(bits >= 0x800000))", "div_f32"),
    Fault("subnormal results shifted by one less", "float32.qg", "clamp(1 - exponent, 0, 25)", "clamp(0 - exponent, 0, 25)", "mul_f32"),
    Fault("overflow runs on", "float32.qg", "min(bits, 0x7f800000)", "bits", "mul_f32"),
    Fault("0 / 0 is zero", "float32.qg", "(ax == 0 || ax == 0x7f800000)", "ax == 0x7f800000", "div_f32"),
    Fault("0 times infinity is infinity", "float32.qg", " || (zero && infinite)", "", "mul_f32"),
    Fault("the sign of zero lost", "float32.qg", "if zero { return sign; }", "if zero { return 0; }", "mul_f32"),
    Fault("a NaN with a sign", "float32.qg", "(zero && infinite) { return", "(zero && infinite) { return sign |", "mul_f32"),
    Fault("no sticky bit of a small product", "float32.qg", " | u32((n & 63) != 0)", "", "mul_small"),
    Fault("a subnormal factor has a leading one", "float32.qg", "u32(magnitude > 0x7fffff) << 23", "1 << 23", "mul_small"),
    Fault("a small zero has no sign", "float32.qg", "if product == 0 { return sign; }", "if product == 0 { return 0; }", "mul_small"),
    Fault("NaN is the highest integer", "float32.qg", "x != magnitude || magnitude > 0x7f800000", "x != magnitude", "rint_f32"),
    Fault("halves below one are lost", "float32.qg", "clamp(150 - exponent, 1, 25)", "clamp(150 - exponent, 1, 23)", "rint_f32"),
    Fault("no sticky bit of a float16 quotient", "narrow.qg", " | u32(dividend != quotient * db)", "", "div_f16"),
    Fault("no sticky bit of a bfloat16 quotient", "narrow.qg", " | u32(dividend != quotient * db)", "", "div_bf16"),
    Fault("narrow subnormals off by a binade", "narrow.qg", "(F.first - F.mantissa)", "(F.first + 1 - F.mantissa)", "ieee_to_f32_float16"),
    Fault("a float16 infinity is a number", "narrow.qg", "F.overflow then (F.first - 1) << 23", "F.overflow then 0", "ieee_to_f32_float16"),
    Fault("a float8 NaN is a number", "narrow.qg", "> F.max { return 0x7fc00000", "> F.max { return 0x43f00000", "fn_to_f32_float8e4m3fn"),
    Fault("the FNUZ NaN is -0", "narrow.qg", "if code == F.nan { return 0x7fc00000; }", "", "fnuz_to_f32_float8e4m3fnuz"),
    Fault("bfloat16 NaN keeps its code", "narrow.qg", "(bits & 0x7fffffff) > 0x7f800000", "false", "bf16_to_f32"),
    Fault("the least e8m0 is zero", "narrow.qg", "if code == 0 then 0x400000 else code << 23", "code << 23", "e8m0_to_f32"),
    Fault("no sticky bit of an integer", "convert.qg", " | u32((n & 63) != 0)", "", "i32_to_f32"),
    Fault("zero has an exponent", "convert.qg", "if v == 0 { return 0; }", "", "i32_to_f32"),
    Fault("an integer rounded twice", "convert.qg", " | u32((n & 255) != 0)", "", "i32_to_bf16"),
    Fault("bfloat16 rounds half up", "convert.qg", "x + 0x7fff + ((x >> 16) & 1)", "x + 0x8000", "convert_bf16"),
    Fault("NaN with few bits is infinity", "convert.qg", "if (x & 0x7fffffff) > 0x7f800000 { return 0x7fc0; }", "", "convert_bf16"),
    Fault("overflow saturates", "convert.qg", "F.overflow)", "F.max)", "convert_ieee_float16"),
    Fault("saturation overflows", "convert.qg", "F.max)", "F.max + 1)", "saturate_float_float8e5m2"),
    Fault("overflow has a sign", "convert.qg", " || code > F.max { return F.nan; }", " { return F.nan; }", "convert_fn_float8e4m3fn"),
    Fault("FNUZ has -0", "convert.qg", "if code == 0 then 0 else ", "", "saturate_fnuz_float8e5m2fnuz"),
    Fault("NaN saturates", "convert.qg", "if magnitude > 0x7f800000 { return F.nan; }", "", "saturate_float_float16"),
    Fault("a shift too short", "convert.qg", "F.first - exponent, 26", "F.first - exponent, 24", "convert_ieee_float16"),
    Fault("an integer far beyond the greatest", "convert.qg", "abs(clamp(v, -65536, 65536))", "abs(v)", "i32_to_narrow_float16"),
    Fault("the integer 0 has an exponent", "convert.qg", "if v == 0 then 0 else code", "code", "i32_to_narrow_float16"),
    Fault("a saturated bfloat16 overflows", "convert.qg", "0x7f7f", "0x7f80", "saturate_bf16"),
    Fault("codes of 2 bits extended as bytes", "convert.qg", "(F.bits - 1))) + F.min", "7)) - 128", "sign_extend_int2"),
    Fault("a negative code keeps its high bits", "convert.qg", " & F.mask;", ";", "saturate_signed_int4"),
    Fault("saturates one too early", "convert.qg", "F.max));", "F.max - 1));", "saturate_unsigned_uint8"),
    Fault("a digit's estimate is corrected once", "exact.qg", "second - u32(over2)", "second", "div_int_by_int"),
    Fault("no sticky bit of an exact quotient", "exact.qg", "let sticky = u32(d0.remainder != 0);", "let sticky = 0;", "rint_int_by_f32"),
    Fault("an exact quotient rounded twice", "exact.qg", " | u32((q.significand & ((1 << (shift - 2)) - 1)) != 0)", "", "rint_int_by_int"),
    Fault("-0 and +0 differ", "float32.qg", " || ((x | y) & 0x7fffffff) == 0", "", "equal_f32"),
    Fault("NaN equals itself", "float32.qg", "max(x & 0x7fffffff, y & 0x7fffffff) <= 0x7f800000 && (x == y", "(x == y", "equal_f32"),
    Fault("infinity is NaN", "float32.qg", "return (x & 0x7fffffff) > 0x7f800000;", "return (x & 0x7fffffff) >= 0x7f800000;", "is_nan_f32"),
    Fault("a negative NaN is a number", "float32.qg", "return (x & 0x7fffffff) > 0x7f800000;", "return x > 0x7f800000;", "is_nan_f32"),
    Fault("NaN has its own place", "float32.qg", "if (x & 0x7fffffff) > 0x7f800000 { return 0xffffffff; }", "", "max_f32"),
    Fault("negative numbers in wrong order", "float32.qg", "0 then ~x else", "0 then x ^ 0x80000000 else", "max_f32"),
    Fault("the least number of the wrong sign", "float32.qg", "of_max_key(key) ^ 0x80000000", "of_max_key(key)", "min_f32"),
    Fault("-1 / 0 is +infinity", "exact.qg", "(u32(x) & 0x80000000) | 0x7f800000", "0x7f800000", "div_int_by_int"),
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.title)
def test_a_fault_in_the_library_is_found(fault: Fault) -> None:
    texts = library_texts()
    assert fault.old in texts[fault.file]
    texts[fault.file] = texts[fault.file].replace(fault.old, fault.new)
    clause = clause_of(texts, fault.found_by)
    assert mismatches(clause, arguments(clause, seed=1, count=40_000)) != []
