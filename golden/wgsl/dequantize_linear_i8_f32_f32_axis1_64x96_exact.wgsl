// DequantizeLinear: y = float32(x) * x_scale
//
//   x        int8     [64, 96]  4 in a word, first in the lowest bits
//   x_scale  float32  [96]      one for each index along axis 1
//   y        float32  [64, 96]  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4u>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 96u) { return; }
    let base = unit / 24u * 384u + unit % 24u;
    let along = 4u * base % 96u;
    let turns = ((vec4u(along) + vec4u(0u, 1u, 2u, 3u)) * vec4u(683u)) >> vec4u(16u);
    let group = vec4u(along) + vec4u(0u, 1u, 2u, 3u) - turns * vec4u(96u);
    let scales = vec4u(x_scale[group.x], x_scale[group.y], x_scale[group.z], x_scale[group.w]);
    let is_plain = all(scale_product_takes_s_4(scales));
    for (var p = 0u; p < 16u; p++) {
        let piece = base + 24u * p;
        let x_word = x[piece];
        let y_codes = dequantize_linear_quick_4_vv(unpack4xU8(x_word), scales);
        y[piece] = y_codes;
    }
    let again = select(0u, 16u, is_plain);
    for (var p = again; p < 16u; p++) {
        let from_element = 4u * (base + 24u * p);
        let to_element = from_element + 4u;
        for (var i = from_element; i < to_element; i++) {
            let group_2 = i % 96u;
            let scale = x_scale[group_2];
            y[i / 4u][i % 4u] = dequantize_linear((x[i / 4u] >> (8u * (i % 4u))) & 255u, scale);
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

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
