// DequantizeLinear: y = float16(float32(x) * float32(x_scale))
//
//   x        float8e4m3fnuz  [7, 11, 37]  4 in a word, first in the lowest bits
//   x_scale  float16         []           one for all elements
//   y        float16         [7, 11, 37]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 45u) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, 2849u);
    let whole = (end - first) == 64u;
    let scale = ieee_to_f32_float16(x_scale[0u] & 0xffffu);
    let is_plain = product_takes_y(scale);
    var failed = 0u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let piece = 16u * unit + p;
        let x_word = x[piece];
        let y_codes = dequantize_linear_quick_4(unpack4xU8(x_word), scale);
        failed |= u32(!all(product_holds_4(fnuz_to_f32_float8e4m3fnuz_4(unpack4xU8(x_word)), scale))) << p;
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let redo = select(0xffffffffu, failed, whole && is_plain);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (16u * unit + p);
        let to_element = select(from_element, min(from_element + 4u, 2849u), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                word |= dequantize_linear((x[i / 4u] >> (8u * (i % 4u))) & 255u, scale) << (16u * (i % 2u));
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

fn product_takes_y(y: u32) -> bool {
    let ey = (y >> 23u) & 255u;
    return ey != 255u;
}

fn dequantize_linear_quick_4(x: vec4u, scale: u32) -> vec4u {
    return convert_to_f16_4(product_4(fnuz_to_f32_float8e4m3fnuz_4(x), scale));
}

// Zero times a finite number is zero, whatever the exponents.
fn product_4(x: vec4u, y: u32) -> vec4u {
    let ax = x & vec4u(0x7fffffffu);
    return select(bitcast<vec4u>(bitcast<vec4f>(x) * vec4f(bitcast<f32>(y))), (x ^ vec4u(y)) & vec4u(0x80000000u), ax == vec4u(0u));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

fn product_holds_4(x: vec4u, y: u32) -> vec4<bool> {
    let ey = (y >> 23u) & 255u;
    let ax = x & vec4u(0x7fffffffu);
    let ex = ax >> vec4u(23u);
    return select((((min(ex, vec4u(ey)) != vec4u(0u)) & (ex != vec4u(255u))) & ((ex + vec4u(ey)) > vec4u(128u))) & ((ex + vec4u(ey)) < vec4u(0x17cu)), vec4<bool>(true), ax == vec4u(0u));
}

fn fnuz_to_f32_float8e4m3fnuz_4(code: vec4u) -> vec4u {
    return select(expand_float8e4m3fnuz_4(code), vec4u(0x7fc00000u), code == vec4u(128u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float8e4m3fnuz_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(127u);
    let normal = (magnitude << vec4u(20u)) + vec4u(0x3b800000u);
    let subnormal = bitcast<vec4u>(vec4f(vec4i(magnitude)) * vec4f(bitcast<f32>(0x3a800000u))) & vec4u(0x7fffffffu);
    return ((code >> vec4u(7u)) << vec4u(31u)) | select(normal, subnormal, (magnitude >> vec4u(3u)) == vec4u(0u));
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(fnuz_to_f32_float8e4m3fnuz(x), scale));
}

fn fnuz_to_f32_float8e4m3fnuz(code: u32) -> u32 {
    if (code == 128u) { return 0x7fc00000u; }
    return expand_float8e4m3fnuz(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float8e4m3fnuz(code: u32) -> u32 {
    let magnitude = code & 127u;
    let normal = (magnitude << 20u) + 0x3b800000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x3a800000u)) & 0x7fffffffu;
    return ((code >> 7u) << 31u) | select(normal, subnormal, (magnitude >> 3u) == 0u);
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
