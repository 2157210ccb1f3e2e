// QuantizeLinear: y = saturate_int8(round_even(x / y_scale) + y_zero_point)
//
//   x             int32    1 a word
//   y_scale       float32  one for all elements
//   y_zero_point  int8     one for all elements
//   y             int8     4 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 4 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read> y_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
}

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 4u * unit;
    let end = min(first + 4u, params.n);
    let scale = y_scale[0u];
    let zero_point = sign_extend_int8(y_zero_point[0u] & 255u);
    var word = 0u;
    for (var i = first; i < end; i++) {
        word |= quantize_linear(x[i], scale, zero_point) << (8u * (i % 4u));
    }
    y[unit] = word;
}

fn sign_extend_int8(code: u32) -> i32 {
    return i32(code ^ 128u) + -128;
}

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_signed_int8(rint_int_by_f32(sign_extend_int32(x), scale) + zero_point);
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

fn rint_int_by_f32(x: i32, y: u32) -> i32 {
    let ay = y & 0x7fffffffu;
    if ((ay > 0x7f800000u) || ((ay == 0u) && (x == 0))) { return -262144; }
    if (ay == 0u) { return select(262144, -262144, ((u32(x) ^ y) >> 31u) != 0u); }
    if ((ay == 0x7f800000u) || (x == 0)) { return 0; }
    return quotient_to_int(exact_quotient(normal_of_i32(x), normal_of_f32(y)));
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// As `parts`, with the leading one at bit 31; x is finite and not zero.
fn normal_of_f32(x: u32) -> Normal {
    let p = parts(x);
    return Normal(p.sign, p.exponent, p.significand << 8u);
}

// Sign, biased exponent (below 1 for subnormals) and the significand with its leading one at bit 23; x is finite and not zero.
fn parts(x: u32) -> Parts {
    let exponent = i32((x >> 23u) & 255u);
    let mantissa = x & 0x7fffffu;
    if (exponent == 0) {
        let shift = countLeadingZeros(mantissa) - 8u;
        return Parts(x & 0x80000000u, 1 - i32(shift), mantissa << (shift & 31u));
    }
    return Parts(x & 0x80000000u, exponent, mantissa | 0x800000u);
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

// The nearest integer, half to even, clamped to 2^18 in magnitude.
fn quotient_to_int(q: Quotient) -> i32 {
    let shift = u32(clamp(158 - q.exponent, 2, 33));
    let kept = (q.significand >> (shift - 2u)) | u32((q.significand & ((1u << (shift - 2u)) - 1u)) != 0u);
    let value = i32(select(round_shift(kept, 2u), 0x40000u, q.exponent >= 145));
    return select(value, -value, q.sign != 0u);
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

fn saturate_signed_int8(v: i32) -> u32 {
    return u32(clamp(v, -128, 127)) & 255u;
}
