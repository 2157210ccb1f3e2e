// QuantizeLinear: y = saturate_float4e2m1(x / float32(y_scale))
//
//   x        float32     1 a word
//   y_scale  float16     one for 32 elements along axis -1
//   y        float4e2m1  8 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 32 elements.

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
        let scales = ieee_to_f32_float16_4(vec4u((y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu, (y_scale[group_2 / 2u] >> (16u * (group_2 % 2u))) & 0xffffu, (y_scale[group_3 / 2u] >> (16u * (group_3 % 2u))) & 0xffffu, (y_scale[group_4 / 2u] >> (16u * (group_4 % 2u))) & 0xffffu));
        let scales_2 = ieee_to_f32_float16_4(vec4u((y_scale[group_5 / 2u] >> (16u * (group_5 % 2u))) & 0xffffu, (y_scale[group_6 / 2u] >> (16u * (group_6 % 2u))) & 0xffffu, (y_scale[group_7 / 2u] >> (16u * (group_7 % 2u))) & 0xffffu, (y_scale[group_8 / 2u] >> (16u * (group_8 % 2u))) & 0xffffu));
        let is_plain = all(saturate_quotient_float4e2m1_takes_s_4(scales) & saturate_quotient_float4e2m1_takes_s_4(scales_2));
        let x_word = x[8u * piece];
        let x_word_2 = x[8u * piece + 1u];
        let x_word_3 = x[8u * piece + 2u];
        let x_word_4 = x[8u * piece + 3u];
        let x_word_5 = x[8u * piece + 4u];
        let x_word_6 = x[8u * piece + 5u];
        let x_word_7 = x[8u * piece + 6u];
        let x_word_8 = x[8u * piece + 7u];
        let y_codes = quantize_linear_quick_4_vv(vec4u(x_word, x_word_2, x_word_3, x_word_4), scales);
        let y_codes_2 = quantize_linear_quick_4_vv(vec4u(x_word_5, x_word_6, x_word_7, x_word_8), scales_2);
        held = (held && is_plain) && all(saturate_quotient_float4e2m1_holds_4_vv(vec4u(x_word, x_word_2, x_word_3, x_word_4), scales) & saturate_quotient_float4e2m1_holds_4_vv(vec4u(x_word_5, x_word_6, x_word_7, x_word_8), scales_2));
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
            let scale = ieee_to_f32_float16((y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
            word |= quantize_linear(x[i], scale) << (4u * (i % 8u));
        }
        y[start / 8u] = word;
    }
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

fn saturate_quotient_float4e2m1_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0xc000000u)) & (es < vec4u(0x77000000u));
}

fn quantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return saturate_quotient_float4e2m1_4_vv(x, scale);
}

// Rounding is monotone: where 8 ULP less and 8 ULP more round alike, so do the true quotient and any other division of the same operands.
fn saturate_quotient_float4e2m1_4_vv(x: vec4u, s: vec4u) -> vec4u {
    let q = bitcast<vec4u>(bitcast<vec4f>(x) / bitcast<vec4f>(s)) & vec4u(0x7fffffffu);
    return (((x ^ s) >> vec4u(31u)) << vec4u(3u)) | min(round_to_float4e2m1_4(q), vec4u(7u));
}

fn saturate_quotient_float4e2m1_holds_4_vv(x: vec4u, s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    let q = bitcast<vec4u>(bitcast<vec4f>(x) / bitcast<vec4f>(s)) & vec4u(0x7fffffffu);
    return select(min(round_to_float4e2m1_4(max(q, vec4u(8u)) - vec4u(8u)), vec4u(7u)) == min(round_to_float4e2m1_4(q + vec4u(8u)), vec4u(7u)), vec4<bool>(false), (x & vec4u(0x7fffffffu)) >= (es + vec4u(0x8000000u)));
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float4e2m1_4(magnitude: vec4u) -> vec4u {
    let exponent = vec4i(magnitude >> vec4u(23u));
    let biased = max(exponent, vec4i(1));
    let significand = (magnitude & vec4u(0x7fffffu)) | (vec4u(exponent != vec4i(0)) << vec4u(23u));
    let shift = vec4u(min(vec4i(22) + max(vec4i(127) - biased, vec4i(0)), vec4i(26)));
    return (vec4u(max(biased - vec4i(127), vec4i(0))) << vec4u(1u)) + round_shift_4_vv(significand, shift);
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift_4_vv(value: vec4u, shift: vec4u) -> vec4u {
    let kept = value >> shift;
    let rest = value & ((vec4u(1u) << shift) - vec4u(1u));
    let half = vec4u(1u) << (shift - vec4u(1u));
    return kept + vec4u((rest > half) | ((rest == half) & ((kept & vec4u(1u)) == vec4u(1u))));
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

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_float_float4e2m1(div_f32(x, scale));
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

// A format without NaN has its greatest number in place of it.
fn saturate_float_float4e2m1(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 7u; }
    return ((x >> 31u) << 3u) | min(round_to_float4e2m1(magnitude), 7u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float4e2m1(magnitude: u32) -> u32 {
    let exponent = i32(magnitude >> 23u);
    let biased = max(exponent, 1);
    let significand = (magnitude & 0x7fffffu) | (u32(exponent != 0) << 23u);
    let shift = u32(min(22 + max(127 - biased, 0), 26));
    return (u32(max(biased - 127, 0)) << 1u) + round_shift(significand, shift);
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
}
