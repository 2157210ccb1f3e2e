// QuantizeLinear: y = saturate_uint8(round_even(x / y_scale))
//
//   x        float16  2 in a word, first in the lowest bits
//   y_scale  float16  one for all elements
//   y        uint8    4 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 256u) + id.x;
    if (unit >= params.units) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, params.n);
    let whole = (end - first) == 64u;
    let scale = y_scale[0u] & 0xffffu;
    let is_plain = rint_quotient_f16_takes_s(scale);
    var failed = 0u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let piece = 16u * unit + p;
        let x_word = x[2u * piece];
        let x_word_2 = x[2u * piece + 1u];
        let y_codes = quantize_linear_quick_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scale);
        failed |= u32(!all(rint_quotient_f16_takes_x_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u)) & rint_quotient_f16_holds_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scale))) << p;
        y[piece] = ((y_codes.x | (y_codes.y << 8u)) | (y_codes.z << 16u)) | (y_codes.w << 24u);
    }
    let redo = select(0xffffffffu, failed, whole && is_plain);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (16u * unit + p);
        let to_element = select(from_element, min(from_element + 4u, params.n), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 4u) {
            var word = 0u;
            for (var i = start; i < min(start + 4u, to_element); i++) {
                word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (8u * (i % 4u));
            }
            y[start / 4u] = word;
        }
    }
}

fn rint_quotient_f16_takes_s(s: u32) -> bool {
    return ((s & 0x7fffu) != 0u) && ((s & 0x7fffu) < 0x7c00u);
}

fn quantize_linear_quick_4(x: vec4u, scale: u32) -> vec4u {
    return saturate_unsigned_uint8_4(rint_quotient_f16_4(x, scale));
}

// The quotient is rounded to the 11 bits of float16 by integers: right unless it is near the middle between two of them.
fn rint_quotient_f16_4(x: vec4u, s: u32) -> vec4i {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / vec4f(bitcast<f32>(ieee_to_f32_float16(s))));
    let rounded = (q + vec4u(0x1000u)) & vec4u(0xffffe000u);
    let value = vec4i(round(bitcast<vec4f>(rounded)));
    let infinite = (rounded & vec4u(0x7fffffffu)) >= vec4u(0x47800000u);
    return select(value, select(vec4i(262144), vec4i(-262144), rounded > vec4u(0x7fffffffu)), infinite);
}

fn saturate_unsigned_uint8_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(0), vec4i(255)));
}

fn rint_quotient_f16_takes_x_4(x: vec4u) -> vec4<bool> {
    return (x & vec4u(0x7fffu)) < vec4u(0x7c00u);
}

fn rint_quotient_f16_holds_4(x: vec4u, s: u32) -> vec4<bool> {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / vec4f(bitcast<f32>(ieee_to_f32_float16(s))));
    return ((q & vec4u(0x1fffu)) - vec4u(0xffcu)) > vec4u(8u);
}

fn ieee_to_f32_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    return select(expand_float16_4(code) + select(vec4u(0u), vec4u(0x38000000u), magnitude == vec4u(0x7c00u)), vec4u(0x7fc00000u), magnitude > vec4u(0x7c00u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    let normal = (magnitude << vec4u(13u)) + vec4u(0x38000000u);
    let subnormal = bitcast<vec4u>(vec4f(vec4i(magnitude)) * vec4f(bitcast<f32>(0x33800000u))) & vec4u(0x7fffffffu);
    return ((code >> vec4u(15u)) << vec4u(31u)) | select(normal, subnormal, (magnitude >> vec4u(10u)) == vec4u(0u));
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_unsigned_uint8(rint_f32(ieee_to_f32_float16(div_f16(x, scale))));
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x / y: one u32 division of the significands, whose remainder is the sticky bit.
fn div_f16(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffu;
    let ay = y & 0x7fffu;
    let sign = (x ^ y) & 0x8000u;
    if ((max(ax, ay) > 0x7c00u) || ((ax == ay) && ((ax == 0u) || (ax == 0x7c00u)))) { return 0x7e00u; }
    if ((ax == 0x7c00u) || (ay == 0u)) { return sign | 0x7c00u; }
    if ((ax == 0u) || (ay == 0x7c00u)) { return sign; }
    let a = parts_of_f16(ax);
    let b = parts_of_f16(ay);
    let da = a.significand >> 13u;
    let db = b.significand >> 13u;
    let less = u32(da < db);
    let dividend = da << (12u + less);
    let quotient = dividend / db;
    let significand = (quotient << 1u) | u32(dividend != (quotient * db));
    let exponent = a.exponent - b.exponent + 15 - i32(less);
    let shift = u32(3 + clamp(1 - exponent, 0, 12));
    let bits = (u32(clamp(exponent, 1, 31) - 1) << 10u) + round_shift(significand, shift);
    return sign | min(bits, 0x7c00u);
}

// As `parts`; the exponent stays biased as float16's.
fn parts_of_f16(magnitude: u32) -> Parts {
    let zeros = countLeadingZeros(magnitude & 0x3ffu) - 21u;
    let exponent = magnitude >> 10u;
    if (exponent == 0u) { return Parts(0u, 1 - i32(zeros), (magnitude << (zeros & 31u)) << 13u); }
    return Parts(0u, i32(exponent), ((magnitude & 0x3ffu) | 0x400u) << 13u);
}

fn ieee_to_f32_float16(code: u32) -> u32 {
    let magnitude = code & 0x7fffu;
    if (magnitude > 0x7c00u) { return 0x7fc00000u; }
    return expand_float16(code) + select(0u, 0x38000000u, magnitude == 0x7c00u);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16(code: u32) -> u32 {
    let magnitude = code & 0x7fffu;
    let normal = (magnitude << 13u) + 0x38000000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x33800000u)) & 0x7fffffffu;
    return ((code >> 15u) << 31u) | select(normal, subnormal, (magnitude >> 10u) == 0u);
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
