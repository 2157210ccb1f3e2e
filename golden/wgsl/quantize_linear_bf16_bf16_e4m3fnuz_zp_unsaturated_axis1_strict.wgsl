// QuantizeLinear: y = float8e4m3fnuz(float32(x / y_scale))
//
//   x        bfloat16        2 in a word, first in the lowest bits
//   y_scale  bfloat16        one for each index along axis 1
//   y        float8e4m3fnuz  4 in a word, first in the lowest bits
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
        let group = (i + params.axis_start) / params.inner % params.axis;
        let scale = (y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu;
        word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (8u * (i % 4u));
    }
    y[unit] = word;
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return convert_fnuz_float8e4m3fnuz(bf16_to_f32(div_bf16(x, scale)));
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x / y: as div_f16, with 8-bit significands.
fn div_bf16(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffu;
    let ay = y & 0x7fffu;
    let sign = (x ^ y) & 0x8000u;
    if ((max(ax, ay) > 0x7f80u) || ((ax == ay) && ((ax == 0u) || (ax == 0x7f80u)))) { return 0x7fc0u; }
    if ((ax == 0x7f80u) || (ay == 0u)) { return sign | 0x7f80u; }
    if ((ax == 0u) || (ay == 0x7f80u)) { return sign; }
    let a = parts(ax << 16u);
    let b = parts(ay << 16u);
    let da = a.significand >> 16u;
    let db = b.significand >> 16u;
    let less = u32(da < db);
    let dividend = da << (9u + less);
    let quotient = dividend / db;
    let significand = (quotient << 1u) | u32(dividend != (quotient * db));
    let exponent = a.exponent - b.exponent + 127 - i32(less);
    let shift = u32(3 + clamp(1 - exponent, 0, 9));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 7u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f80u);
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

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

// There is no -0: its code is NaN.
fn convert_fnuz_float8e4m3fnuz(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    let code = round_to_float8e4m3fnuz(magnitude);
    if ((magnitude > 0x7f800000u) || (code > 127u)) { return 128u; }
    return select(((x >> 31u) << 7u) | code, 0u, code == 0u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float8e4m3fnuz(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 120u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x3b800000u, normal);
    return round_shift(value, select(min(140u - exponent, 26u), 20u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
