// DequantizeLinear: y = float16(float32(x - x_zero_point) * float32(x_scale))
//
//   x             uint4    [64, 96]  8 in a word, first in the lowest bits
//   x_scale       float16  [64, 3]   one for 32 elements along axis 1
//   x_zero_point  uint4    [64, 3]   one for 32 elements along axis 1
//   y             float16  [64, 96]  2 in a word, first in the lowest bits
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
    let first = 64u * unit;
    let end = first + 64u;
    var failed = 0u;
    for (var from_piece = 0u; from_piece < 8u; from_piece += 4u) {
        let group = 8u * (8u * unit + from_piece) / 32u;
        let zero_point = zero_extend_uint4((x_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u);
        let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
        let is_plain = scale_product_takes_s(scale);
        failed = select(0xffffffffu, failed, is_plain);
        for (var p = from_piece; p < (from_piece + 4u); p++) {
            let piece = 8u * unit + p;
            let x_word = x[piece];
            let x_nibbles = unpack4xU8(x_word & 0xf0f0f0fu);
            let x_nibbles_2 = unpack4xU8((x_word >> 4u) & 0xf0f0f0fu);
            let y_codes = dequantize_linear_quick_4(vec4u(x_nibbles.x, x_nibbles_2.x, x_nibbles.y, x_nibbles_2.y), zero_point, scale);
            let y_codes_2 = dequantize_linear_quick_4(vec4u(x_nibbles.z, x_nibbles_2.z, x_nibbles.w, x_nibbles_2.w), zero_point, scale);
            y[piece] = vec4u(y_codes.x | (y_codes.y << 16u), y_codes.z | (y_codes.w << 16u), y_codes_2.x | (y_codes_2.y << 16u), y_codes_2.z | (y_codes_2.w << 16u));
        }
    }
    for (var p = 0u; p < select(8u, 0u, failed == 0u); p++) {
        let from_element = 8u * (8u * unit + p);
        let to_element = select(from_element, from_element + 8u, ((failed >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                let group = i / 32u;
                let zero_point = zero_extend_uint4((x_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u);
                let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
                word |= dequantize_linear((x[i / 8u] >> (4u * (i % 8u))) & 15u, zero_point, scale) << (16u * (i % 2u));
            }
            y[start / 8u][start / 2u % 4u] = word;
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

fn dequantize_linear_quick_4(x: vec4u, zero_point: i32, scale: u32) -> vec4u {
    return convert_to_f16_4(scale_product_4(zero_extend_uint4_4(x) - vec4i(zero_point), scale));
}

fn zero_extend_uint4_4(code: vec4u) -> vec4i {
    return vec4i(code);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4(v: vec4i, s: u32) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * vec4f(bitcast<f32>(s))), vec4u(s & 0x80000000u), v == vec4i(0));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

fn dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_small(zero_extend_uint4(x) - zero_point, scale));
}

fn zero_extend_uint4(code: u32) -> i32 {
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

fn convert_ieee_float16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 0x7e00u; }
    return ((x >> 31u) << 15u) | min(round_to_float16(magnitude), 0x7c00u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float16(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 113u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x38000000u, normal);
    return round_shift(value, select(min(126u - exponent, 26u), 13u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
