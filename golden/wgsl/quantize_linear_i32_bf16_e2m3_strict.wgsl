// QuantizeLinear: y = saturate_float6e2m3(float32(bfloat16(x) / y_scale))
//
//   x        int32       1 a word
//   y_scale  bfloat16    one for all elements
//   y        float6e2m3  16 in 3 words, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 16 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

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
    let scale = y_scale[0u] & 0xffffu;
    for (var number = 0u; number < ((6u * (end - first) + 31u) / 32u); number++) {
        let bit = 32u * number;
        var word = 0u;
        for (var i = first + bit / 6u; i < min(first + (bit + 37u) / 6u, end); i++) {
            let code = quantize_linear(x[i], scale);
            let offset = 6u * (i % 16u);
            word |= select(code >> ((bit - offset) & 31u), code << ((offset - bit) & 31u), offset >= bit);
        }
        y[first / 16u * 3u + number] = word;
    }
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_float_float6e2m3(bf16_to_f32(div_bf16(i32_to_bf16(sign_extend_int32(x)), scale)));
}

fn sign_extend_int32(code: u32) -> i32 {
    return i32(code ^ 0x80000000u) + i32(-2147483648);
}

fn i32_to_bf16(v: i32) -> u32 {
    return convert_bf16(i32_to_odd(v));
}

// A float32 whose last bit tells that something was lost (round to odd), so that rounding it once more rounds once.
fn i32_to_odd(v: i32) -> u32 {
    if (v == 0) { return 0u; }
    let sign = u32(v) & 0x80000000u;
    let magnitude = select(u32(v), 0u - u32(v), sign != 0u);
    let zeros = countLeadingZeros(magnitude);
    let n = magnitude << (zeros & 31u);
    return ((sign | ((158u - zeros) << 23u)) | ((n >> 8u) & 0x7fffffu)) | u32((n & 255u) != 0u);
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
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

// A format without NaN has its greatest number in place of it.
fn saturate_float_float6e2m3(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 31u; }
    return ((x >> 31u) << 5u) | min(round_to_float6e2m3(magnitude), 31u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float6e2m3(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 127u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x3f000000u, normal);
    return round_shift(value, select(min(147u - exponent, 26u), 20u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
