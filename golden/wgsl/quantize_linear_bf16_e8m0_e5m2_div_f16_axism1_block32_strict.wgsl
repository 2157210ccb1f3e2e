// QuantizeLinear: y = saturate_float8e5m2(float32(float16(x) / float16(y_scale)))
//
//   x        bfloat16    2 in a word, first in the lowest bits
//   y_scale  float8e8m0  one for 32 elements along axis -1
//   y        float8e5m2  4 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 4 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

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
    var word = 0u;
    for (var i = first; i < end; i++) {
        let group = (i + params.axis_start) / params.axis * params.blocks + (i + params.axis_start) % params.axis / 32u;
        let scale = convert_ieee_float16(e8m0_to_f32((y_scale[group / 4u] >> (8u * (group % 4u))) & 255u));
        word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (8u * (i % 4u));
    }
    y[unit] = word;
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_float_float8e5m2(ieee_to_f32_float16(div_f16(convert_ieee_float16(bf16_to_f32(x)), scale)));
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

// A format without NaN has its greatest number in place of it.
fn saturate_float_float8e5m2(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 126u; }
    return ((x >> 31u) << 7u) | min(round_to_float8e5m2(magnitude), 123u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float8e5m2(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 113u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x38000000u, normal);
    return round_shift(value, select(min(134u - exponent, 26u), 21u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
