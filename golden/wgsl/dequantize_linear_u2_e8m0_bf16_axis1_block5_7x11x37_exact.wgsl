// DequantizeLinear: y = bfloat16(float32(x) * float32(x_scale))
//
//   x        uint2       [7, 11, 37]  16 in a word, first in the lowest bits
//   x_scale  float8e8m0  [7, 3, 37]   one for 5 elements along axis 1
//   y        bfloat16    [7, 11, 37]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 128 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 23u) { return; }
    let first = 128u * unit;
    let end = min(first + 128u, 2849u);
    let whole = (end - first) == 128u;
    var rest = 128u * unit % 37u;
    var along = 128u * unit / 37u % 11u;
    var slice = 128u * unit / 407u * 3u;
    var held = true;
    for (var p = 0u; p < select(0u, 8u, whole); p++) {
        let piece = 8u * unit + p;
        let group = (slice + along / 5u) * 37u + rest;
        let rest_2 = select(rest + 1u, 0u, (rest + 1u) == 37u);
        let along_2 = select(along + u32(rest_2 == 0u), 0u, (along + u32(rest_2 == 0u)) == 11u);
        let slice_2 = slice + select(0u, 3u, (rest_2 == 0u) && (along_2 == 0u));
        let group_2 = (slice_2 + along_2 / 5u) * 37u + rest_2;
        let rest_3 = select(rest_2 + 1u, 0u, (rest_2 + 1u) == 37u);
        let along_3 = select(along_2 + u32(rest_3 == 0u), 0u, (along_2 + u32(rest_3 == 0u)) == 11u);
        let slice_3 = slice_2 + select(0u, 3u, (rest_3 == 0u) && (along_3 == 0u));
        let group_3 = (slice_3 + along_3 / 5u) * 37u + rest_3;
        let rest_4 = select(rest_3 + 1u, 0u, (rest_3 + 1u) == 37u);
        let along_4 = select(along_3 + u32(rest_4 == 0u), 0u, (along_3 + u32(rest_4 == 0u)) == 11u);
        let slice_4 = slice_3 + select(0u, 3u, (rest_4 == 0u) && (along_4 == 0u));
        let group_4 = (slice_4 + along_4 / 5u) * 37u + rest_4;
        let rest_5 = select(rest_4 + 1u, 0u, (rest_4 + 1u) == 37u);
        let along_5 = select(along_4 + u32(rest_5 == 0u), 0u, (along_4 + u32(rest_5 == 0u)) == 11u);
        let slice_5 = slice_4 + select(0u, 3u, (rest_5 == 0u) && (along_5 == 0u));
        let group_5 = (slice_5 + along_5 / 5u) * 37u + rest_5;
        let rest_6 = select(rest_5 + 1u, 0u, (rest_5 + 1u) == 37u);
        let along_6 = select(along_5 + u32(rest_6 == 0u), 0u, (along_5 + u32(rest_6 == 0u)) == 11u);
        let slice_6 = slice_5 + select(0u, 3u, (rest_6 == 0u) && (along_6 == 0u));
        let group_6 = (slice_6 + along_6 / 5u) * 37u + rest_6;
        let rest_7 = select(rest_6 + 1u, 0u, (rest_6 + 1u) == 37u);
        let along_7 = select(along_6 + u32(rest_7 == 0u), 0u, (along_6 + u32(rest_7 == 0u)) == 11u);
        let slice_7 = slice_6 + select(0u, 3u, (rest_7 == 0u) && (along_7 == 0u));
        let group_7 = (slice_7 + along_7 / 5u) * 37u + rest_7;
        let rest_8 = select(rest_7 + 1u, 0u, (rest_7 + 1u) == 37u);
        let along_8 = select(along_7 + u32(rest_8 == 0u), 0u, (along_7 + u32(rest_8 == 0u)) == 11u);
        let slice_8 = slice_7 + select(0u, 3u, (rest_8 == 0u) && (along_8 == 0u));
        let group_8 = (slice_8 + along_8 / 5u) * 37u + rest_8;
        let rest_9 = select(rest_8 + 1u, 0u, (rest_8 + 1u) == 37u);
        let along_9 = select(along_8 + u32(rest_9 == 0u), 0u, (along_8 + u32(rest_9 == 0u)) == 11u);
        let slice_9 = slice_8 + select(0u, 3u, (rest_9 == 0u) && (along_9 == 0u));
        let group_9 = (slice_9 + along_9 / 5u) * 37u + rest_9;
        let rest_10 = select(rest_9 + 1u, 0u, (rest_9 + 1u) == 37u);
        let along_10 = select(along_9 + u32(rest_10 == 0u), 0u, (along_9 + u32(rest_10 == 0u)) == 11u);
        let slice_10 = slice_9 + select(0u, 3u, (rest_10 == 0u) && (along_10 == 0u));
        let group_10 = (slice_10 + along_10 / 5u) * 37u + rest_10;
        let rest_11 = select(rest_10 + 1u, 0u, (rest_10 + 1u) == 37u);
        let along_11 = select(along_10 + u32(rest_11 == 0u), 0u, (along_10 + u32(rest_11 == 0u)) == 11u);
        let slice_11 = slice_10 + select(0u, 3u, (rest_11 == 0u) && (along_11 == 0u));
        let group_11 = (slice_11 + along_11 / 5u) * 37u + rest_11;
        let rest_12 = select(rest_11 + 1u, 0u, (rest_11 + 1u) == 37u);
        let along_12 = select(along_11 + u32(rest_12 == 0u), 0u, (along_11 + u32(rest_12 == 0u)) == 11u);
        let slice_12 = slice_11 + select(0u, 3u, (rest_12 == 0u) && (along_12 == 0u));
        let group_12 = (slice_12 + along_12 / 5u) * 37u + rest_12;
        let rest_13 = select(rest_12 + 1u, 0u, (rest_12 + 1u) == 37u);
        let along_13 = select(along_12 + u32(rest_13 == 0u), 0u, (along_12 + u32(rest_13 == 0u)) == 11u);
        let slice_13 = slice_12 + select(0u, 3u, (rest_13 == 0u) && (along_13 == 0u));
        let group_13 = (slice_13 + along_13 / 5u) * 37u + rest_13;
        let rest_14 = select(rest_13 + 1u, 0u, (rest_13 + 1u) == 37u);
        let along_14 = select(along_13 + u32(rest_14 == 0u), 0u, (along_13 + u32(rest_14 == 0u)) == 11u);
        let slice_14 = slice_13 + select(0u, 3u, (rest_14 == 0u) && (along_14 == 0u));
        let group_14 = (slice_14 + along_14 / 5u) * 37u + rest_14;
        let rest_15 = select(rest_14 + 1u, 0u, (rest_14 + 1u) == 37u);
        let along_15 = select(along_14 + u32(rest_15 == 0u), 0u, (along_14 + u32(rest_15 == 0u)) == 11u);
        let slice_15 = slice_14 + select(0u, 3u, (rest_15 == 0u) && (along_15 == 0u));
        let group_15 = (slice_15 + along_15 / 5u) * 37u + rest_15;
        let rest_16 = select(rest_15 + 1u, 0u, (rest_15 + 1u) == 37u);
        let along_16 = select(along_15 + u32(rest_16 == 0u), 0u, (along_15 + u32(rest_16 == 0u)) == 11u);
        let slice_16 = slice_15 + select(0u, 3u, (rest_16 == 0u) && (along_16 == 0u));
        let group_16 = (slice_16 + along_16 / 5u) * 37u + rest_16;
        let rest_17 = select(rest_16 + 1u, 0u, (rest_16 + 1u) == 37u);
        let along_17 = select(along_16 + u32(rest_17 == 0u), 0u, (along_16 + u32(rest_17 == 0u)) == 11u);
        let slice_17 = slice_16 + select(0u, 3u, (rest_17 == 0u) && (along_17 == 0u));
        let scales = e8m0_to_f32_4(vec4u((x_scale[group / 4u] >> (8u * (group % 4u))) & 255u, (x_scale[group_2 / 4u] >> (8u * (group_2 % 4u))) & 255u, (x_scale[group_3 / 4u] >> (8u * (group_3 % 4u))) & 255u, (x_scale[group_4 / 4u] >> (8u * (group_4 % 4u))) & 255u));
        let scales_2 = e8m0_to_f32_4(vec4u((x_scale[group_5 / 4u] >> (8u * (group_5 % 4u))) & 255u, (x_scale[group_6 / 4u] >> (8u * (group_6 % 4u))) & 255u, (x_scale[group_7 / 4u] >> (8u * (group_7 % 4u))) & 255u, (x_scale[group_8 / 4u] >> (8u * (group_8 % 4u))) & 255u));
        let scales_3 = e8m0_to_f32_4(vec4u((x_scale[group_9 / 4u] >> (8u * (group_9 % 4u))) & 255u, (x_scale[group_10 / 4u] >> (8u * (group_10 % 4u))) & 255u, (x_scale[group_11 / 4u] >> (8u * (group_11 % 4u))) & 255u, (x_scale[group_12 / 4u] >> (8u * (group_12 % 4u))) & 255u));
        let scales_4 = e8m0_to_f32_4(vec4u((x_scale[group_13 / 4u] >> (8u * (group_13 % 4u))) & 255u, (x_scale[group_14 / 4u] >> (8u * (group_14 % 4u))) & 255u, (x_scale[group_15 / 4u] >> (8u * (group_15 % 4u))) & 255u, (x_scale[group_16 / 4u] >> (8u * (group_16 % 4u))) & 255u));
        let is_plain = all(((scale_product_takes_s_4(scales) & scale_product_takes_s_4(scales_2)) & scale_product_takes_s_4(scales_3)) & scale_product_takes_s_4(scales_4));
        let x_word = x[piece];
        let x_nibbles = unpack4xU8(x_word & 0x3030303u);
        let x_nibbles_2 = unpack4xU8((x_word >> 2u) & 0x3030303u);
        let x_nibbles_3 = unpack4xU8((x_word >> 4u) & 0x3030303u);
        let x_nibbles_4 = unpack4xU8((x_word >> 6u) & 0x3030303u);
        let y_codes = dequantize_linear_quick_4_vv(vec4u(x_nibbles.x, x_nibbles_2.x, x_nibbles_3.x, x_nibbles_4.x), scales);
        let y_codes_2 = dequantize_linear_quick_4_vv(vec4u(x_nibbles.y, x_nibbles_2.y, x_nibbles_3.y, x_nibbles_4.y), scales_2);
        let y_codes_3 = dequantize_linear_quick_4_vv(vec4u(x_nibbles.z, x_nibbles_2.z, x_nibbles_3.z, x_nibbles_4.z), scales_3);
        let y_codes_4 = dequantize_linear_quick_4_vv(vec4u(x_nibbles.w, x_nibbles_2.w, x_nibbles_3.w, x_nibbles_4.w), scales_4);
        held = held && is_plain;
        y[8u * piece] = y_codes.x | (y_codes.y << 16u);
        y[8u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
        y[8u * piece + 2u] = y_codes_2.x | (y_codes_2.y << 16u);
        y[8u * piece + 3u] = y_codes_2.z | (y_codes_2.w << 16u);
        y[8u * piece + 4u] = y_codes_3.x | (y_codes_3.y << 16u);
        y[8u * piece + 5u] = y_codes_3.z | (y_codes_3.w << 16u);
        y[8u * piece + 6u] = y_codes_4.x | (y_codes_4.y << 16u);
        y[8u * piece + 7u] = y_codes_4.z | (y_codes_4.w << 16u);
        rest = rest_17;
        along = along_17;
        slice = slice_17;
    }
    let again = select(first, end, whole && held);
    for (var start = again; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i / 407u * 3u + i / 37u % 11u / 5u) * 37u + i % 37u;
            let scale = e8m0_to_f32((x_scale[group / 4u] >> (8u * (group % 4u))) & 255u);
            word |= dequantize_linear((x[i / 16u] >> (2u * (i % 16u))) & 3u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32_4(code: vec4u) -> vec4u {
    return select(select(code << vec4u(23u), vec4u(0x400000u), code == vec4u(0u)), vec4u(0x7fc00000u), code == vec4u(255u));
}

fn scale_product_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0x800000u)) & (es < vec4u(0x73000000u));
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return convert_bf16_4(scale_product_4_vv(zero_extend_uint2_4(x), scale));
}

fn zero_extend_uint2_4(code: vec4u) -> vec4i {
    return vec4i(code);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_bf16(mul_small(zero_extend_uint2(x), scale));
}

fn zero_extend_uint2(code: u32) -> i32 {
    return i32(code);
}

// An integer of 9 bits times a significand of 24 fits a word, so a subnormal factor needs no other treatment than a normal one.
fn mul_small(v: i32, s: u32) -> u32 {
    let magnitude = s & 0x7fffffffu;
    let sign = (u32(v) ^ s) & 0x80000000u;
    if ((magnitude > 0x7f800000u) || ((magnitude == 0x7f800000u) && (v == 0))) { return 0x7fc00000u; }
    if (magnitude == 0x7f800000u) { return sign | 0x7f800000u; }
    let significand = (magnitude & 0x7fffffu) | (u32(magnitude > 0x7fffffu) << 23u);
    let product = u32(abs(v)) * significand;
    if (product == 0u) { return sign; }
    let zeros = countLeadingZeros(product);
    let n = product << (zeros & 31u);
    return round_pack(sign, i32(max(magnitude >> 23u, 1u)) + 8 - i32(zeros), (n >> 6u) | u32((n & 63u) != 0u));
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}
