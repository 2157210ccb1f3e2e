// DequantizeLinear: y = float16(float32(x) * float32(x_scale))
//
//   x        uint16   [2, 10, 128]  2 in a word, first in the lowest bits
//   x_scale  float16  [10]          one for each index along axis 1
//   y        float16  [2, 10, 128]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

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
        let x_word = x[2u * piece];
        let x_word_2 = x[2u * piece + 1u];
        let y_codes = dequantize_linear_quick_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scale);
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let again = select(0u, 16u, is_plain);
    for (var p = again; p < 16u; p++) {
        let from_element = 4u * (base + 2u * p);
        let to_element = from_element + 4u;
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                word |= dequantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (16u * (i % 2u));
            }
            y[start / 2u] = word;
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
    return convert_to_f16_4(scale_product_4(zero_extend_uint16_4(x), scale));
}

fn zero_extend_uint16_4(code: vec4u) -> vec4i {
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

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(small_to_f32(zero_extend_uint16(x)), scale));
}

fn zero_extend_uint16(code: u32) -> i32 {
    return i32(code);
}

// An integer of at most 24 bits converts exactly on every implementation, but the zero may have any sign.
fn small_to_f32(v: i32) -> u32 {
    return select(bitcast<u32>(f32(v)), 0u, v == 0);
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x * y: the 48-bit product of the significands from 12-bit halves.
fn mul_f32(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffffffu;
    let ay = y & 0x7fffffffu;
    let sign = (x ^ y) & 0x80000000u;
    let zero = min(ax, ay) == 0u;
    let infinite = max(ax, ay) == 0x7f800000u;
    if ((max(ax, ay) > 0x7f800000u) || (zero && infinite)) { return 0x7fc00000u; }
    if (infinite) { return sign | 0x7f800000u; }
    if (zero) { return sign; }
    let a = parts(x);
    let b = parts(y);
    let ah = a.significand >> 12u;
    let al = a.significand & 0xfffu;
    let bh = b.significand >> 12u;
    let bl = b.significand & 0xfffu;
    let middle = ah * bl + al * bh;
    let bottom = al * bl + ((middle & 0xfffu) << 12u);
    let high = ah * bh + (middle >> 12u) + (bottom >> 24u);
    let low = bottom & 0xffffffu;
    let top = high >> 23u;
    let shift = 23u - (1u - top);
    let significand = ((high << (3u - top)) | ((low >> shift) << 1u)) | u32((low & ((1u << shift) - 1u)) != 0u);
    return round_pack(sign, a.exponent + b.exponent - 127 + i32(top), significand);
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
