// DequantizeLinear: y = bfloat16(float32(x - x_zero_point) * float32(x_scale))
//
//   x             int16     [7, 11, 37]  2 in a word, first in the lowest bits
//   x_scale       float16   [7, 3, 37]   one for 5 elements along axis 1
//   x_zero_point  int16     [7, 3, 37]   one for 5 elements along axis 1
//   y             bfloat16  [7, 11, 37]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 45u) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, 2849u);
    let whole = (end - first) == 64u;
    var failed = 0u;
    let row = first / 37u;
    let rest = first % 37u;
    let along = row % 11u;
    let slice = row / 11u * 3u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let ahead = vec4u(4u * p) + vec4u(0u, 1u, 2u, 3u);
        let passed = ((vec4u(rest) + ahead) * vec4u(1772u)) >> vec4u(16u);
        let turns = ((vec4u(along) + passed) * vec4u(5958u)) >> vec4u(16u);
        let along_2 = vec4u(along) + passed - turns * vec4u(11u);
        let group = (vec4u(slice) + turns * vec4u(3u) + along_2 / vec4u(5u)) * vec4u(37u) + (vec4u(rest) + ahead - passed * vec4u(37u));
        let zero_points = sign_extend_int16_4((vec4u(x_zero_point[group.x / 2u], x_zero_point[group.y / 2u], x_zero_point[group.z / 2u], x_zero_point[group.w / 2u]) >> (vec4u(16u) * (group % vec4u(2u)))) & vec4u(0xffffu));
        let scales = ieee_to_f32_float16_4((vec4u(x_scale[group.x / 2u], x_scale[group.y / 2u], x_scale[group.z / 2u], x_scale[group.w / 2u]) >> (vec4u(16u) * (group % vec4u(2u)))) & vec4u(0xffffu));
        let is_plain = all(scale_product_takes_s_4(scales));
        failed = select(0xffffffffu, failed, is_plain);
        let piece = 16u * unit + p;
        let x_word = x[2u * piece];
        let x_word_2 = x[2u * piece + 1u];
        let y_codes = dequantize_linear_quick_4_vvv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), zero_points, scales);
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let redo = select(0xffffffffu, failed, whole);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (16u * unit + p);
        let to_element = select(from_element, min(from_element + 4u, 2849u), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                let group = (i / 407u * 3u + i / 37u % 11u / 5u) * 37u + i % 37u;
                let zero_point = sign_extend_int16((x_zero_point[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
                let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
                word |= dequantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, zero_point, scale) << (16u * (i % 2u));
            }
            y[start / 2u] = word;
        }
    }
}

fn ieee_to_f32_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    return select(expand_float16_4(code) + select(vec4u(0u), vec4u(0x38000000u), magnitude == vec4u(0x7c00u)), vec4u(0x7fc00000u), magnitude > vec4u(0x7c00u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    let normal = (magnitude << vec4u(13u)) + vec4u(0x38000000u);
    let subnormal = bitcast<vec4u>(vec4f(vec4i(magnitude)) * vec4f(bitcast<f32>(0x33800000u))) & vec4u(0x7fffffffu);
    return ((code >> vec4u(15u)) << vec4u(31u)) | select(normal, subnormal, (magnitude >> vec4u(10u)) == vec4u(0u));
}

fn scale_product_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0x800000u)) & (es < vec4u(0x73000000u));
}

fn dequantize_linear_quick_4_vvv(x: vec4u, zero_point: vec4i, scale: vec4u) -> vec4u {
    return convert_bf16_4(scale_product_4_vv(sign_extend_int16_4(x) - zero_point, scale));
}

fn sign_extend_int16_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(0x8000u)) + vec4i(-32768);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
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

fn dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return convert_bf16(mul_f32(small_to_f32(sign_extend_int16(x) - zero_point), scale));
}

fn sign_extend_int16(code: u32) -> i32 {
    return i32(code ^ 0x8000u) + -32768;
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

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
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

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}
