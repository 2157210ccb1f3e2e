// QuantizeLinear: y = saturate_float4e2m1(float32(float16(x) / float16(y_scale)) + float32(y_zero_point))
//
//   x             bfloat16    [64, 40]  2 in a word, first in the lowest bits
//   y_scale       float32     []        one for all elements
//   y_zero_point  float4e2m1  []        one for all elements
//   y             float4e2m1  [64, 40]  8 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: 3 workgroups of 128; an invocation computes 8 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read> y_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 320u) { return; }
    let first = 8u * unit;
    let end = first + 8u;
    let scale = convert_ieee_float16(y_scale[0u]);
    let zero_point = finite_to_f32_float4e2m1(y_zero_point[0u] & 15u);
    var word = 0u;
    for (var i = first; i < end; i++) {
        word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale, zero_point) << (4u * (i % 8u));
    }
    y[unit] = word;
}

fn finite_to_f32_float4e2m1(code: u32) -> u32 {
    return expand_float4e2m1(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float4e2m1(code: u32) -> u32 {
    let magnitude = code & 7u;
    let normal = (magnitude << 22u) + 0x3f000000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x3f000000u)) & 0x7fffffffu;
    return ((code >> 3u) << 31u) | select(normal, subnormal, (magnitude >> 1u) == 0u);
}

fn quantize_linear(x: u32, scale: u32, zero_point: u32) -> u32 {
    return saturate_float_float4e2m1(add_f32(ieee_to_f32_float16(div_f16(convert_ieee_float16(bf16_to_f32(x)), scale)), zero_point));
}

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
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

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x / y: one u32 division of the significands, whose remainder is the sticky bit.
fn div_f16(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffu;
    let ay = y & 0x7fffu;
    let sign = (x ^ y) & 0x8000u;
    if ((max(ax, ay) > 0x7c00u) || ((ax == ay) && ((ax == 0u) || (ax == 0x7c00u)))) { return 0x7e00u; }
    if ((ax == 0x7c00u) || (ay == 0u)) { return sign | 0x7c00u; }
    if ((ax == 0u) || (ay == 0x7c00u)) { return sign; }
    let a = parts_of_f16(ax);
    let b = parts_of_f16(ay);
    let da = a.significand >> 13u;
    let db = b.significand >> 13u;
    let less = u32(da < db);
    let dividend = da << (12u + less);
    let quotient = dividend / db;
    let significand = (quotient << 1u) | u32(dividend != (quotient * db));
    let exponent = a.exponent - b.exponent + 15 - i32(less);
    let shift = u32(3 + clamp(1 - exponent, 0, 12));
    let bits = (u32(clamp(exponent, 1, 31) - 1) << 10u) + round_shift(significand, shift);
    return sign | min(bits, 0x7c00u);
}

// As `parts`; the exponent stays biased as float16's.
fn parts_of_f16(magnitude: u32) -> Parts {
    let zeros = countLeadingZeros(magnitude & 0x3ffu) - 21u;
    let exponent = magnitude >> 10u;
    if (exponent == 0u) { return Parts(0u, 1 - i32(zeros), (magnitude << (zeros & 31u)) << 13u); }
    return Parts(0u, i32(exponent), ((magnitude & 0x3ffu) | 0x400u) << 13u);
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

// x + y: three guard bits below the significand of the greater operand, the last of them sticky.
fn add_f32(x: u32, y: u32) -> u32 {
    let swap = (y & 0x7fffffffu) > (x & 0x7fffffffu);
    let a = select(x, y, swap);
    let b = select(y, x, swap);
    let aa = a & 0x7fffffffu;
    let ab = b & 0x7fffffffu;
    let opposite = ((a ^ b) >> 31u) != 0u;
    if ((aa > 0x7f800000u) || ((ab == 0x7f800000u) && opposite)) { return 0x7fc00000u; }
    if (aa == 0x7f800000u) { return a; }
    let ea = max(i32(aa >> 23u), 1);
    let eb = max(i32(ab >> 23u), 1);
    let ma = ((aa & 0x7fffffu) | (u32(aa >= 0x800000u) << 23u)) << 3u;
    let mb = ((ab & 0x7fffffu) | (u32(ab >= 0x800000u) << 23u)) << 3u;
    let shift = u32(min(ea - eb, 27));
    let aligned = (mb >> shift) | u32((mb & ((1u << shift) - 1u)) != 0u);
    let sum = select(ma + aligned, ma - aligned, opposite);
    if (sum == 0u) { return select(a & 0x80000000u, 0u, opposite); }
    let zeros = countLeadingZeros(sum);
    let down = max(6u, zeros) - zeros;
    let up = max(6u, zeros) - 6u;
    let significand = ((sum >> down) | u32((sum & ((1u << down) - 1u)) != 0u)) << up;
    return round_pack(a & 0x80000000u, ea + 5 - i32(zeros), significand);
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
}

// A format without NaN has its greatest number in place of it.
fn saturate_float_float4e2m1(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 7u; }
    return ((x >> 31u) << 3u) | min(round_to_float4e2m1(magnitude), 7u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float4e2m1(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 127u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x3f000000u, normal);
    return round_shift(value, select(min(149u - exponent, 26u), 22u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
