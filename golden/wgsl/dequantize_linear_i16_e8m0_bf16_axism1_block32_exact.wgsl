// DequantizeLinear: y = bfloat16(float32(x) * float32(x_scale))
//
//   x        int16       2 in a word, first in the lowest bits
//   x_scale  float8e8m0  one for 32 elements along axis -1
//   y        bfloat16    2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

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

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 128u) + id.x;
    if (unit >= params.units) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, params.n);
    let whole = (end - first) == 64u;
    var failed = 0u;
    let along = (first + params.axis_start) % params.axis;
    let axis_near = min(params.axis, 128u);
    let axis_inverse = (axis_near + 65535u) / axis_near;
    let along_near = axis_near - min(params.axis - along, axis_near);
    let slice = (first + params.axis_start) / params.axis * params.blocks;
    var span = 1u;
    for (var from_piece = 0u; from_piece < select(0u, 16u, whole); from_piece += span) {
        let ahead = vec4u(4u * from_piece) + vec4u(0u, 1u, 2u, 3u);
        let turns = ((vec4u(along_near) + ahead) * vec4u(axis_inverse)) >> vec4u(16u);
        let along_2 = vec4u(along) + ahead - turns * vec4u(params.axis);
        let group = vec4u(slice) + turns * vec4u(params.blocks) + along_2 / vec4u(32u);
        let scales = e8m0_to_f32_4((vec4u(x_scale[group.x / 4u], x_scale[group.y / 4u], x_scale[group.z / 4u], x_scale[group.w / 4u]) >> (vec4u(8u) * (group % vec4u(4u)))) & vec4u(255u));
        let is_plain = all(scale_product_takes_s_4(scales));
        failed = select(0xffffffffu, failed, is_plain);
        span = max(min(32u - along_2.x % 32u, params.axis - along_2.x) / 4u, 1u);
        for (var p = from_piece; p < min(from_piece + span, 16u); p++) {
            let piece = 16u * unit + p;
            let x_word = x[2u * piece];
            let x_word_2 = x[2u * piece + 1u];
            let y_codes = dequantize_linear_quick_4_vv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scales);
            y[2u * piece] = y_codes.x | (y_codes.y << 16u);
            y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
        }
    }
    let redo = select(0xffffffffu, failed, whole);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (16u * unit + p);
        let to_element = select(from_element, min(from_element + 4u, params.n), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                let group = (i + params.axis_start) / params.axis * params.blocks + (i + params.axis_start) % params.axis / 32u;
                let scale = e8m0_to_f32((x_scale[group / 4u] >> (8u * (group % 4u))) & 255u);
                word |= dequantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (16u * (i % 2u));
            }
            y[start / 2u] = word;
        }
    }
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32_4(code: vec4u) -> vec4u {
    return select(select(code << vec4u(23u), vec4u(0x400000u), code == vec4u(0u)), vec4u(0x7fc00000u), code == vec4u(255u));
}

fn scale_product_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0x800000u)) & (es < vec4u(0x73000000u));
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return convert_bf16_4(scale_product_4_vv(sign_extend_int16_4(x), scale));
}

fn sign_extend_int16_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(0x8000u)) + vec4i(-32768);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_bf16(mul_f32(small_to_f32(sign_extend_int16(x)), scale));
}

fn sign_extend_int16(code: u32) -> i32 {
    return i32(code ^ 0x8000u) + -32768;
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

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}
