// DequantizeLinear: y = float16(float32(x) * float32(x_scale))
//
//   x        int4     8 in a word, first in the lowest bits
//   x_scale  float16  one for 32 elements along axis -1
//   y        float16  2 in a word, first in the lowest bits
//
// Numerics: fast, native arithmetic, with the error that the sidecar states.
// Dispatch: any shape, from the uniform parameters; an invocation computes 8 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

struct Params {
    n: u32,
    units: u32,
    groups_x: u32,
    axis: u32,
    inner: u32,
    blocks: u32,
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 64u) + id.x;
    if (unit >= params.units) { return; }
    let first = 8u * unit;
    let end = min(first + 8u, params.n);
    let x_word = x[unit];
    for (var start = first; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i / params.inner / params.axis * params.blocks + i / params.inner % params.axis / 32u) * params.inner + i % params.inner;
            let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 65535u);
            word |= dequantize_linear((x_word >> (4u * (i % 8u))) & 15u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_ieee_float16(scale_product(sign_extend_int4(x), scale));
}

fn convert_ieee_float16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 0x7e00u; }
    return ((x >> 31u) << 15u) | min(round_to_float16(magnitude), 0x7c00u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float16(magnitude: u32) -> u32 {
    let exponent = i32(magnitude >> 23u);
    let biased = max(exponent, 1);
    let significand = (magnitude & 0x7fffffu) | (u32(exponent != 0) << 23u);
    let shift = u32(min(13 + max(113 - biased, 0), 26));
    return (u32(max(biased - 113, 0)) << 10u) + round_shift(significand, shift);
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product(v: i32, s: u32) -> u32 {
    return select(bitcast<u32>(f32(v) * bitcast<f32>(s)), s & 0x80000000u, v == 0);
}

fn sign_extend_int4(code: u32) -> i32 {
    return i32(code << 28u) >> 28u;
}

fn ieee_to_f32_float16(code: u32) -> u32 {
    let magnitude = code & 0x7fffu;
    if (magnitude > 0x7c00u) { return 0x7fc00000u; }
    if (magnitude == 0x7c00u) { return ((code >> 15u) << 31u) | 0x7f800000u; }
    return expand_float16(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16(code: u32) -> u32 {
    let sign = (code >> 15u) << 31u;
    let magnitude = code & 0x7fffu;
    let exponent = magnitude >> 10u;
    let mantissa = magnitude << 13u;
    if (exponent == 0u) {
        if (magnitude == 0u) { return sign; }
        let zeros = countLeadingZeros(mantissa) - 8u;
        return (sign | ((113u - zeros) << 23u)) | ((mantissa << zeros) & 0x7fffffu);
    }
    return sign | (mantissa + 0x38000000u);
}
