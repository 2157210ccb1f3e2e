// DequantizeLinear: y = float32(x - x_zero_point) * x_scale
//
//   w_x           uint8    [41, 256]  4 in a word, first in the lowest bits
//   w_scale       float32  [41]       one for each index along axis 0
//   w_zero_point  uint8    [41]       one for each index along axis 0
//
// Declare these, in a group and with numbers of your own:
//
//   @group(0) @binding(0) var<storage, read> w_x: array<u32>;
//   @group(0) @binding(1) var<storage, read> w_scale: array<u32>;
//   @group(0) @binding(2) var<storage, read> w_zero_point: array<u32>;
//
// and call these; what lies beyond the last element has no meaning:
//
//   w_load4(i4: u32) -> vec4f  elements 4 * i4 to 4 * i4 + 3
//   w_at(i: u32) -> f32        element i
//   w_bits(i: u32) -> u32      the bits of element i, a float32
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// That is said of w_bits. The others have the same values as f32, of which WGSL lets an implementation flush
// subnormals to zero, choose the sign of zero, and take NaN and infinity for any value.

fn w_load4(i4: u32) -> vec4f {
    return vec4f(w_at(4u * i4), w_at(4u * i4 + 1u), w_at(4u * i4 + 2u), w_at(4u * i4 + 3u));
}

fn w_at(i: u32) -> f32 {
    return bitcast<f32>(w_bits(i));
}

fn w_bits(i: u32) -> u32 {
    let group = i / 256u;
    let x_zero_point_code = (w_zero_point[group / 4u] >> (8u * (group % 4u))) & 255u;
    let zero_point = w_zero_extend_uint8(x_zero_point_code);
    let x_scale_code = w_scale[group];
    let scale = x_scale_code;
    let x_code = (w_x[i / 4u] >> (8u * (i % 4u))) & 255u;
    return w_dequantize_linear(x_code, zero_point, scale);
}

fn w_dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return w_mul_f32(w_small_to_f32(w_zero_extend_uint8(x) - zero_point), scale);
}

// An integer of at most 24 bits converts exactly on every implementation, but the zero may have any sign.
fn w_small_to_f32(v: i32) -> u32 {
    return select(bitcast<u32>(f32(v)), 0u, v == 0);
}

struct w_Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x * y: the 48-bit product of the significands from 12-bit halves.
fn w_mul_f32(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffffffu;
    let ay = y & 0x7fffffffu;
    let sign = (x ^ y) & 0x80000000u;
    let zero = min(ax, ay) == 0u;
    let infinite = max(ax, ay) == 0x7f800000u;
    if ((max(ax, ay) > 0x7f800000u) || (zero && infinite)) { return 0x7fc00000u; }
    if (infinite) { return sign | 0x7f800000u; }
    if (zero) { return sign; }
    let a = w_parts(x);
    let b = w_parts(y);
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
    return w_round_pack(sign, a.exponent + b.exponent - 127 + i32(top), significand);
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn w_round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + w_round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
}

// value / 2^shift, half to even; shift in 1..31.
fn w_round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
}

// Sign, biased exponent (below 1 for subnormals) and the significand with its leading one at bit 23; x is finite and not zero.
fn w_parts(x: u32) -> w_Parts {
    let exponent = i32((x >> 23u) & 255u);
    let mantissa = x & 0x7fffffu;
    if (exponent == 0) {
        let shift = countLeadingZeros(mantissa) - 8u;
        return w_Parts(x & 0x80000000u, 1 - i32(shift), mantissa << (shift & 31u));
    }
    return w_Parts(x & 0x80000000u, exponent, mantissa | 0x800000u);
}

fn w_zero_extend_uint8(code: u32) -> i32 {
    return i32(code);
}
