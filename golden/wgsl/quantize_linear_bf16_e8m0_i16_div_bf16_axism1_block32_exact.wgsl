// QuantizeLinear: y = saturate_int16(round_even(x / bfloat16(y_scale)))
//
//   x        bfloat16    2 in a word, first in the lowest bits
//   y_scale  float8e8m0  one for 32 elements along axis -1
//   y        int16       2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
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
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 64u) + id.x;
    if (unit >= params.units) { return; }
    let first = 4u * unit;
    let end = min(first + 4u, params.n);
    var held = true;
    for (var start = first; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i / params.inner / params.axis * params.blocks + i / params.inner % params.axis / 32u) * params.inner + i % params.inner;
            let scale = convert_ieee_bfloat16(e8m0_to_f32((y_scale[group / 4u] >> (8u * (group % 4u))) & 255u));
            let is_plain = rint_quotient_bf16_takes_s(scale);
            held = held && (is_plain && rint_quotient_bf16_holds((x[i / 2u] >> (16u * (i % 2u))) & 65535u, scale));
            word |= quantize_linear_quick((x[i / 2u] >> (16u * (i % 2u))) & 65535u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
    let again = select(first, end, held);
    for (var start = again; start < end; start += 2u) {
        var redone = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i / params.inner / params.axis * params.blocks + i / params.inner % params.axis / 32u) * params.inner + i % params.inner;
            let scale = convert_ieee_bfloat16(e8m0_to_f32((y_scale[group / 4u] >> (8u * (group % 4u))) & 255u));
            redone |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 65535u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = redone;
    }
}

fn quantize_linear_quick(x: u32, scale: u32) -> u32 {
    return saturate_signed_int16(rint_quotient_bf16(x, scale));
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_signed_int16(rint_f32(bf16_to_f32(div_bf16(x, scale))));
}

// As for float16, with 8 bits.
fn rint_quotient_bf16(x: u32, s: u32) -> i32 {
    let q = bitcast<u32>(bitcast<f32>(x << 16u) / bitcast<f32>(s << 16u));
    return i32(round(bitcast<f32>((q + 0x8000u) & 0xffff0000u)));
}

fn rint_quotient_bf16_takes_s(s: u32) -> bool {
    let es = s & 0x7f80u;
    return (es > 0xc00u) && (es < 0x7700u);
}

fn rint_quotient_bf16_holds(x: u32, s: u32) -> bool {
    let es = s & 0x7f80u;
    if ((x & 0x7fffu) >= (es + 0x800u)) { return false; }
    let q = bitcast<u32>(bitcast<f32>(x << 16u) / bitcast<f32>(s << 16u));
    return ((q & 0xffffu) - 0x7ffcu) > 8u;
}

fn saturate_signed_int16(v: i32) -> u32 {
    return u32(clamp(v, -32768, 32767)) & 0xffffu;
}

// The nearest integer, half to even, clamped to 2^18 in magnitude; NaN is the lowest.
fn rint_f32(x: u32) -> i32 {
    let magnitude = x & 0x7fffffffu;
    let exponent = i32(magnitude >> 23u);
    let rounded = round_shift((x & 0x7fffffu) | 0x800000u, u32(clamp(150 - exponent, 1, 25)));
    let value = i32(select(rounded, 0x40000u, exponent >= 145));
    return select(value, -value, (x != magnitude) || (magnitude > 0x7f800000u));
}

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
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

fn convert_ieee_bfloat16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 0x7fc0u; }
    return ((x >> 31u) << 15u) | min(round_to_bfloat16(magnitude), 0x7f80u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_bfloat16(magnitude: u32) -> u32 {
    let exponent = i32(magnitude >> 23u);
    let biased = max(exponent, 1);
    let significand = (magnitude & 0x7fffffu) | (u32(exponent != 0) << 23u);
    let shift = u32(min(16 + max(1 - biased, 0), 26));
    return (u32(max(biased - 1, 0)) << 7u) + round_shift(significand, shift);
}

// value / 2^shift, half to even; shift in 1..31.
fn round_shift(value: u32, shift: u32) -> u32 {
    let kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return kept + u32((rest > half) || ((rest == half) && ((kept & 1u) == 1u)));
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}
