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
    let zero_point = w__zero_extend_uint8(x_zero_point_code);
    let x_scale_code = w_scale[group];
    let scale = x_scale_code;
    let x_code = (w_x[i / 4u] >> (8u * (i % 4u))) & 255u;
    return w__dequantize_linear(x_code, zero_point, scale);
}

fn w__dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return w__mul_small(w__zero_extend_uint8(x) - zero_point, scale);
}

// An integer of 9 bits times a significand of 24 fits a word, so a subnormal factor needs no other treatment than a normal one.
fn w__mul_small(v: i32, s: u32) -> u32 {
    let magnitude = s & 0x7fffffffu;
    let sign = (u32(v) ^ s) & 0x80000000u;
    if ((magnitude > 0x7f800000u) || ((magnitude == 0x7f800000u) && (v == 0))) { return 0x7fc00000u; }
    if (magnitude == 0x7f800000u) { return sign | 0x7f800000u; }
    let significand = (magnitude & 0x7fffffu) | (u32(magnitude > 0x7fffffu) << 23u);
    let product = u32(abs(v)) * significand;
    if (product == 0u) { return sign; }
    let zeros = countLeadingZeros(product);
    let n = product << (zeros & 31u);
    return w__round_pack(sign, i32(max(magnitude >> 23u, 1u)) + 8 - i32(zeros), (n >> 6u) | u32((n & 63u) != 0u));
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn w__round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + w__round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn w__round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

fn w__zero_extend_uint8(code: u32) -> i32 {
    return i32(code);
}
