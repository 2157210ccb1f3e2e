// DequantizeLinear: y = bfloat16(float32(x) * x_scale)
//
//   x        int8      [7, 11, 37]  4 in a word, first in the lowest bits
//   x_scale  float32   [7, 3, 37]   one for 5 elements along axis 1
//   y        bfloat16  [7, 11, 37]  2 in a word, first in the lowest bits
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
    for (var p = 0u; p < select(0u, 32u, whole); p++) {
        let piece = 32u * unit + p;
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
        let scales = vec4u(x_scale[group], x_scale[group_2], x_scale[group_3], x_scale[group_4]);
        let is_plain = all(scale_product_takes_s_4(scales));
        let x_word = x[piece];
        let y_codes = dequantize_linear_quick_4_vv(unpack4xU8(x_word), scales);
        held = held && is_plain;
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
        rest = rest_5;
        along = along_5;
        slice = slice_5;
    }
    let again = select(first, end, whole && held);
    for (var start = again; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i / 407u * 3u + i / 37u % 11u / 5u) * 37u + i % 37u;
            let scale = x_scale[group];
            word |= dequantize_linear((x[i / 4u] >> (8u * (i % 4u))) & 255u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

fn scale_product_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0x800000u)) & (es < vec4u(0x73000000u));
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return convert_bf16_4(scale_product_4_vv(sign_extend_int8_4(x), scale));
}

fn sign_extend_int8_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(128u)) + vec4i(-128);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_bf16(mul_small(sign_extend_int8(x), scale));
}

fn sign_extend_int8(code: u32) -> i32 {
    return i32(code ^ 128u) + -128;
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
