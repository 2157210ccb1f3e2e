// DequantizeLinear: y = float32(x) * float32(x_scale)
//
//   x        float4e2m1  8 in a word, first in the lowest bits
//   x_scale  bfloat16    one for each index along axis 1
//   y        float32     1 a word
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
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
    axis_start: u32,
}

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 8u * unit;
    let end = min(first + 8u, params.n);
    let x_word = x[unit];
    for (var i = first; i < end; i++) {
        let group = (i + params.axis_start) / params.inner % params.axis;
        let scale = bf16_to_f32((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
        y[i] = dequantize_linear((x_word >> (4u * (i % 8u))) & 15u, scale);
    }
}

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return mul_f32(finite_to_f32_float4e2m1(x), scale);
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
