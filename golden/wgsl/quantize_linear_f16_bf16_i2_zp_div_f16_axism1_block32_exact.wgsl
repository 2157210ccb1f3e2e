// QuantizeLinear: y = saturate_int2(round_even(x / float16(y_scale)) + y_zero_point)
//
//   x             float16   2 in a word, first in the lowest bits
//   y_scale       bfloat16  one for 32 elements along axis -1
//   y_zero_point  int2      one for 32 elements along axis -1
//   y             int2      16 in a word, first in the lowest bits
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
    for (var p = 0u; p < select(0u, 2u, whole); p++) {
        let piece = 2u * unit + p;
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
        let group_9 = (slice_9 + along_9 / 32u) * params.inner + rest_9;
        let rest_10 = select(rest_9 + 1u, 0u, (rest_9 + 1u) == params.inner);
        let along_10 = select(along_9 + u32(rest_10 == 0u), 0u, (along_9 + u32(rest_10 == 0u)) == params.axis);
        let slice_10 = slice_9 + select(0u, params.blocks, (rest_10 == 0u) && (along_10 == 0u));
        let group_10 = (slice_10 + along_10 / 32u) * params.inner + rest_10;
        let rest_11 = select(rest_10 + 1u, 0u, (rest_10 + 1u) == params.inner);
        let along_11 = select(along_10 + u32(rest_11 == 0u), 0u, (along_10 + u32(rest_11 == 0u)) == params.axis);
        let slice_11 = slice_10 + select(0u, params.blocks, (rest_11 == 0u) && (along_11 == 0u));
        let group_11 = (slice_11 + along_11 / 32u) * params.inner + rest_11;
        let rest_12 = select(rest_11 + 1u, 0u, (rest_11 + 1u) == params.inner);
        let along_12 = select(along_11 + u32(rest_12 == 0u), 0u, (along_11 + u32(rest_12 == 0u)) == params.axis);
        let slice_12 = slice_11 + select(0u, params.blocks, (rest_12 == 0u) && (along_12 == 0u));
        let group_12 = (slice_12 + along_12 / 32u) * params.inner + rest_12;
        let rest_13 = select(rest_12 + 1u, 0u, (rest_12 + 1u) == params.inner);
        let along_13 = select(along_12 + u32(rest_13 == 0u), 0u, (along_12 + u32(rest_13 == 0u)) == params.axis);
        let slice_13 = slice_12 + select(0u, params.blocks, (rest_13 == 0u) && (along_13 == 0u));
        let group_13 = (slice_13 + along_13 / 32u) * params.inner + rest_13;
        let rest_14 = select(rest_13 + 1u, 0u, (rest_13 + 1u) == params.inner);
        let along_14 = select(along_13 + u32(rest_14 == 0u), 0u, (along_13 + u32(rest_14 == 0u)) == params.axis);
        let slice_14 = slice_13 + select(0u, params.blocks, (rest_14 == 0u) && (along_14 == 0u));
        let group_14 = (slice_14 + along_14 / 32u) * params.inner + rest_14;
        let rest_15 = select(rest_14 + 1u, 0u, (rest_14 + 1u) == params.inner);
        let along_15 = select(along_14 + u32(rest_15 == 0u), 0u, (along_14 + u32(rest_15 == 0u)) == params.axis);
        let slice_15 = slice_14 + select(0u, params.blocks, (rest_15 == 0u) && (along_15 == 0u));
        let group_15 = (slice_15 + along_15 / 32u) * params.inner + rest_15;
        let rest_16 = select(rest_15 + 1u, 0u, (rest_15 + 1u) == params.inner);
        let along_16 = select(along_15 + u32(rest_16 == 0u), 0u, (along_15 + u32(rest_16 == 0u)) == params.axis);
        let slice_16 = slice_15 + select(0u, params.blocks, (rest_16 == 0u) && (along_16 == 0u));
        let group_16 = (slice_16 + along_16 / 32u) * params.inner + rest_16;
        let rest_17 = select(rest_16 + 1u, 0u, (rest_16 + 1u) == params.inner);
        let along_17 = select(along_16 + u32(rest_17 == 0u), 0u, (along_16 + u32(rest_17 == 0u)) == params.axis);
        let slice_17 = slice_16 + select(0u, params.blocks, (rest_17 == 0u) && (along_17 == 0u));
        let scales = convert_ieee_float16_4(bf16_to_f32_4(vec4u((y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu, (y_scale[group_2 / 2u] >> (16u * (group_2 % 2u))) & 0xffffu, (y_scale[group_3 / 2u] >> (16u * (group_3 % 2u))) & 0xffffu, (y_scale[group_4 / 2u] >> (16u * (group_4 % 2u))) & 0xffffu)));
        let scales_2 = convert_ieee_float16_4(bf16_to_f32_4(vec4u((y_scale[group_5 / 2u] >> (16u * (group_5 % 2u))) & 0xffffu, (y_scale[group_6 / 2u] >> (16u * (group_6 % 2u))) & 0xffffu, (y_scale[group_7 / 2u] >> (16u * (group_7 % 2u))) & 0xffffu, (y_scale[group_8 / 2u] >> (16u * (group_8 % 2u))) & 0xffffu)));
        let scales_3 = convert_ieee_float16_4(bf16_to_f32_4(vec4u((y_scale[group_9 / 2u] >> (16u * (group_9 % 2u))) & 0xffffu, (y_scale[group_10 / 2u] >> (16u * (group_10 % 2u))) & 0xffffu, (y_scale[group_11 / 2u] >> (16u * (group_11 % 2u))) & 0xffffu, (y_scale[group_12 / 2u] >> (16u * (group_12 % 2u))) & 0xffffu)));
        let scales_4 = convert_ieee_float16_4(bf16_to_f32_4(vec4u((y_scale[group_13 / 2u] >> (16u * (group_13 % 2u))) & 0xffffu, (y_scale[group_14 / 2u] >> (16u * (group_14 % 2u))) & 0xffffu, (y_scale[group_15 / 2u] >> (16u * (group_15 % 2u))) & 0xffffu, (y_scale[group_16 / 2u] >> (16u * (group_16 % 2u))) & 0xffffu)));
        let zero_points = sign_extend_int2_4(vec4u((y_zero_point[group / 16u] >> (2u * (group % 16u))) & 3u, (y_zero_point[group_2 / 16u] >> (2u * (group_2 % 16u))) & 3u, (y_zero_point[group_3 / 16u] >> (2u * (group_3 % 16u))) & 3u, (y_zero_point[group_4 / 16u] >> (2u * (group_4 % 16u))) & 3u));
        let zero_points_2 = sign_extend_int2_4(vec4u((y_zero_point[group_5 / 16u] >> (2u * (group_5 % 16u))) & 3u, (y_zero_point[group_6 / 16u] >> (2u * (group_6 % 16u))) & 3u, (y_zero_point[group_7 / 16u] >> (2u * (group_7 % 16u))) & 3u, (y_zero_point[group_8 / 16u] >> (2u * (group_8 % 16u))) & 3u));
        let zero_points_3 = sign_extend_int2_4(vec4u((y_zero_point[group_9 / 16u] >> (2u * (group_9 % 16u))) & 3u, (y_zero_point[group_10 / 16u] >> (2u * (group_10 % 16u))) & 3u, (y_zero_point[group_11 / 16u] >> (2u * (group_11 % 16u))) & 3u, (y_zero_point[group_12 / 16u] >> (2u * (group_12 % 16u))) & 3u));
        let zero_points_4 = sign_extend_int2_4(vec4u((y_zero_point[group_13 / 16u] >> (2u * (group_13 % 16u))) & 3u, (y_zero_point[group_14 / 16u] >> (2u * (group_14 % 16u))) & 3u, (y_zero_point[group_15 / 16u] >> (2u * (group_15 % 16u))) & 3u, (y_zero_point[group_16 / 16u] >> (2u * (group_16 % 16u))) & 3u));
        let y_scale_values = convert_to_f16_4(bf16_to_f32_4(vec4u((y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu, (y_scale[group_2 / 2u] >> (16u * (group_2 % 2u))) & 0xffffu, (y_scale[group_3 / 2u] >> (16u * (group_3 % 2u))) & 0xffffu, (y_scale[group_4 / 2u] >> (16u * (group_4 % 2u))) & 0xffffu)));
        let y_scale_values_2 = convert_to_f16_4(bf16_to_f32_4(vec4u((y_scale[group_5 / 2u] >> (16u * (group_5 % 2u))) & 0xffffu, (y_scale[group_6 / 2u] >> (16u * (group_6 % 2u))) & 0xffffu, (y_scale[group_7 / 2u] >> (16u * (group_7 % 2u))) & 0xffffu, (y_scale[group_8 / 2u] >> (16u * (group_8 % 2u))) & 0xffffu)));
        let y_scale_values_3 = convert_to_f16_4(bf16_to_f32_4(vec4u((y_scale[group_9 / 2u] >> (16u * (group_9 % 2u))) & 0xffffu, (y_scale[group_10 / 2u] >> (16u * (group_10 % 2u))) & 0xffffu, (y_scale[group_11 / 2u] >> (16u * (group_11 % 2u))) & 0xffffu, (y_scale[group_12 / 2u] >> (16u * (group_12 % 2u))) & 0xffffu)));
        let y_scale_values_4 = convert_to_f16_4(bf16_to_f32_4(vec4u((y_scale[group_13 / 2u] >> (16u * (group_13 % 2u))) & 0xffffu, (y_scale[group_14 / 2u] >> (16u * (group_14 % 2u))) & 0xffffu, (y_scale[group_15 / 2u] >> (16u * (group_15 % 2u))) & 0xffffu, (y_scale[group_16 / 2u] >> (16u * (group_16 % 2u))) & 0xffffu)));
        let is_plain = all(((rint_quotient_f16_takes_s_4(y_scale_values) & rint_quotient_f16_takes_s_4(y_scale_values_2)) & rint_quotient_f16_takes_s_4(y_scale_values_3)) & rint_quotient_f16_takes_s_4(y_scale_values_4));
        let x_word = x[8u * piece];
        let x_word_2 = x[8u * piece + 1u];
        let x_word_3 = x[8u * piece + 2u];
        let x_word_4 = x[8u * piece + 3u];
        let x_word_5 = x[8u * piece + 4u];
        let x_word_6 = x[8u * piece + 5u];
        let x_word_7 = x[8u * piece + 6u];
        let x_word_8 = x[8u * piece + 7u];
        let y_codes = quantize_linear_quick_4_vvv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), zero_points, y_scale_values);
        let y_codes_2 = quantize_linear_quick_4_vvv(vec4u(x_word_3 & 0xffffu, x_word_3 >> 16u, x_word_4 & 0xffffu, x_word_4 >> 16u), zero_points_2, y_scale_values_2);
        let y_codes_3 = quantize_linear_quick_4_vvv(vec4u(x_word_5 & 0xffffu, x_word_5 >> 16u, x_word_6 & 0xffffu, x_word_6 >> 16u), zero_points_3, y_scale_values_3);
        let y_codes_4 = quantize_linear_quick_4_vvv(vec4u(x_word_7 & 0xffffu, x_word_7 >> 16u, x_word_8 & 0xffffu, x_word_8 >> 16u), zero_points_4, y_scale_values_4);
        held = (held && is_plain) && all((((rint_quotient_f16_takes_x_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u)) & rint_quotient_f16_holds_4_vv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), y_scale_values)) & (rint_quotient_f16_takes_x_4(vec4u(x_word_3 & 0xffffu, x_word_3 >> 16u, x_word_4 & 0xffffu, x_word_4 >> 16u)) & rint_quotient_f16_holds_4_vv(vec4u(x_word_3 & 0xffffu, x_word_3 >> 16u, x_word_4 & 0xffffu, x_word_4 >> 16u), y_scale_values_2))) & (rint_quotient_f16_takes_x_4(vec4u(x_word_5 & 0xffffu, x_word_5 >> 16u, x_word_6 & 0xffffu, x_word_6 >> 16u)) & rint_quotient_f16_holds_4_vv(vec4u(x_word_5 & 0xffffu, x_word_5 >> 16u, x_word_6 & 0xffffu, x_word_6 >> 16u), y_scale_values_3))) & (rint_quotient_f16_takes_x_4(vec4u(x_word_7 & 0xffffu, x_word_7 >> 16u, x_word_8 & 0xffffu, x_word_8 >> 16u)) & rint_quotient_f16_holds_4_vv(vec4u(x_word_7 & 0xffffu, x_word_7 >> 16u, x_word_8 & 0xffffu, x_word_8 >> 16u), y_scale_values_4)));
        y[piece] = ((((((((((((((y_codes.x | (y_codes.y << 2u)) | (y_codes.z << 4u)) | (y_codes.w << 6u)) | (y_codes_2.x << 8u)) | (y_codes_2.y << 10u)) | (y_codes_2.z << 12u)) | (y_codes_2.w << 14u)) | (y_codes_3.x << 16u)) | (y_codes_3.y << 18u)) | (y_codes_3.z << 20u)) | (y_codes_3.w << 22u)) | (y_codes_4.x << 24u)) | (y_codes_4.y << 26u)) | (y_codes_4.z << 28u)) | (y_codes_4.w << 30u);
        rest = rest_17;
        along = along_17;
        slice = slice_17;
    }
    let again = select(first, end, whole && held);
    for (var start = again; start < end; start += 16u) {
        var word = 0u;
        for (var i = start; i < min(start + 16u, end); i++) {
            let group = ((i + params.axis_start) / params.inner / params.axis * params.blocks + (i + params.axis_start) / params.inner % params.axis / 32u) * params.inner + (i + params.axis_start) % params.inner;
            let scale = convert_ieee_float16(bf16_to_f32((y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu));
            let zero_point = sign_extend_int2((y_zero_point[group / 16u] >> (2u * (group % 16u))) & 3u);
            word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale, zero_point) << (2u * (i % 16u));
        }
        y[start / 16u] = word;
    }
}

fn convert_ieee_float16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    return select(((x >> vec4u(31u)) << vec4u(15u)) | min(round_to_float16_4(magnitude), vec4u(0x7c00u)), vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float16_4(magnitude: vec4u) -> vec4u {
    let exponent = vec4i(magnitude >> vec4u(23u));
    let biased = max(exponent, vec4i(1));
    let significand = (magnitude & vec4u(0x7fffffu)) | (vec4u(exponent != vec4i(0)) << vec4u(23u));
    let shift = vec4u(min(vec4i(13) + max(vec4i(113) - biased, vec4i(0)), vec4i(26)));
    return (vec4u(max(biased - vec4i(113), vec4i(0))) << vec4u(10u)) + round_shift_4_vv(significand, shift);
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift_4_vv(value: vec4u, shift: vec4u) -> vec4u {
    let kept = value >> shift;
    let rest = value & ((vec4u(1u) << shift) - vec4u(1u));
    let half = vec4u(1u) << (shift - vec4u(1u));
    return kept + vec4u((rest > half) | ((rest == half) & ((kept & vec4u(1u)) == vec4u(1u))));
}

fn bf16_to_f32_4(x: vec4u) -> vec4u {
    let bits = x << vec4u(16u);
    return select(bits, vec4u(0x7fc00000u), (bits & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

fn sign_extend_int2_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(2u)) + vec4i(-2);
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

fn rint_quotient_f16_takes_s_4(s: vec4u) -> vec4<bool> {
    return ((s & vec4u(0x7fffu)) != vec4u(0u)) & ((s & vec4u(0x7fffu)) < vec4u(0x7c00u));
}

fn quantize_linear_quick_4_vvv(x: vec4u, zero_point: vec4i, y_scale_value: vec4u) -> vec4u {
    return saturate_signed_int2_4(rint_quotient_f16_4_vv(x, y_scale_value) + zero_point);
}

// The quotient is rounded to the 11 bits of float16 by integers: right unless it is near the middle between two of them.
fn rint_quotient_f16_4_vv(x: vec4u, s: vec4u) -> vec4i {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / bitcast<vec4f>(ieee_to_f32_float16_4(s)));
    let rounded = (q + vec4u(0x1000u)) & vec4u(0xffffe000u);
    let value = vec4i(round(bitcast<vec4f>(rounded)));
    let infinite = (rounded & vec4u(0x7fffffffu)) >= vec4u(0x47800000u);
    return select(value, select(vec4i(262144), vec4i(-262144), rounded > vec4u(0x7fffffffu)), infinite);
}

fn saturate_signed_int2_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(-2), vec4i(1))) & vec4u(3u);
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

fn convert_ieee_float16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 0x7e00u; }
    return ((x >> 31u) << 15u) | min(round_to_float16(magnitude), 0x7c00u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float16(magnitude: u32) -> u32 {
    let exponent = i32(magnitude >> 23u);
    let biased = max(exponent, 1);
    let significand = (magnitude & 0x7fffffu) | (u32(exponent != 0) << 23u);
    let shift = u32(min(13 + max(113 - biased, 0), 26));
    return (u32(max(biased - 113, 0)) << 10u) + round_shift(significand, shift);
}

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn sign_extend_int2(code: u32) -> i32 {
    return i32(code ^ 2u) + -2;
}

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_signed_int2(rint_f32(ieee_to_f32_float16(div_f16(x, scale))) + zero_point);
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

fn saturate_signed_int2(v: i32) -> u32 {
    return u32(clamp(v, -2, 1)) & 3u;
}
