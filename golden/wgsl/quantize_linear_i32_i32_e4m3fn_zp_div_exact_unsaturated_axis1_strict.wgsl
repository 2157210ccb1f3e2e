// QuantizeLinear: y = float8e4m3fn(float32(x / y_scale))
//
//   x        int32         1 a word
//   y_scale  int32         one for each index along axis 1
//   y        float8e4m3fn  4 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 4 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
    axis: u32,
    inner: u32,
    axis_start: u32,
}

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 4u * unit;
    let end = min(first + 4u, params.n);
    var word = 0u;
    for (var i = first; i < end; i++) {
        let group = (i + params.axis_start) / params.inner % params.axis;
        let scale = sign_extend_int32(y_scale[group]);
        word |= quantize_linear(x[i], scale) << (8u * (i % 4u));
    }
    y[unit] = word;
}

fn quantize_linear(x: u32, scale: i32) -> u32 {
    return convert_fn_float8e4m3fn(div_int_by_int(sign_extend_int32(x), scale));
}

fn sign_extend_int32(code: u32) -> i32 {
    return i32(code ^ 0x80000000u) + i32(-2147483648);
}

struct Quotient {
    sign: u32,
    exponent: i32,
    significand: u32,
}

struct Normal {
    sign: u32,
    exponent: i32,
    significand: u32,
}

fn div_int_by_int(x: i32, y: i32) -> u32 {
    if (y == 0) { return select((u32(x) & 0x80000000u) | 0x7f800000u, 0x7fc00000u, x == 0); }
    if (x == 0) { return u32(y) & 0x80000000u; }
    return quotient_to_f32(exact_quotient(normal_of_i32(x), normal_of_i32(y)));
}

// An integer other than 0: significand * 2^(exponent - 158), with the leading one at bit 31.
fn normal_of_i32(v: i32) -> Normal {
    let sign = u32(v) & 0x80000000u;
    let magnitude = select(u32(v), 0u - u32(v), sign != 0u);
    let zeros = countLeadingZeros(magnitude);
    return Normal(sign, 158 - i32(zeros), magnitude << (zeros & 31u));
}

struct Digit {
    quotient: u32,
    remainder: u32,
}

// a / b = significand * 2^(exponent - 158), with the leading one at bit 31 and bit 0 set where something was lost below it.
fn exact_quotient(a: Normal, b: Normal) -> Quotient {
    let less = u32(a.significand < b.significand);
    let start = select(a.significand - b.significand, a.significand, less == 1u);
    let d1 = next_digit(start, b.significand);
    let d0 = next_digit(d1.remainder, b.significand);
    let digits = (d1.quotient << 16u) | d0.quotient;
    let sticky = u32(d0.remainder != 0u);
    let significand = select((0x80000000u | (digits >> 1u)) | sticky, digits | sticky, less == 1u);
    return Quotient(a.sign ^ b.sign, a.exponent - b.exponent + 127 - i32(less), significand);
}

// remainder * 2^16 / divisor and what is left of it; the divisor has bit 31 set, the remainder is below it.
fn next_digit(remainder: u32, divisor: u32) -> Digit {
    let high = divisor >> 16u;
    let low = divisor & 0xffffu;
    let first = remainder / high;
    let left = remainder - first * high;
    let over1 = (first > 0xffffu) || ((first * low) > (left << 16u));
    let second = first - u32(over1);
    let left2 = left + select(0u, high, over1);
    let over2 = (left2 <= 0xffffu) && ((second > 0xffffu) || ((second * low) > (left2 << 16u)));
    let quotient = second - u32(over2);
    return Digit(quotient, (remainder << 16u) - quotient * divisor);
}

fn quotient_to_f32(q: Quotient) -> u32 {
    return round_pack(q.sign, q.exponent, (q.significand >> 6u) | u32((q.significand & 63u) != 0u));
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
}

// What rounds beyond the greatest number becomes NaN.
fn convert_fn_float8e4m3fn(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    let code = round_to_float8e4m3fn(magnitude);
    if ((magnitude > 0x7f800000u) || (code > 126u)) { return 127u; }
    return ((x >> 31u) << 7u) | code;
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float8e4m3fn(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 121u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x3c000000u, normal);
    return round_shift(value, select(min(141u - exponent, 26u), 20u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
