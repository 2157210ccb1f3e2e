// DequantizeLinear: y = bfloat16(float32(x - x_zero_point) * float32(x_scale))
//
//   x             int8        4 in a word, first in the lowest bits
//   x_scale       float8e8m0  one for 32 elements along axis -1
//   x_zero_point  int8        one for 32 elements along axis -1
//   y             bfloat16    2 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 4 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
    axis: u32,
    inner: u32,
    blocks: u32,
    axis_start: u32,
}

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 4u * unit;
    let end = min(first + 4u, params.n);
    let x_word = x[unit];
    for (var start = first; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i + params.axis_start) / params.axis * params.blocks + (i + params.axis_start) % params.axis / 32u;
            let zero_point = sign_extend_int8((x_zero_point[group / 4u] >> (8u * (group % 4u))) & 255u);
            let scale = e8m0_to_f32((x_scale[group / 4u] >> (8u * (group % 4u))) & 255u);
            word |= dequantize_linear((x_word >> (8u * (i % 4u))) & 255u, zero_point, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return convert_bf16(mul_small(sign_extend_int8(x) - zero_point, scale));
}

fn sign_extend_int8(code: u32) -> i32 {
    return i32(code ^ 128u) + -128;
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

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}
