// DequantizeLinear: y = bfloat16(float32(x) * float32(x_scale))
//
//   x        uint2     16 in a word, first in the lowest bits
//   x_scale  bfloat16  one for each index along axis 1
//   y        bfloat16  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 128 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
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
    let first = 128u * unit;
    let end = min(first + 128u, params.n);
    let whole = (end - first) == 128u;
    var rest = (128u * unit + params.axis_start) % params.inner;
    var along = (128u * unit + params.axis_start) / params.inner % params.axis;
    var held = true;
    for (var p = 0u; p < select(0u, 8u, whole); p++) {
        let piece = 8u * unit + p;
        let rest_2 = select(rest + 1u, 0u, (rest + 1u) == params.inner);
        let along_2 = select(along + u32(rest_2 == 0u), 0u, (along + u32(rest_2 == 0u)) == params.axis);
        let rest_3 = select(rest_2 + 1u, 0u, (rest_2 + 1u) == params.inner);
        let along_3 = select(along_2 + u32(rest_3 == 0u), 0u, (along_2 + u32(rest_3 == 0u)) == params.axis);
        let rest_4 = select(rest_3 + 1u, 0u, (rest_3 + 1u) == params.inner);
        let along_4 = select(along_3 + u32(rest_4 == 0u), 0u, (along_3 + u32(rest_4 == 0u)) == params.axis);
        let rest_5 = select(rest_4 + 1u, 0u, (rest_4 + 1u) == params.inner);
        let along_5 = select(along_4 + u32(rest_5 == 0u), 0u, (along_4 + u32(rest_5 == 0u)) == params.axis);
        let rest_6 = select(rest_5 + 1u, 0u, (rest_5 + 1u) == params.inner);
        let along_6 = select(along_5 + u32(rest_6 == 0u), 0u, (along_5 + u32(rest_6 == 0u)) == params.axis);
        let rest_7 = select(rest_6 + 1u, 0u, (rest_6 + 1u) == params.inner);
        let along_7 = select(along_6 + u32(rest_7 == 0u), 0u, (along_6 + u32(rest_7 == 0u)) == params.axis);
        let rest_8 = select(rest_7 + 1u, 0u, (rest_7 + 1u) == params.inner);
        let along_8 = select(along_7 + u32(rest_8 == 0u), 0u, (along_7 + u32(rest_8 == 0u)) == params.axis);
        let rest_9 = select(rest_8 + 1u, 0u, (rest_8 + 1u) == params.inner);
        let along_9 = select(along_8 + u32(rest_9 == 0u), 0u, (along_8 + u32(rest_9 == 0u)) == params.axis);
        let rest_10 = select(rest_9 + 1u, 0u, (rest_9 + 1u) == params.inner);
        let along_10 = select(along_9 + u32(rest_10 == 0u), 0u, (along_9 + u32(rest_10 == 0u)) == params.axis);
        let rest_11 = select(rest_10 + 1u, 0u, (rest_10 + 1u) == params.inner);
        let along_11 = select(along_10 + u32(rest_11 == 0u), 0u, (along_10 + u32(rest_11 == 0u)) == params.axis);
        let rest_12 = select(rest_11 + 1u, 0u, (rest_11 + 1u) == params.inner);
        let along_12 = select(along_11 + u32(rest_12 == 0u), 0u, (along_11 + u32(rest_12 == 0u)) == params.axis);
        let rest_13 = select(rest_12 + 1u, 0u, (rest_12 + 1u) == params.inner);
        let along_13 = select(along_12 + u32(rest_13 == 0u), 0u, (along_12 + u32(rest_13 == 0u)) == params.axis);
        let rest_14 = select(rest_13 + 1u, 0u, (rest_13 + 1u) == params.inner);
        let along_14 = select(along_13 + u32(rest_14 == 0u), 0u, (along_13 + u32(rest_14 == 0u)) == params.axis);
        let rest_15 = select(rest_14 + 1u, 0u, (rest_14 + 1u) == params.inner);
        let along_15 = select(along_14 + u32(rest_15 == 0u), 0u, (along_14 + u32(rest_15 == 0u)) == params.axis);
        let rest_16 = select(rest_15 + 1u, 0u, (rest_15 + 1u) == params.inner);
        let along_16 = select(along_15 + u32(rest_16 == 0u), 0u, (along_15 + u32(rest_16 == 0u)) == params.axis);
        let rest_17 = select(rest_16 + 1u, 0u, (rest_16 + 1u) == params.inner);
        let along_17 = select(along_16 + u32(rest_17 == 0u), 0u, (along_16 + u32(rest_17 == 0u)) == params.axis);
        let scales = bf16_to_f32_4(vec4u((x_scale[along / 2u] >> (16u * (along % 2u))) & 0xffffu, (x_scale[along_2 / 2u] >> (16u * (along_2 % 2u))) & 0xffffu, (x_scale[along_3 / 2u] >> (16u * (along_3 % 2u))) & 0xffffu, (x_scale[along_4 / 2u] >> (16u * (along_4 % 2u))) & 0xffffu));
        let scales_2 = bf16_to_f32_4(vec4u((x_scale[along_5 / 2u] >> (16u * (along_5 % 2u))) & 0xffffu, (x_scale[along_6 / 2u] >> (16u * (along_6 % 2u))) & 0xffffu, (x_scale[along_7 / 2u] >> (16u * (along_7 % 2u))) & 0xffffu, (x_scale[along_8 / 2u] >> (16u * (along_8 % 2u))) & 0xffffu));
        let scales_3 = bf16_to_f32_4(vec4u((x_scale[along_9 / 2u] >> (16u * (along_9 % 2u))) & 0xffffu, (x_scale[along_10 / 2u] >> (16u * (along_10 % 2u))) & 0xffffu, (x_scale[along_11 / 2u] >> (16u * (along_11 % 2u))) & 0xffffu, (x_scale[along_12 / 2u] >> (16u * (along_12 % 2u))) & 0xffffu));
        let scales_4 = bf16_to_f32_4(vec4u((x_scale[along_13 / 2u] >> (16u * (along_13 % 2u))) & 0xffffu, (x_scale[along_14 / 2u] >> (16u * (along_14 % 2u))) & 0xffffu, (x_scale[along_15 / 2u] >> (16u * (along_15 % 2u))) & 0xffffu, (x_scale[along_16 / 2u] >> (16u * (along_16 % 2u))) & 0xffffu));
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
    }
    let again = select(first, end, whole && held);
    for (var start = again; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i + params.axis_start) / params.inner % params.axis;
            let scale = bf16_to_f32((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
            word |= dequantize_linear((x[i / 16u] >> (2u * (i % 16u))) & 3u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

fn bf16_to_f32_4(x: vec4u) -> vec4u {
    let bits = x << vec4u(16u);
    return select(bits, vec4u(0x7fc00000u), (bits & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
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

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
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
