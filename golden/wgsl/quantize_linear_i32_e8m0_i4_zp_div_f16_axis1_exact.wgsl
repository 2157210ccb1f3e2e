// QuantizeLinear: y = saturate_int4(round_even(float16(x) / float16(y_scale)) + y_zero_point)
//
//   x             int32       1 a word
//   y_scale       float8e8m0  one for each index along axis 1
//   y_zero_point  int4        one for each index along axis 1
//   y             int4        8 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read> y_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(4) var<uniform> params: Params;

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
    let first = 64u * unit;
    let end = min(first + 64u, params.n);
    let whole = (end - first) == 64u;
    var word = 0u;
    var failed = 0u;
    let row = (first + params.axis_start) / params.inner;
    let rest = (first + params.axis_start) % params.inner;
    let inner_near = min(params.inner, 128u);
    let inner_inverse = (inner_near + 65535u) / inner_near;
    let rest_near = inner_near - min(params.inner - rest, inner_near);
    let along = row % params.axis;
    let axis_near = min(params.axis, 128u);
    let axis_inverse = (axis_near + 65535u) / axis_near;
    let along_near = axis_near - min(params.axis - along, axis_near);
    var span = 1u;
    for (var from_piece = 0u; from_piece < select(0u, 16u, whole); from_piece += span) {
        let ahead = vec4u(4u * from_piece) + vec4u(0u, 1u, 2u, 3u);
        let passed = ((vec4u(rest_near) + ahead) * vec4u(inner_inverse)) >> vec4u(16u);
        let turns = ((vec4u(along_near) + passed) * vec4u(axis_inverse)) >> vec4u(16u);
        let group = vec4u(along) + passed - turns * vec4u(params.axis);
        let zero_points = sign_extend_int4_4((vec4u(y_zero_point[group.x / 8u], y_zero_point[group.y / 8u], y_zero_point[group.z / 8u], y_zero_point[group.w / 8u]) >> (vec4u(4u) * (group % vec4u(8u)))) & vec4u(15u));
        let y_scale_values = convert_to_f16_4(e8m0_to_f32_4((vec4u(y_scale[group.x / 4u], y_scale[group.y / 4u], y_scale[group.z / 4u], y_scale[group.w / 4u]) >> (vec4u(8u) * (group % vec4u(4u)))) & vec4u(255u)));
        let is_plain = all(rint_quotient_f16_takes_s_4(y_scale_values));
        failed = select(0xffffffffu, failed, is_plain);
        span = max((params.inner - (rest + ahead.x - passed.x * params.inner)) / 4u, 1u);
        for (var p = from_piece; p < min(from_piece + span, 16u); p++) {
            let piece = 16u * unit + p;
            let x_word = x[4u * piece];
            let x_word_2 = x[4u * piece + 1u];
            let x_word_3 = x[4u * piece + 2u];
            let x_word_4 = x[4u * piece + 3u];
            let y_codes = quantize_linear_quick_4_vvv(vec4u(x_word, x_word_2, x_word_3, x_word_4), zero_points, y_scale_values);
            failed |= u32(!all(rint_quotient_f16_takes_x_4(i32_to_narrow_float16_4(sign_extend_int32_4(vec4u(x_word, x_word_2, x_word_3, x_word_4)))) & rint_quotient_f16_holds_4_vv(i32_to_narrow_float16_4(sign_extend_int32_4(vec4u(x_word, x_word_2, x_word_3, x_word_4))), y_scale_values))) << (p / 2u);
            word = select(word, 0u, (p % 2u) == 0u) | ((((y_codes.x | (y_codes.y << 4u)) | (y_codes.z << 8u)) | (y_codes.w << 12u)) << (16u * (p % 2u)));
            y[piece / 2u] = word;
        }
    }
    let redo = select(0xffffffffu, failed, whole);
    for (var p = 0u; p < select(8u, 0u, redo == 0u); p++) {
        let from_element = 8u * (8u * unit + p);
        let to_element = select(from_element, min(from_element + 8u, params.n), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 8u) {
            var word_2 = 0u;
            for (var i = start; i < min(start + 8u, to_element); i++) {
                let group = (i + params.axis_start) / params.inner % params.axis;
                let scale = convert_ieee_float16(e8m0_to_f32((y_scale[group / 4u] >> (8u * (group % 4u))) & 255u));
                let zero_point = sign_extend_int4((y_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u);
                word_2 |= quantize_linear(x[i], scale, zero_point) << (4u * (i % 8u));
            }
            y[start / 8u] = word_2;
        }
    }
}

fn sign_extend_int4_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(8u)) + vec4i(-8);
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32_4(code: vec4u) -> vec4u {
    return select(select(code << vec4u(23u), vec4u(0x400000u), code == vec4u(0u)), vec4u(0x7fc00000u), code == vec4u(255u));
}

fn rint_quotient_f16_takes_s_4(s: vec4u) -> vec4<bool> {
    return ((s & vec4u(0x7fffu)) != vec4u(0u)) & ((s & vec4u(0x7fffu)) < vec4u(0x7c00u));
}

fn quantize_linear_quick_4_vvv(x: vec4u, zero_point: vec4i, y_scale_value: vec4u) -> vec4u {
    return saturate_signed_int4_4(rint_quotient_f16_4_vv(i32_to_narrow_float16_4(sign_extend_int32_4(x)), y_scale_value) + zero_point);
}

// The quotient is rounded to the 11 bits of float16 by integers: right unless it is near the middle between two of them.
fn rint_quotient_f16_4_vv(x: vec4u, s: vec4u) -> vec4i {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / bitcast<vec4f>(ieee_to_f32_float16_4(s)));
    let rounded = (q + vec4u(0x1000u)) & vec4u(0xffffe000u);
    let value = vec4i(round(bitcast<vec4f>(rounded)));
    let infinite = (rounded & vec4u(0x7fffffffu)) >= vec4u(0x47800000u);
    return select(value, select(vec4i(262144), vec4i(-262144), rounded > vec4u(0x7fffffffu)), infinite);
}

fn saturate_signed_int4_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(-8), vec4i(7))) & vec4u(15u);
}

fn rint_quotient_f16_takes_x_4(x: vec4u) -> vec4<bool> {
    return (x & vec4u(0x7fffu)) < vec4u(0x7c00u);
}

// What is beyond the format's numbers is as good as 2^16, the infinity after them; the rest converts exactly, and is no subnormal.
fn i32_to_narrow_float16_4(v: vec4i) -> vec4u {
    let magnitude = bitcast<vec4u>(vec4f(abs(clamp(v, vec4i(-65536), vec4i(65536)))));
    let code = round_shift_4(magnitude - vec4u(0x38000000u), 13u);
    return ((vec4u(v) >> vec4u(31u)) << vec4u(15u)) | select(code, vec4u(0u), v == vec4i(0));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift_4(value: vec4u, shift: u32) -> vec4u {
    return (value + vec4u((1u << (shift - 1u)) - 1u) + ((value >> vec4u(shift)) & vec4u(1u))) >> vec4u(shift);
}

fn sign_extend_int32_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(0x80000000u)) + vec4i(i32(-2147483648));
}

fn rint_quotient_f16_holds_4_vv(x: vec4u, s: vec4u) -> vec4<bool> {
    let q = bitcast<vec4u>(bitcast<vec4f>(ieee_to_f32_float16_4(x)) / bitcast<vec4f>(ieee_to_f32_float16_4(s)));
    return ((q & vec4u(0x1fffu)) - vec4u(0xffcu)) > vec4u(8u);
}

fn ieee_to_f32_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    return select(expand_float16_4(code) + select(vec4u(0u), vec4u(0x38000000u), magnitude == vec4u(0x7c00u)), vec4u(0x7fc00000u), magnitude > vec4u(0x7c00u));
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float16_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(0x7fffu);
    let normal = (magnitude << vec4u(13u)) + vec4u(0x38000000u);
    let subnormal = bitcast<vec4u>(vec4f(vec4i(magnitude)) * vec4f(bitcast<f32>(0x33800000u))) & vec4u(0x7fffffffu);
    return ((code >> vec4u(15u)) << vec4u(31u)) | select(normal, subnormal, (magnitude >> vec4u(10u)) == vec4u(0u));
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

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn sign_extend_int4(code: u32) -> i32 {
    return i32(code ^ 8u) + -8;
}

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_signed_int4(rint_f32(ieee_to_f32_float16(div_f16(i32_to_narrow_float16(sign_extend_int32(x)), scale))) + zero_point);
}

fn sign_extend_int32(code: u32) -> i32 {
    return i32(code ^ 0x80000000u) + i32(-2147483648);
}

// What is beyond the format's numbers is as good as 2^16, the infinity after them; the rest converts exactly, and is no subnormal.
fn i32_to_narrow_float16(v: i32) -> u32 {
    let magnitude = bitcast<u32>(f32(abs(clamp(v, -65536, 65536))));
    let code = round_shift(magnitude - 0x38000000u, 13u);
    return ((u32(v) >> 31u) << 15u) | select(code, 0u, v == 0);
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

fn saturate_signed_int4(v: i32) -> u32 {
    return u32(clamp(v, -8, 7)) & 15u;
}
