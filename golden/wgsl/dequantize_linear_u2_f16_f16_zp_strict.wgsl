// DequantizeLinear: y = float16(float32(x - x_zero_point) * float32(x_scale))
//
//   x             uint2    16 in a word, first in the lowest bits
//   x_scale       float16  one for all elements
//   x_zero_point  uint2    one for all elements
//   y             float16  2 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 16 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
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
    let first = 16u * unit;
    let end = min(first + 16u, params.n);
    let zero_point = zero_extend_uint2(x_zero_point[0u] & 3u);
    let scale = ieee_to_f32_float16(x_scale[0u] & 0xffffu);
    let x_word = x[unit];
    for (var start = first; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            word |= dequantize_linear((x_word >> (2u * (i % 16u))) & 3u, zero_point, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
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

fn dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_small(zero_extend_uint2(x) - zero_point, scale));
}

fn zero_extend_uint2(code: u32) -> i32 {
    return i32(code);
}

// An integer of 9 bits times a significand of 24 fits a word, so a subnormal factor needs no other treatment than a normal one.
fn mul_small(v: i32, s: u32) -> u32 {
    let magnitude = s & 0x7fffffffu;
    let sign = (u32(v) ^ s) & 0x80000000u;
    if ((magnitude > 0x7f800000u) || ((magnitude == 0x7f800000u) && (v == 0))) { return 0x7fc00000u; }
    if (magnitude == 0x7f800000u) { return sign | 0x7f800000u; }
    let significand = (magnitude & 0x7fffffu) | (u32(magnitude > 0x7fffffu) << 23u);
    let product = u32(abs(v)) * significand;
    if (product == 0u) { return sign; }
    let zeros = countLeadingZeros(product);
    let n = product << (zeros & 31u);
    return round_pack(sign, i32(max(magnitude >> 23u, 1u)) + 8 - i32(zeros), (n >> 6u) | u32((n & 63u) != 0u));
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
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
