// QuantizeLinear: y = saturate_int16(round_even(x / bfloat16(y_scale)))
//
//   x        bfloat16    2 in a word, first in the lowest bits
//   y_scale  float8e8m0  one for 32 elements along axis -1
//   y        int16       2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

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
        let scales = convert_bf16_4(e8m0_to_f32_4((vec4u(y_scale[group.x / 4u], y_scale[group.y / 4u], y_scale[group.z / 4u], y_scale[group.w / 4u]) >> (vec4u(8u) * (group % vec4u(4u)))) & vec4u(255u)));
        let is_plain = all(rint_quotient_bf16_takes_s_4(scales));
        failed = select(0xffffffffu, failed, is_plain);
        span = max(min(32u - along_2.x % 32u, params.axis - along_2.x) / 4u, 1u);
        for (var p = from_piece; p < min(from_piece + span, 16u); p++) {
            let piece = 16u * unit + p;
            let x_word = x[2u * piece];
            let x_word_2 = x[2u * piece + 1u];
            let y_codes = quantize_linear_quick_4_vv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scales);
            failed |= u32(!all(rint_quotient_bf16_holds_4_vv(vec4u(x_word & 0xffffu, x_word >> 16u, x_word_2 & 0xffffu, x_word_2 >> 16u), scales))) << p;
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
                let scale = convert_bf16(e8m0_to_f32((y_scale[group / 4u] >> (8u * (group % 4u))) & 255u));
                word |= quantize_linear((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, scale) << (16u * (i % 2u));
            }
            y[start / 2u] = word;
        }
    }
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16_4(x: vec4u) -> vec4u {
    return select((x + vec4u(0x7fffu) + ((x >> vec4u(16u)) & vec4u(1u))) >> vec4u(16u), vec4u(0x7fc0u), (x & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32_4(code: vec4u) -> vec4u {
    return select(select(code << vec4u(23u), vec4u(0x400000u), code == vec4u(0u)), vec4u(0x7fc00000u), code == vec4u(255u));
}

fn rint_quotient_bf16_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f80u);
    return (es > vec4u(0xc00u)) & (es < vec4u(0x7700u));
}

fn quantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return saturate_signed_int16_4(rint_quotient_bf16_4_vv(x, scale));
}

// As for float16, with 8 bits.
fn rint_quotient_bf16_4_vv(x: vec4u, s: vec4u) -> vec4i {
    let q = bitcast<vec4u>(bitcast<vec4f>(x << vec4u(16u)) / bitcast<vec4f>(s << vec4u(16u)));
    return vec4i(round(bitcast<vec4f>((q + vec4u(0x8000u)) & vec4u(0xffff0000u))));
}

fn saturate_signed_int16_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(-32768), vec4i(32767))) & vec4u(0xffffu);
}

fn rint_quotient_bf16_holds_4_vv(x: vec4u, s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f80u);
    let q = bitcast<vec4u>(bitcast<vec4f>(x << vec4u(16u)) / bitcast<vec4f>(s << vec4u(16u)));
    return select(((q & vec4u(0xffffu)) - vec4u(0x7ffcu)) > vec4u(8u), vec4<bool>(false), (x & vec4u(0x7fffu)) >= (es + vec4u(0x800u)));
}

// bfloat16 has float32's exponents, so rounding is an addition: it carries into the exponent, and up to infinity.
fn convert_bf16(x: u32) -> u32 {
    if ((x & 0x7fffffffu) > 0x7f800000u) { return 0x7fc0u; }
    return (x + 0x7fffu + ((x >> 16u) & 1u)) >> 16u;
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_signed_int16(rint_f32(bf16_to_f32(div_bf16(x, scale))));
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

// The nearest integer, half to even, clamped to 2^18 in magnitude; NaN is the lowest.
fn rint_f32(x: u32) -> i32 {
    let magnitude = x & 0x7fffffffu;
    let exponent = i32(magnitude >> 23u);
    let rounded = round_shift((x & 0x7fffffu) | 0x800000u, u32(clamp(150 - exponent, 1, 25)));
    let value = i32(select(rounded, 0x40000u, exponent >= 145));
    return select(value, -value, (x != magnitude) || (magnitude > 0x7f800000u));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}

fn saturate_signed_int16(v: i32) -> u32 {
    return u32(clamp(v, -32768, 32767)) & 0xffffu;
}
