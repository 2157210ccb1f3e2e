// QuantizeLinear: y = saturate_uint4(round_even(x / y_scale) + y_zero_point)
//
//   x             float16  2 in a word, first in the lowest bits
//   y_scale       float16  one for 32 elements along axis -1
//   y_zero_point  uint4    one for 32 elements along axis -1
//   y             uint4    8 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 32 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read> y_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
    axis: u32,
    inner: u32,
    blocks: u32,
    axis_start: u32,
}

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 32u * unit;
    let end = min(first + 32u, params.n);
    let whole = (end - first) == 32u;
    var rest = (32u * unit + params.axis_start) % params.inner;
    var along = (32u * unit + params.axis_start) / params.inner % params.axis;
    var slice = (32u * unit + params.axis_start) / params.inner / params.axis * params.blocks;
    var held = true;
    for (var p = 0u; p < select(0u, 4u, whole); p++) {
        let piece = 4u * unit + p;
        let group = (slice + along / 32u) * params.inner + rest;
        let rest_2 = select(rest + 1u, 0u, (rest + 1u) == params.inner);
        let along_2 = select(along + u32(rest_2 == 0u), 0u, (along + u32(rest_2 == 0u)) == params.axis);
        let slice_2 = slice + select(0u, params.blocks, (rest_2 == 0u) && (along_2 == 0u));
        let group_2 = (slice_2 + along_2 / 32u) * params.inner + rest_2;
        let rest_3 = select(rest_2 + 1u, 0u, (rest_2 + 1u) == params.inner);
        let along_3 = select(along_2 + u32(rest_3 == 0u), 0u, (along_2 + u32(rest_3 == 0u)) == params.axis);
        let slice_3 = slice_2 + select(0u, params.blocks, (rest_3 == 0u) && (along_3 == 0u));
        let group_3 = (slice_3 + along_3 / 32u) * params.inner + rest_3;
        let rest_4 = select(rest_3 + 1u, 0u, (rest_3 + 1u) == params.inner);
        let along_4 = select(along_3 + u32(rest_4 == 0u), 0u, (along_3 + u32(rest_4 == 0u)) == params.axis);
        let slice_4 = slice_3 + select(0u, params.blocks, (rest_4 == 0u) && (along_4 == 0u));
        let group_4 = (slice_4 + along_4 / 32u) * params.inner + rest_4;
        let rest_5 = select(rest_4 + 1u, 0u, (rest_4 + 1u) == params.inner);
        let along_5 = select(along_4 + u32(rest_5 == 0u), 0u, (along_4 + u32(rest_5 == 0u)) == params.axis);
        let slice_5 = slice_4 + select(0u, params.blocks, (rest_5 == 0u) && (along_5 == 0u));
        let group_5 = (slice_5 + along_5 / 32u) * params.inner + rest_5;
        let rest_6 = select(rest_5 + 1u, 0u, (rest_5 + 1u) == params.inner);
        let along_6 = select(along_5 + u32(rest_6 == 0u), 0u, (along_5 + u32(rest_6 == 0u)) == params.axis);
        let slice_6 = slice_5 + select(0u, params.blocks, (rest_6 == 0u) && (along_6 == 0u));
        let group_6 = (slice_6 + along_6 / 32u) * params.inner + rest_6;
        let rest_7 = select(rest_6 + 1u, 0u, (rest_6 + 1u) == params.inner);
        let along_7 = select(along_6 + u32(rest_7 == 0u), 0u, (along_6 + u32(rest_7 == 0u)) == params.axis);
        let slice_7 = slice_6 + select(0u, params.blocks, (rest_7 == 0u) && (along_7 == 0u));
        let group_7 = (slice_7 + along_7 / 32u) * params.inner + rest_7;
        let rest_8 = select(rest_7 + 1u, 0u, (rest_7 + 1u) == params.inner);
        let along_8 = select(along_7 + u32(rest_8 == 0u), 0u, (along_7 + u32(rest_8 == 0u)) == params.axis);
        let slice_8 = slice_7 + select(0u, params.blocks, (rest_8 == 0u) && (along_8 == 0u));
        let group_8 = (slice_8 + along_8 / 32u) * params.inner + rest_8;
        let rest_9 = select(rest_8 + 1u, 0u, (rest_8 + 1u) == params.inner);
        let along_9 = select(along_8 + u32(rest_9 == 0u), 0u, (along_8 + u32(rest_9 == 0u)) == params.axis);
        let slice_9 = slice_8 + select(0u, params.blocks, (rest_9 == 0u) && (along_9 == 0u));
        let scales = vec4u((y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu, (y_scale[group_2 / 2u] >> (16u * (group_2 % 2u))) & 0xffffu, (y_scale[group_3 / 2u] >> (16u * (group_3 % 2u))) & 0xffffu, (y_scale[group_4 / 2u] >> (16u * (group_4 % 2u))) & 0xffffu);
        let scales_2 = vec4u((y_scale[group_5 / 2u] >> (16u * (group_5 % 2u))) & 0xffffu, (y_scale[group_6 / 2u] >> (16u * (group_6 % 2u))) & 0xffffu, (y_scale[group_7 / 2u] >> (16u * (group_7 % 2u))) & 0xffffu, (y_scale[group_8 / 2u] >> (16u * (group_8 % 2u))) & 0xffffu);
        let zero_points = zero_extend_uint4_4(vec4u((y_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u, (y_zero_point[group_2 / 8u] >> (4u * (group_2 % 8u))) & 15u, (y_zero_point[group_3 / 8u] >> (4u * (group_3 % 8u))) & 15u, (y_zero_point[group_4 / 8u] >> (4u * (group_4 % 8u))) & 15u));
        let zero_points_2 = zero_extend_uint4_4(vec4u((y_zero_point[group_5 / 8u] >> (4u * (group_5 % 8u))) & 15u, (y_zero_point[group_6 / 8u] >> (4u * (group_6 % 8u))) & 15u, (y_zero_point[group_7 / 8u] >> (4u * (group_7 % 8u))) & 15u, (y_zero_point[group_8 / 8u] >> (4u * (group_8 % 8u))) & 15u));
        let is_plain = all(rint_quotient_f16_takes_s_4(scales) & rint_quotient_f16_takes_s_4(scales_2));
        let x_word = x[4u * piece];
        let x_word_2 = x[4u * piece + 1u];
        let x_word_3 = x[4u * piece + 2u];
        let x_word_4 = x[4u * piece + 3u];
        let y_codes = quantize_linear_quick_4_vvv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scales, zero_points);
        let y_codes_2 = quantize_linear_quick_4_vvv(vec4u(x_word_3 & 0xffffu, x_word_3 >> 16u, x_word_4 & 0xffffu, x_word_4 >> 16u), scales_2, zero_points_2);
        held = (held && is_plain) && all((rint_quotient_f16_takes_x_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u)) & rint_quotient_f16_holds_4_vv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scales)) & (rint_quotient_f16_takes_x_4(vec4u(x_word_3 & 0xffffu, x_word_3 >> 16u, x_word_4 & 0xffffu, x_word_4 >> 16u)) & rint_quotient_f16_holds_4_vv(vec4u(x_word_3 & 0xffffu, x_word_3 >> 16u, x_word_4 & 0xffffu, x_word_4 >> 16u), scales_2)));
        y[piece] = ((((((y_codes.x | (y_codes.y << 4u)) | (y_codes.z << 8u)) | (y_codes.w << 12u)) | (y_codes_2.x << 16u)) | (y_codes_2.y << 20u)) | (y_codes_2.z << 24u)) | (y_codes_2.w << 28u);
        rest = rest_9;
        along = along_9;
        slice = slice_9;
    }
    let again = select(first, end, whole && held);
    for (var start = again; start < end; start += 8u) {
        var word = 0u;
        for (var i = start; i < min(start + 8u, end); i++) {
            let group = ((i + params.axis_start) / params.inner / params.axis * params.blocks + (i + params.axis_start) / params.inner % params.axis / 32u) * params.inner + (i + params.axis_start) % params.inner;
            let scale = (y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu;
            let zero_point = zero_extend_uint4((y_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u);
            word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale, zero_point) << (4u * (i % 8u));
        }
        y[start / 8u] = word;
    }
}

fn zero_extend_uint4_4(code: vec4u) -> vec4i {
    return vec4i(code);
}

fn rint_quotient_f16_takes_s_4(s: vec4u) -> vec4<bool> {
    return ((s & vec4u(0x7fffu)) != vec4u(0u)) & ((s & vec4u(0x7fffu)) < vec4u(0x7c00u));
}

fn quantize_linear_quick_4_vvv(x: vec4u, scale: vec4u, zero_point: vec4i) -> vec4u {
    return saturate_unsigned_uint4_4(rint_quotient_f16_4_vv(x, scale) + zero_point);
}

// The quotient is rounded to the 11 bits of float16 by integers: right unless it is near the middle between two of them.
fn rint_quotient_f16_4_vv(x: vec4u, s: vec4u) -> vec4i {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / bitcast<vec4f>(ieee_to_f32_float16_4(s)));
    let rounded = (q + vec4u(0x1000u)) & vec4u(0xffffe000u);
    let value = vec4i(round(bitcast<vec4f>(rounded)));
    let infinite = (rounded & vec4u(0x7fffffffu)) >= vec4u(0x47800000u);
    return select(value, select(vec4i(262144), vec4i(-262144), rounded > vec4u(0x7fffffffu)), infinite);
}

fn saturate_unsigned_uint4_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(0), vec4i(15)));
}

fn rint_quotient_f16_takes_x_4(x: vec4u) -> vec4<bool> {
    return (x & vec4u(0x7fffu)) < vec4u(0x7c00u);
}

fn rint_quotient_f16_holds_4_vv(x: vec4u, s: vec4u) -> vec4<bool> {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / bitcast<vec4f>(ieee_to_f32_float16_4(s)));
    return ((q & vec4u(0x1fffu)) - vec4u(0xffcu)) > vec4u(8u);
}

fn ieee_to_f32_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    return select(select(expand_float16_4(code), ((code >> vec4u(15u)) << vec4u(31u)) | vec4u(0x7f800000u), magnitude == vec4u(0x7c00u)), vec4u(0x7fc00000u), magnitude > vec4u(0x7c00u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16_4(code: vec4u) -> vec4u {
    let sign = (code >> vec4u(15u)) << vec4u(31u);
    let magnitude = code & vec4u(0x7fffu);
    let exponent = magnitude >> vec4u(10u);
    let mantissa = magnitude << vec4u(13u);
    let zeros = countLeadingZeros(mantissa) - vec4u(8u);
    return select(sign | (mantissa + vec4u(0x38000000u)), select((sign | ((vec4u(113u) - zeros) << vec4u(23u))) | ((mantissa << (zeros & vec4u(31u))) & vec4u(0x7fffffu)), sign, magnitude == vec4u(0u)), exponent == vec4u(0u));
}

fn zero_extend_uint4(code: u32) -> i32 {
    return i32(code);
}

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_unsigned_uint4(rint_f32(ieee_to_f32_float16(div_f16(x, scale))) + zero_point);
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
    if (magnitude == 0x7c00u) { return ((code >> 15u) << 31u) | 0x7f800000u; }
    return expand_float16(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16(code: u32) -> u32 {
    let sign = (code >> 15u) << 31u;
    let magnitude = code & 0x7fffu;
    let exponent = magnitude >> 10u;
    let mantissa = magnitude << 13u;
    if (exponent == 0u) {
        if (magnitude == 0u) { return sign; }
        let zeros = countLeadingZeros(mantissa) - 8u;
        return (sign | ((113u - zeros) << 23u)) | ((mantissa << (zeros & 31u)) & 0x7fffffu);
    }
    return sign | (mantissa + 0x38000000u);
}

// The nearest integer, half to even, clamped to 2^18 in magnitude; NaN is the lowest.
fn rint_f32(x: u32) -> i32 {
    let magnitude = x & 0x7fffffffu;
    let exponent = i32(magnitude >> 23u);
    let rounded = round_shift((x & 0x7fffffu) | 0x800000u, u32(clamp(150 - exponent, 1, 25)));
    let value = i32(select(rounded, 0x40000u, exponent >= 145));
    return select(value, -value, (x != magnitude) || (magnitude > 0x7f800000u));
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
}

fn saturate_unsigned_uint4(v: i32) -> u32 {
    return u32(clamp(v, 0, 15));
}
