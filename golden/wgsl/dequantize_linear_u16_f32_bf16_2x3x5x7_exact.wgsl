// DequantizeLinear: y = bfloat16(float32(x) * x_scale)
//
//   x        uint16    [2, 3, 5, 7]  2 in a word, first in the lowest bits
//   x_scale  float32   []            one for all elements
//   y        bfloat16  [2, 3, 5, 7]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 4u) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, 210u);
    let whole = (end - first) == 64u;
    let scale = x_scale[0u];
    let is_plain = scale_product_takes_s(scale);
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let piece = 16u * unit + p;
        let x_word = x[2u * piece];
        let x_word_2 = x[2u * piece + 1u];
        let y_codes = dequantize_linear_quick_4(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scale);
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let again = select(first, end, whole && is_plain);
    for (var start = again; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            word |= dequantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

fn scale_product_takes_s(s: u32) -> bool {
    let es = s & 0x7f800000u;
    return (es > 0x800000u) && (es < 0x73000000u);
}

fn dequantize_linear_quick_4(x: vec4u, scale: u32) -> vec4u {
    return convert_bf16_4(scale_product_4(zero_extend_uint16_4(x), scale));
}

fn zero_extend_uint16_4(code: vec4u) -> vec4i {
    return vec4i(code);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4(v: vec4i, s: u32) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * vec4f(bitcast<f32>(s))), vec4u(s & 0x80000000u), v == vec4i(0));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_bf16(mul_f32(small_to_f32(zero_extend_uint16(x)), scale));
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
