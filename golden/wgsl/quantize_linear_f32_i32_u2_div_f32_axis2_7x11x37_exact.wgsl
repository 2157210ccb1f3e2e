// QuantizeLinear: y = saturate_uint2(round_even(x / float32(y_scale)))
//
//   x        float32  [7, 11, 37]  1 a word
//   y_scale  int32    [37]         one for each index along axis 2
//   y        uint2    [7, 11, 37]  16 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 45u) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, 2849u);
    let whole = (end - first) == 64u;
    var word = 0u;
    var failed = 0u;
    let along = first % 37u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let ahead = vec4u(4u * p) + vec4u(0u, 1u, 2u, 3u);
        let turns = ((vec4u(along) + ahead) * vec4u(1772u)) >> vec4u(16u);
        let group = vec4u(along) + ahead - turns * vec4u(37u);
        let scales = i32_to_f32_4(sign_extend_int32_4(vec4u(y_scale[group.x], y_scale[group.y], y_scale[group.z], y_scale[group.w])));
        let is_plain = all(rint_quotient_takes_s_4(scales));
        failed = select(0xffffffffu, failed, is_plain);
        let piece = 16u * unit + p;
        let x_word = x[4u * piece];
        let x_word_2 = x[4u * piece + 1u];
        let x_word_3 = x[4u * piece + 2u];
        let x_word_4 = x[4u * piece + 3u];
        let y_codes = quantize_linear_quick_4_vv(vec4u(x_word, x_word_2, x_word_3, x_word_4), scales);
        failed |= u32(!all(rint_quotient_holds_4_vv(vec4u(x_word, x_word_2, x_word_3, x_word_4), scales))) << (p / 4u);
        word = select(word, 0u, (p % 4u) == 0u) | ((((y_codes.x | (y_codes.y << 2u)) | (y_codes.z << 4u)) | (y_codes.w << 6u)) << (8u * (p % 4u)));
        y[piece / 4u] = word;
    }
    let redo = select(0xffffffffu, failed, whole);
    for (var p = 0u; p < select(4u, 0u, redo == 0u); p++) {
        let from_element = 16u * (4u * unit + p);
        let to_element = select(from_element, min(from_element + 16u, 2849u), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 16u) {
            var word_2 = 0u;
            for (var i = start; i < min(start + 16u, to_element); i++) {
                let group = i % 37u;
                let scale = i32_to_f32(sign_extend_int32(y_scale[group]));
                word_2 |= quantize_linear(x[i], scale) << (2u * (i % 16u));
            }
            y[start / 16u] = word_2;
        }
    }
}

fn i32_to_f32_4(v: vec4i) -> vec4u {
    let sign = vec4u(v) & vec4u(0x80000000u);
    let magnitude = select(vec4u(v), vec4u(0u) - vec4u(v), sign != vec4u(0u));
    let zeros = countLeadingZeros(magnitude);
    let n = magnitude << (zeros & vec4u(31u));
    return select(round_pack_4_vvv(sign, vec4i(158) - vec4i(zeros), (n >> vec4u(6u)) | vec4u((n & vec4u(63u)) != vec4u(0u))), vec4u(0u), v == vec4i(0));
}

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack_4_vvv(sign: vec4u, exponent: vec4i, significand: vec4u) -> vec4u {
    let shift = vec4u(vec4i(2) + clamp(vec4i(1) - exponent, vec4i(0), vec4i(25)));
    let bits = (vec4u(clamp(exponent, vec4i(1), vec4i(255)) - vec4i(1)) << vec4u(23u)) + round_shift_4_vv(significand, shift);
    return sign | min(bits, vec4u(0x7f800000u));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift_4_vv(value: vec4u, shift: vec4u) -> vec4u {
    return (value + ((vec4u(1u) << (shift - vec4u(1u))) - vec4u(1u)) + ((value >> shift) & vec4u(1u))) >> shift;
}

fn sign_extend_int32_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(0x80000000u)) + vec4i(i32(-2147483648));
}

fn rint_quotient_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0xc000000u)) & (es < vec4u(0x77000000u));
}

fn quantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return saturate_unsigned_uint2_4(rint_quotient_4_vv(x, scale));
}

// Right unless the quotient is near a tie: 2^-20 of it is more than 2.5 ULP and the rounding of the sum.
fn rint_quotient_4_vv(x: vec4u, s: vec4u) -> vec4i {
    let q = bitcast<vec4f>(x) / bitcast<vec4f>(s);
    let r = round(q);
    return vec4i(r);
}

fn saturate_unsigned_uint2_4(v: vec4i) -> vec4u {
    return vec4u(clamp(v, vec4i(0), vec4i(3)));
}

fn rint_quotient_holds_4_vv(x: vec4u, s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    let q = bitcast<vec4f>(x) / bitcast<vec4f>(s);
    let r = round(q);
    return select(((abs(q - r) + abs(q) * vec4f(9.5367431640625e-07f)) < vec4f(0.5f)), vec4<bool>(false), (x & vec4u(0x7fffffffu)) >= (es + vec4u(0x8000000u)));
}

fn i32_to_f32(v: i32) -> u32 {
    if (v == 0) { return 0u; }
    let sign = u32(v) & 0x80000000u;
    let magnitude = select(u32(v), 0u - u32(v), sign != 0u);
    let zeros = countLeadingZeros(magnitude);
    let n = magnitude << (zeros & 31u);
    return round_pack(sign, 158 - i32(zeros), (n >> 6u) | u32((n & 63u) != 0u));
}

fn sign_extend_int32(code: u32) -> i32 {
    return i32(code ^ 0x80000000u) + i32(-2147483648);
}

fn quantize_linear(x: u32, scale: u32) -> u32 {
    return saturate_unsigned_uint2(rint_f32(div_f32(x, scale)));
}

struct Parts {
    sign: u32,
    exponent: i32,
    significand: u32,
}

// x / y. The native quotient of two values in [1, 4) is only a hint: it may be off by 2.5 ULP, 3.5 below and 7 above are survived.
fn div_f32(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffffffu;
    let ay = y & 0x7fffffffu;
    let sign = (x ^ y) & 0x80000000u;
    if ((max(ax, ay) > 0x7f800000u) || ((ax == ay) && ((ax == 0u) || (ax == 0x7f800000u)))) { return 0x7fc00000u; }
    if ((ax == 0x7f800000u) || (ay == 0u)) { return sign | 0x7f800000u; }
    if ((ax == 0u) || (ay == 0x7f800000u)) { return sign; }
    let a = parts(x);
    let b = parts(y);
    let d = b.significand;
    let less = u32(a.significand < d);
    let hint = bitcast<u32>(bitcast<f32>(((127u + less) << 23u) | (a.significand & 0x7fffffu)) / bitcast<f32>(0x3f800000u | (d & 0x7fffffu)));
    let n0 = hint - 0x3f800000u + 0x7ffff8u;
    let r0 = (a.significand << (23u + less)) - n0 * d;
    let s3 = u32(r0 >= (d << 3u));
    let r1 = r0 - s3 * (d << 3u);
    let s2 = u32(r1 >= (d << 2u));
    let r2 = r1 - s2 * (d << 2u);
    let s1 = u32(r2 >= (d << 1u));
    let r3 = r2 - s1 * (d << 1u);
    let s0 = u32(r3 >= d);
    let r4 = (r3 - s0 * d) << 1u;
    let n = n0 + (s3 << 3u) + (s2 << 2u) + (s1 << 1u) + s0;
    let guard = u32(r4 >= d);
    let sticky = u32(r4 != (guard * d));
    return round_pack(sign, a.exponent - b.exponent + 127 - i32(less), ((n << 2u) | (guard << 1u)) | sticky);
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

fn saturate_unsigned_uint2(v: i32) -> u32 {
    return u32(clamp(v, 0, 3));
}
