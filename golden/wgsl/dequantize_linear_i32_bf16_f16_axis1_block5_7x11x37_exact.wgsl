// DequantizeLinear: y = float16(float32(x) * float32(x_scale))
//
//   x        int32     [7, 11, 37]  1 a word
//   x_scale  bfloat16  [7, 3, 37]   one for 5 elements along axis 1
//   y        float16   [7, 11, 37]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 45u) { return; }
    let first = 64u * unit;
    let end = min(first + 64u, 2849u);
    let whole = (end - first) == 64u;
    var failed = 0u;
    let row = first / 37u;
    let rest = first % 37u;
    let along = row % 11u;
    let slice = row / 11u * 3u;
    for (var p = 0u; p < select(0u, 16u, whole); p++) {
        let ahead = vec4u(4u * p) + vec4u(0u, 1u, 2u, 3u);
        let passed = ((vec4u(rest) + ahead) * vec4u(1772u)) >> vec4u(16u);
        let turns = ((vec4u(along) + passed) * vec4u(5958u)) >> vec4u(16u);
        let along_2 = vec4u(along) + passed - turns * vec4u(11u);
        let group = (vec4u(slice) + turns * vec4u(3u) + along_2 / vec4u(5u)) * vec4u(37u) + (vec4u(rest) + ahead - passed * vec4u(37u));
        let scales = bf16_to_f32_4((vec4u(x_scale[group.x / 2u], x_scale[group.y / 2u], x_scale[group.z / 2u], x_scale[group.w / 2u]) >> (vec4u(16u) * (group % vec4u(2u)))) & vec4u(0xffffu));
        let is_plain = all(product_takes_y_4(scales));
        failed = select(0xffffffffu, failed, is_plain);
        let piece = 16u * unit + p;
        let x_word = x[4u * piece];
        let x_word_2 = x[4u * piece + 1u];
        let x_word_3 = x[4u * piece + 2u];
        let x_word_4 = x[4u * piece + 3u];
        let y_codes = dequantize_linear_quick_4_vv(vec4u(x_word, x_word_2, x_word_3, x_word_4), scales);
        failed |= u32(!all(product_holds_4_vv(i32_to_f32_4(sign_extend_int32_4(vec4u(x_word, x_word_2, x_word_3, x_word_4))), scales))) << p;
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let redo = select(0xffffffffu, failed, whole);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (16u * unit + p);
        let to_element = select(from_element, min(from_element + 4u, 2849u), ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                let group = (i / 407u * 3u + i / 37u % 11u / 5u) * 37u + i % 37u;
                let scale = bf16_to_f32((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
                word |= dequantize_linear(x[i], scale) << (16u * (i % 2u));
            }
            y[start / 2u] = word;
        }
    }
}

fn bf16_to_f32_4(x: vec4u) -> vec4u {
    let bits = x << vec4u(16u);
    return select(bits, vec4u(0x7fc00000u), (bits & vec4u(0x7fffffffu)) > vec4u(0x7f800000u));
}

fn product_takes_y_4(y: vec4u) -> vec4<bool> {
    let ey = (y >> vec4u(23u)) & vec4u(255u);
    return ey != vec4u(255u);
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return convert_to_f16_4(product_4_vv(i32_to_f32_4(sign_extend_int32_4(x)), scale));
}

// Zero times a finite number is zero, whatever the exponents.
fn product_4_vv(x: vec4u, y: vec4u) -> vec4u {
    let ax = x & vec4u(0x7fffffffu);
    return select(bitcast<vec4u>(bitcast<vec4f>(x) * bitcast<vec4f>(y)), (x ^ y) & vec4u(0x80000000u), ax == vec4u(0u));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

fn product_holds_4_vv(x: vec4u, y: vec4u) -> vec4<bool> {
    let ey = (y >> vec4u(23u)) & vec4u(255u);
    let ax = x & vec4u(0x7fffffffu);
    let ex = ax >> vec4u(23u);
    return select((((min(ex, ey) != vec4u(0u)) & (ex != vec4u(255u))) & ((ex + ey) > vec4u(128u))) & ((ex + ey) < vec4u(0x17cu)), vec4<bool>(true), ax == vec4u(0u));
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

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(i32_to_f32(sign_extend_int32(x)), scale));
}

fn sign_extend_int32(code: u32) -> i32 {
    return i32(code ^ 0x80000000u) + i32(-2147483648);
}

fn i32_to_f32(v: i32) -> u32 {
    if (v == 0) { return 0u; }
    let sign = u32(v) & 0x80000000u;
    let magnitude = select(u32(v), 0u - u32(v), sign != 0u);
    let zeros = countLeadingZeros(magnitude);
    let n = magnitude << (zeros & 31u);
    return round_pack(sign, 158 - i32(zeros), (n >> 6u) | u32((n & 63u) != 0u));
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
    let exponent = magnitude >> 23u;
    let normal = exponent >= 113u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x38000000u, normal);
    return round_shift(value, select(min(126u - exponent, 26u), 13u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
