// DequantizeLinear: y = float32(x) * x_scale
//
//   x        int8     [64, 96]  4 in a word, first in the lowest bits
//   x_scale  float32  [96]      one for each index along axis 1
//   y        float32  [64, 96]  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 24 workgroups of 64; an invocation computes 4 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 1536u) { return; }
    let first = 4u * unit;
    let end = first + 4u;
    let x_word = x[unit];
    var held = true;
    for (var i = first; i < end; i++) {
        let group = i % 96u;
        let scale = x_scale[group];
        let is_plain = scale_product_takes_s(scale);
        held = held && is_plain;
        y[i] = dequantize_linear_quick((x_word >> (8u * (i % 4u))) & 255u, scale);
    }
    let again = select(first, end, held);
    for (var i = again; i < end; i++) {
        let group = i % 96u;
        let scale = x_scale[group];
        y[i] = dequantize_linear((x_word >> (8u * (i % 4u))) & 255u, scale);
    }
}

fn dequantize_linear_quick(x: u32, scale: u32) -> u32 {
    return scale_product(sign_extend_int8(x), scale);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return mul_f32(small_to_f32(sign_extend_int8(x)), scale);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product(v: i32, s: u32) -> u32 {
    return select(bitcast<u32>(f32(v) * bitcast<f32>(s)), s & 0x80000000u, v == 0);
}

fn scale_product_takes_s(s: u32) -> bool {
    let es = s & 0x7f800000u;
    return (es > 0x800000u) && (es < 0x73000000u);
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

// value / 2^shift, half to even; shift in 1..31.
fn round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
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

// An integer of at most 24 bits converts exactly on every implementation, but the zero may have any sign.
fn small_to_f32(v: i32) -> u32 {
    return select(bitcast<u32>(f32(v)), 0u, v == 0);
}

fn sign_extend_int8(code: u32) -> i32 {
    return i32(code << 24u) >> 24u;
}
