// DequantizeLinear: y = float16(float32(x - x_zero_point) * float32(x_scale))
//
//   w_x           int4     [40, 100]  8 in a word, first in the lowest bits
//   w_scale       float16  [40, 4]    one for 32 elements along axis 1
//   w_zero_point  int4     [40, 4]    one for 32 elements along axis 1
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
//   w_bits(i: u32) -> u32      the bits of element i, a float16
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// That is said of w_bits. The others have the same values as f32, of which WGSL lets an implementation flush
// subnormals to zero, choose the sign of zero, and take NaN and infinity for any value.

fn w_load4(i4: u32) -> vec4f {
    let x_word = w_x[i4 / 2u] >> (16u * (i4 % 2u));
    let x_codes = (vec4u(x_word) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u);
    let group = 4u * i4 / 100u * 4u + 4u * i4 % 100u / 32u;
    let zero_point = w__sign_extend_int4((w_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u);
    let scale = w__ieee_to_f32_float16((w_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
    let is_plain = w__scale_product_takes_s(scale);
    if (is_plain) { return bitcast<vec4f>(w__ieee_to_f32_float16_4(w__dequantize_linear_quick_4(x_codes, zero_point, scale))); }
    return vec4f(w_at(4u * i4), w_at(4u * i4 + 1u), w_at(4u * i4 + 2u), w_at(4u * i4 + 3u));
}

fn w__dequantize_linear_quick_4(x: vec4u, zero_point: i32, scale: u32) -> vec4u {
    return w__convert_to_f16_4(w__scale_product_4(w__sign_extend_int4_4(x) - vec4i(zero_point), scale));
}

fn w__sign_extend_int4_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(8u)) + vec4i(-8);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn w__scale_product_4(v: vec4i, s: u32) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * vec4f(bitcast<f32>(s))), vec4u(s & 0x80000000u), v == vec4i(0));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn w__convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

fn w__ieee_to_f32_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    return select(w__expand_float16_4(code) + select(vec4u(0u), vec4u(0x38000000u), magnitude == vec4u(0x7c00u)), vec4u(0x7fc00000u), magnitude > vec4u(0x7c00u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn w__expand_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    let normal = (magnitude << vec4u(13u)) + vec4u(0x38000000u);
    let subnormal = bitcast<vec4u>(vec4f(vec4i(magnitude)) * vec4f(bitcast<f32>(0x33800000u))) & vec4u(0x7fffffffu);
    return ((code >> vec4u(15u)) << vec4u(31u)) | select(normal, subnormal, (magnitude >> vec4u(10u)) == vec4u(0u));
}

fn w_at(i: u32) -> f32 {
    return bitcast<f32>(w__ieee_to_f32_float16(w_bits(i)));
}

fn w_bits(i: u32) -> u32 {
    let group = i / 100u * 4u + i % 100u / 32u;
    let x_zero_point_code = (w_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u;
    let zero_point = w__sign_extend_int4(x_zero_point_code);
    let x_scale_code = (w_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu;
    let scale = w__ieee_to_f32_float16(x_scale_code);
    let is_plain = w__scale_product_takes_s(scale);
    let x_code = (w_x[i / 8u] >> (4u * (i % 8u))) & 15u;
    if (is_plain) { return w__dequantize_linear_quick(x_code, zero_point, scale); }
    return w__dequantize_linear(x_code, zero_point, scale);
}

fn w__dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return w__convert_ieee_float16(w__mul_small(w__sign_extend_int4(x) - zero_point, scale));
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

fn w__convert_ieee_float16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 0x7e00u; }
    return ((x >> 31u) << 15u) | min(w__round_to_float16(magnitude), 0x7c00u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn w__round_to_float16(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 113u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x38000000u, normal);
    return w__round_shift(value, select(min(126u - exponent, 26u), 13u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn w__round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

fn w__dequantize_linear_quick(x: u32, zero_point: i32, scale: u32) -> u32 {
    return w__convert_to_f16(w__scale_product(w__sign_extend_int4(x) - zero_point, scale));
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn w__scale_product(v: i32, s: u32) -> u32 {
    return select(bitcast<u32>(f32(v) * bitcast<f32>(s)), s & 0x80000000u, v == 0);
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn w__convert_to_f16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    let normal = min((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u, 0x7c00u);
    let subnormal = bitcast<u32>(bitcast<f32>(select(magnitude, 0u, magnitude < 0x800000u)) + 0.5f) - 0x3f000000u;
    let code = select(normal, subnormal, magnitude < 0x38800000u);
    return select(((x >> 16u) & 0x8000u) | code, 0x7e00u, magnitude > 0x7f800000u);
}

fn w__scale_product_takes_s(s: u32) -> bool {
    let es = s & 0x7f800000u;
    return (es > 0x800000u) && (es < 0x73000000u);
}

fn w__ieee_to_f32_float16(code: u32) -> u32 {
    let magnitude = code & 0x7fffu;
    if (magnitude > 0x7c00u) { return 0x7fc00000u; }
    return w__expand_float16(code) + select(0u, 0x38000000u, magnitude == 0x7c00u);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn w__expand_float16(code: u32) -> u32 {
    let magnitude = code & 0x7fffu;
    let normal = (magnitude << 13u) + 0x38000000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x33800000u)) & 0x7fffffffu;
    return ((code >> 15u) << 31u) | select(normal, subnormal, (magnitude >> 10u) == 0u);
}

fn w__sign_extend_int4(code: u32) -> i32 {
    return i32(code ^ 8u) + -8;
}
