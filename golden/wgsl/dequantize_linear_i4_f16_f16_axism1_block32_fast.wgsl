// DequantizeLinear: y = float16(float32(x) * float32(x_scale))
//
//   x        int4     8 in a word, first in the lowest bits
//   x_scale  float16  one for 32 elements along axis -1
//   y        float16  2 in a word, first in the lowest bits
//
// Numerics: fast, native arithmetic, with the error that the sidecar states.
// Dispatch: any shape, from the uniform parameters; an invocation computes 16 elements.

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
    axis_start: u32,
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 64u) + id.x;
    if (unit >= params.units) { return; }
    let first = 16u * unit;
    let end = min(first + 16u, params.n);
    let whole = (end - first) == 16u;
    for (var q = 0u; q < select(0u, 4u, whole); q++) {
        let quad = 4u * unit + q;
        let x_word = x[quad / 2u] >> (16u * (quad % 2u));
        let x_codes = (vec4u(x_word) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u);
        let group = ((vec4u(4u * quad) + vec4u(0u, 1u, 2u, 3u) + vec4u(params.axis_start)) / vec4u(params.inner) / vec4u(params.axis) * vec4u(params.blocks) + (vec4u(4u * quad) + vec4u(0u, 1u, 2u, 3u) + vec4u(params.axis_start)) / vec4u(params.inner) % vec4u(params.axis) / vec4u(32u)) * vec4u(params.inner) + (vec4u(4u * quad) + vec4u(0u, 1u, 2u, 3u) + vec4u(params.axis_start)) % vec4u(params.inner);
        let x_scale_codes = vec4u((x_scale[group.x / 2u] >> (16u * (group.x % 2u))) & 65535u, (x_scale[group.y / 2u] >> (16u * (group.y % 2u))) & 65535u, (x_scale[group.z / 2u] >> (16u * (group.z % 2u))) & 65535u, (x_scale[group.w / 2u] >> (16u * (group.w % 2u))) & 65535u);
        let scale = ieee_to_f32_float16_4(x_scale_codes);
        let y_codes = dequantize_linear_quick_4_vv(x_codes, scale);
        y[2u * quad] = y_codes.x | (y_codes.y << 16u);
        y[2u * quad + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let again = select(first, end, whole);
    for (var start = again; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = ((i + params.axis_start) / params.inner / params.axis * params.blocks + (i + params.axis_start) / params.inner % params.axis / 32u) * params.inner + (i + params.axis_start) % params.inner;
            let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 65535u);
            word |= dequantize_linear((x[i / 8u] >> (4u * (i % 8u))) & 15u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

fn ieee_to_f32_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    return select(select(expand_float16_4(code), ((code >> vec4u(15u)) << vec4u(31u)) | vec4u(0x7f800000u), magnitude == vec4u(0x7c00u)), vec4u(0x7fc00000u), magnitude > vec4u(0x7c00u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16_4(code: vec4u) -> vec4u {
    let sign = (code >> vec4u(15u)) << vec4u(31u);
    let magnitude = code & vec4u(0x7fffu);
    let exponent = magnitude >> vec4u(10u);
    let mantissa = magnitude << vec4u(13u);
    let zeros = countLeadingZeros(mantissa) - vec4u(8u);
    return select(sign | (mantissa + vec4u(0x38000000u)), select((sign | ((vec4u(113u) - zeros) << vec4u(23u))) | ((mantissa << (zeros & vec4u(31u))) & vec4u(0x7fffffu)), sign, magnitude == vec4u(0u)), exponent == vec4u(0u));
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return convert_to_f16_4(scale_product_4_vv(sign_extend_int4_4(x), scale));
}

fn sign_extend_int4_4(code: vec4u) -> vec4i {
    return vec4i(code << vec4u(28u)) >> vec4u(28u);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
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
        return (sign | ((113u - zeros) << 23u)) | ((mantissa << (zeros & 31u)) & 0x7fffffu);
    }
    return sign | (mantissa + 0x38000000u);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(small_to_f32(sign_extend_int4(x)), scale));
}

fn sign_extend_int4(code: u32) -> i32 {
    return i32(code << 28u) >> 28u;
}

// An integer of at most 24 bits converts exactly on every implementation, but the zero may have any sign.
fn small_to_f32(v: i32) -> u32 {
    return select(bitcast<u32>(f32(v)), 0u, v == 0);
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
