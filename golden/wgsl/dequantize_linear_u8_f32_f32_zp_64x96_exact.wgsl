// DequantizeLinear: y = float32(x - x_zero_point) * x_scale
//
//   x             uint8    [64, 96]  4 in a word, first in the lowest bits
//   x_scale       float32  []        one for all elements
//   x_zero_point  uint8    []        one for all elements
//   y             float32  [64, 96]  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4u>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 96u) { return; }
    let zero_point = zero_extend_uint8(x_zero_point[0u] & 255u);
    let scale = x_scale[0u];
    let is_plain = scale_product_takes_s(scale);
    for (var p = 0u; p < 16u; p++) {
        let piece = unit + 96u * p;
        let x_word = x[piece];
        let y_codes = dequantize_linear_quick_4(unpack4xU8(x_word), zero_point, scale);
        y[piece] = y_codes;
    }
    let again = select(0u, 16u, is_plain);
    for (var p = again; p < 16u; p++) {
        let from_element = 4u * (unit + 96u * p);
        let to_element = from_element + 4u;
        for (var i = from_element; i < to_element; i++) {
            y[i / 4u][i % 4u] = dequantize_linear((x[i / 4u] >> (8u * (i % 4u))) & 255u, zero_point, scale);
        }
    }
}

fn scale_product_takes_s(s: u32) -> bool {
    let es = s & 0x7f800000u;
    return (es > 0x800000u) && (es < 0x73000000u);
}

fn dequantize_linear_quick_4(x: vec4u, zero_point: i32, scale: u32) -> vec4u {
    return scale_product_4(zero_extend_uint8_4(x) - vec4i(zero_point), scale);
}

fn zero_extend_uint8_4(code: vec4u) -> vec4i {
    return vec4i(code);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4(v: vec4i, s: u32) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * vec4f(bitcast<f32>(s))), vec4u(s & 0x80000000u), v == vec4i(0));
}

fn dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return mul_small(zero_extend_uint8(x) - zero_point, scale);
}

fn zero_extend_uint8(code: u32) -> i32 {
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

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
