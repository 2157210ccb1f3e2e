// DequantizeLinear: y = float32(x) * float32(x_scale)
//
//   x        int2     [2, 10, 128]  16 in a word, first in the lowest bits
//   x_scale  float16  [10]          one for each index along axis 1
//   y        float32  [2, 10, 128]  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4u>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 40u) { return; }
    let base = unit / 2u * 32u + unit % 2u;
    let group = 4u * base / 128u % 10u;
    let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
    let is_plain = scale_product_takes_s(scale);
    for (var p = 0u; p < 16u; p++) {
        let piece = base + 2u * p;
        let y_codes = dequantize_linear_quick_4((vec4u(x[piece / 4u]) >> (vec4u(8u * (piece % 4u)) + vec4u(0u, 2u, 4u, 6u))) & vec4u(3u), scale);
        y[piece] = y_codes;
    }
    let again = select(0u, 16u, is_plain);
    for (var p = again; p < 16u; p++) {
        let from_element = 4u * (base + 2u * p);
        let to_element = from_element + 4u;
        for (var i = from_element; i < to_element; i++) {
            y[i / 4u][i % 4u] = dequantize_linear((x[i / 16u] >> (2u * (i % 16u))) & 3u, scale);
        }
    }
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

fn scale_product_takes_s(s: u32) -> bool {
    let es = s & 0x7f800000u;
    return (es > 0x800000u) && (es < 0x73000000u);
}

fn dequantize_linear_quick_4(x: vec4u, scale: u32) -> vec4u {
    return scale_product_4(sign_extend_int2_4(x), scale);
}

fn sign_extend_int2_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(2u)) + vec4i(-2);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4(v: vec4i, s: u32) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * vec4f(bitcast<f32>(s))), vec4u(s & 0x80000000u), v == vec4i(0));
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return mul_small(sign_extend_int2(x), scale);
}

fn sign_extend_int2(code: u32) -> i32 {
    return i32(code ^ 2u) + -2;
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
