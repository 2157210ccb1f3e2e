// QuantizeLinear: y = saturate_uint8(round_even(x / y_scale) + y_zero_point)
//
//   x             float32  1 a word
//   y_scale       float32  one for all elements
//   y_zero_point  uint8    one for all elements
//   y             uint8    4 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

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
    let first = 64u * unit;
    let end = min(first + 64u, params.n);
    let whole = (end - first) == 64u;
    let scale = y_scale[0u];
    let zero_point = zero_extend_uint8(y_zero_point[0u] & 255u);
    let is_plain = rint_quotient_takes_s(scale);
    var failed = 0u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let piece = 16u * unit + p;
        let x_word = x[4u * piece];
        let x_word_2 = x[4u * piece + 1u];
        let x_word_3 = x[4u * piece + 2u];
        let x_word_4 = x[4u * piece + 3u];
        let y_codes = quantize_linear_quick_4(vec4u(x_word, x_word_2, x_word_3, x_word_4), scale, zero_point);
        failed |= u32(!all(rint_quotient_holds_4(vec4u(x_word, x_word_2, x_word_3, x_word_4), scale))) << p;
        y[piece] = ((y_codes.x | (y_codes.y << 8u)) | (y_codes.z << 16u)) | (y_codes.w << 24u);
    }
    let redo = select(0xffffffffu, failed, whole && is_plain);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (16u * unit + p);
        let to_element = select(from_element, min(from_element + 4u, params.n), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 4u) {
            var word = 0u;
            for (var i = start; i < min(start + 4u, to_element); i++) {
                word |= quantize_linear(x[i], scale, zero_point) << (8u * (i % 4u));
            }
            y[start / 4u] = word;
        }
    }
}

fn zero_extend_uint8(code: u32) -> i32 {
    return i32(code);
}

fn rint_quotient_takes_s(s: u32) -> bool {
    let es = s & 0x7f800000u;
    return (es > 0xc000000u) && (es < 0x77000000u);
}

fn quantize_linear_quick_4(x: vec4u, scale: u32, zero_point: i32) -> vec4u {
    return saturate_unsigned_uint8_4(rint_quotient_4(x, scale) + vec4i(zero_point));
}

// Right unless the quotient is near a tie: 2^-20 of it is more than 2.5 ULP and the rounding of the sum.
fn rint_quotient_4(x: vec4u, s: u32) -> vec4i {
    let q = bitcast<vec4f>(x) / vec4f(bitcast<f32>(s));
    let r = round(q);
    return vec4i(r);
}

fn saturate_unsigned_uint8_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(0), vec4i(255)));
}

fn rint_quotient_holds_4(x: vec4u, s: u32) -> vec4<bool> {
    let es = s & 0x7f800000u;
    let q = bitcast<vec4f>(x) / vec4f(bitcast<f32>(s));
    let r = round(q);
    return select(((abs(q - r) + abs(q) * vec4f(9.5367431640625e-07f)) < vec4f(0.5f)), vec4<bool>(false), (x & vec4u(0x7fffffffu)) >= vec4u(es + 0x8000000u));
}

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_unsigned_uint8(rint_f32(div_f32(x, scale)) + zero_point);
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x / y. The native quotient of two values in [1, 4) is only a hint: it may be off by 2.5 ULP, 3.5 below and 7 above are survived.
fn div_f32(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffffffu;
    let ay = y & 0x7fffffffu;
    let sign = (x ^ y) & 0x80000000u;
    if ((max(ax, ay) > 0x7f800000u) || ((ax == ay) && ((ax == 0u) || (ax == 0x7f800000u)))) { return 0x7fc00000u; }
    if ((ax == 0x7f800000u) || (ay == 0u)) { return sign | 0x7f800000u; }
    if ((ax == 0u) || (ay == 0x7f800000u)) { return sign; }
    let a = parts(x);
    let b = parts(y);
    let d = b.significand;
    let less = u32(a.significand < d);
    let hint = bitcast<u32>(bitcast<f32>(((127u + less) << 23u) | (a.significand & 0x7fffffu)) / bitcast<f32>(0x3f800000u | (d & 0x7fffffu)));
    let n0 = hint - 0x3f800000u + 0x7ffff8u;
    let r0 = (a.significand << (23u + less)) - n0 * d;
    let s3 = u32(r0 >= (d << 3u));
    let r1 = r0 - s3 * (d << 3u);
    let s2 = u32(r1 >= (d << 2u));
    let r2 = r1 - s2 * (d << 2u);
    let s1 = u32(r2 >= (d << 1u));
    let r3 = r2 - s1 * (d << 1u);
    let s0 = u32(r3 >= d);
    let r4 = (r3 - s0 * d) << 1u;
    let n = n0 + (s3 << 3u) + (s2 << 2u) + (s1 << 1u) + s0;
    let guard = u32(r4 >= d);
    let sticky = u32(r4 != (guard * d));
    return round_pack(sign, a.exponent - b.exponent + 127 - i32(less), ((n << 2u) | (guard << 1u)) | sticky);
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
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

// The nearest integer, half to even, clamped to 2^18 in magnitude; NaN is the lowest.
fn rint_f32(x: u32) -> i32 {
    let magnitude = x & 0x7fffffffu;
    let exponent = i32(magnitude >> 23u);
    let rounded = round_shift((x & 0x7fffffu) | 0x800000u, u32(clamp(150 - exponent, 1, 25)));
    let value = i32(select(rounded, 0x40000u, exponent >= 145));
    return select(value, -value, (x != magnitude) || (magnitude > 0x7f800000u));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

fn saturate_unsigned_uint8(v: i32) -> u32 {
    return u32(clamp(v, 0, 255));
}
