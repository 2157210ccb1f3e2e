// DequantizeLinear: y = float32(x) * x_scale
//
//   x        int8     4 in a word, first in the lowest bits
//   x_scale  float32  one for each index along axis 1
//   y        float32  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 32 elements.

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
    let first = 32u * unit;
    let end = min(first + 32u, params.n);
    let whole = (end - first) == 32u;
    let walks = ((((params.inner == 1u) && ((params.axis % 4u) == 0u)) && ((params.n % params.axis) == 0u)) && ((params.n / params.axis % 8u) == 0u)) && ((params.axis_start % 4u) == 0u);
    let alike = walks || (((params.inner % 32u) == 0u) && ((params.axis_start % 32u) == 0u));
    let columns = select(1u, params.axis / 4u, walks);
    let base = unit / columns * (8u * columns) + unit % columns;
    let step = u32(walks);
    let group = (4u * base + params.axis_start) / params.inner % params.axis;
    let x_scale_word = x_scale[group];
    let x_scale_word_2 = x_scale[group + step];
    let x_scale_word_3 = x_scale[group + 2u * step];
    let x_scale_word_4 = x_scale[group + 3u * step];
    let scales = vec4u(x_scale_word, x_scale_word_2, x_scale_word_3, x_scale_word_4);
    let is_plain_2 = all(scale_product_takes_s_4(scales));
    for (var p = 0u; p < select(0u, 8u, whole && alike); p++) {
        let piece = base + columns * p;
        let x_word = x[piece];
        let y_codes = dequantize_linear_quick_4_vv(unpack4xU8(x_word), scales);
        y[4u * piece] = y_codes.x;
        y[4u * piece + 1u] = y_codes.y;
        y[4u * piece + 2u] = y_codes.z;
        y[4u * piece + 3u] = y_codes.w;
    }
    var rest = (32u * unit + params.axis_start) % params.inner;
    var along = (32u * unit + params.axis_start) / params.inner % params.axis;
    var held = true;
    for (var p_2 = 0u; p_2 < select(0u, 8u, whole && !alike); p_2++) {
        let piece_2 = 8u * unit + p_2;
        let rest_2 = select(rest + 1u, 0u, (rest + 1u) == params.inner);
        let along_2 = select(along + u32(rest_2 == 0u), 0u, (along + u32(rest_2 == 0u)) == params.axis);
        let rest_3 = select(rest_2 + 1u, 0u, (rest_2 + 1u) == params.inner);
        let along_3 = select(along_2 + u32(rest_3 == 0u), 0u, (along_2 + u32(rest_3 == 0u)) == params.axis);
        let rest_4 = select(rest_3 + 1u, 0u, (rest_3 + 1u) == params.inner);
        let along_4 = select(along_3 + u32(rest_4 == 0u), 0u, (along_3 + u32(rest_4 == 0u)) == params.axis);
        let rest_5 = select(rest_4 + 1u, 0u, (rest_4 + 1u) == params.inner);
        let along_5 = select(along_4 + u32(rest_5 == 0u), 0u, (along_4 + u32(rest_5 == 0u)) == params.axis);
        let scales_2 = vec4u(x_scale[along], x_scale[along_2], x_scale[along_3], x_scale[along_4]);
        let is_plain = all(scale_product_takes_s_4(scales_2));
        let x_word_2 = x[piece_2];
        let y_codes_2 = dequantize_linear_quick_4_vv(unpack4xU8(x_word_2), scales_2);
        held = held && is_plain;
        y[4u * piece_2] = y_codes_2.x;
        y[4u * piece_2 + 1u] = y_codes_2.y;
        y[4u * piece_2 + 2u] = y_codes_2.z;
        y[4u * piece_2 + 3u] = y_codes_2.w;
        rest = rest_5;
        along = along_5;
    }
    let again = select(0u, 8u, (whole && (!alike || is_plain_2)) && held);
    for (var p = again; p < 8u; p++) {
        let from_element = 4u * (base + columns * p);
        let to_element = min(from_element + 4u, params.n);
        for (var i = from_element; i < to_element; i++) {
            let group_2 = (i + params.axis_start) / params.inner % params.axis;
            let scale = x_scale[group_2];
            y[i] = dequantize_linear((x[i / 4u] >> (8u * (i % 4u))) & 255u, scale);
        }
    }
}

fn scale_product_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0x800000u)) & (es < vec4u(0x73000000u));
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return scale_product_4_vv(sign_extend_int8_4(x), scale);
}

fn sign_extend_int8_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(128u)) + vec4i(-128);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return mul_small(sign_extend_int8(x), scale);
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
