// QuantizeLinear: y = saturate_uint4(round_even(bfloat16(x) / bfloat16(y_scale)) + y_zero_point)
//
//   x             float16  2 in a word, first in the lowest bits
//   y_scale       float32  one for all elements
//   y_zero_point  uint4    one for all elements
//   y             uint4    8 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read> y_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
}

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, params.n);
    let whole = (end - first) == 64u;
    let scale = convert_bf16(y_scale[0u]);
    let zero_point = zero_extend_uint4(y_zero_point[0u] & 15u);
    let is_plain = rint_quotient_bf16_takes_s(scale);
    var word = 0u;
    var failed = 0u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let piece = 16u * unit + p;
        let x_word = x[2u * piece];
        let x_word_2 = x[2u * piece + 1u];
        let y_codes = quantize_linear_quick_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scale, zero_point);
        failed |= u32(!all(rint_quotient_bf16_holds_4(convert_bf16_4(ieee_to_f32_float16_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u))), scale))) << (p / 2u);
        word = select(word, 0u, (p % 2u) == 0u) | ((((y_codes.x | (y_codes.y << 4u)) | (y_codes.z << 8u)) | (y_codes.w << 12u)) << (16u * (p % 2u)));
        y[piece / 2u] = word;
    }
    let redo = select(0xffffffffu, failed, whole && is_plain);
    for (var p = 0u; p < select(8u, 0u, redo == 0u); p++) {
        let from_element = 8u * (8u * unit + p);
        let to_element = select(from_element, min(from_element + 8u, params.n), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 8u) {
            var word_2 = 0u;
            for (var i = start; i < min(start + 8u, to_element); i++) {
                word_2 |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale, zero_point) << (4u * (i % 8u));
            }
            y[start / 8u] = word_2;
        }
    }
}

fn zero_extend_uint4(code: u32) -> i32 {
    return i32(code);
}

fn rint_quotient_bf16_takes_s(s: u32) -> bool {
    let es = s & 0x7f80u;
    return (es > 0xc00u) && (es < 0x7700u);
}

fn quantize_linear_quick_4(x: vec4u, scale: u32, zero_point: i32) -> vec4u {
    return saturate_unsigned_uint4_4(rint_quotient_bf16_4(convert_bf16_4(ieee_to_f32_float16_4(x)), scale) + vec4i(zero_point));
}

// As for float16, with 8 bits.
fn rint_quotient_bf16_4(x: vec4u, s: u32) -> vec4i {
    let q = bitcast<vec4u>(bitcast<vec4f>(x << vec4u(16u)) / vec4f(bitcast<f32>(s << 16u)));
    return vec4i(round(bitcast<vec4f>((q + vec4u(0x8000u)) & vec4u(0xffff0000u))));
}

fn saturate_unsigned_uint4_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(0), vec4i(15)));
}

fn rint_quotient_bf16_holds_4(x: vec4u, s: u32) -> vec4<bool> {
    let es = s & 0x7f80u;
    let q = bitcast<vec4u>(bitcast<vec4f>(x << vec4u(16u)) / vec4f(bitcast<f32>(s << 16u)));
    return select(((q & vec4u(0xffffu)) - vec4u(0x7ffcu)) > vec4u(8u), vec4<bool>(false), (x & vec4u(0x7fffu)) >= vec4u(es + 0x800u));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
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

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_unsigned_uint4(rint_f32(bf16_to_f32(div_bf16(convert_bf16(ieee_to_f32_float16(x)), scale))) + zero_point);
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

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x / y: as div_f16, with 8-bit significands.
fn div_bf16(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffu;
    let ay = y & 0x7fffu;
    let sign = (x ^ y) & 0x8000u;
    if ((max(ax, ay) > 0x7f80u) || ((ax == ay) && ((ax == 0u) || (ax == 0x7f80u)))) { return 0x7fc0u; }
    if ((ax == 0x7f80u) || (ay == 0u)) { return sign | 0x7f80u; }
    if ((ax == 0u) || (ay == 0x7f80u)) { return sign; }
    let a = parts(ax << 16u);
    let b = parts(ay << 16u);
    let da = a.significand >> 16u;
    let db = b.significand >> 16u;
    let less = u32(da < db);
    let dividend = da << (9u + less);
    let quotient = dividend / db;
    let significand = (quotient << 1u) | u32(dividend != (quotient * db));
    let exponent = a.exponent - b.exponent + 127 - i32(less);
    let shift = u32(3 + clamp(1 - exponent, 0, 9));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 7u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f80u);
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

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

// The nearest integer, half to even, clamped to 2^18 in magnitude; NaN is the lowest.
fn rint_f32(x: u32) -> i32 {
    let magnitude = x & 0x7fffffffu;
    let exponent = i32(magnitude >> 23u);
    let rounded = round_shift((x & 0x7fffffu) | 0x800000u, u32(clamp(150 - exponent, 1, 25)));
    let value = i32(select(rounded, 0x40000u, exponent >= 145));
    return select(value, -value, (x != magnitude) || (magnitude > 0x7f800000u));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

fn saturate_unsigned_uint4(v: i32) -> u32 {
    return u32(clamp(v, 0, 15));
}
