// DequantizeLinear: y = float32(wrap_int32(x - x_zero_point)) * float32(x_scale)
//
//   x             int32       [2, 10, 128]  1 a word
//   x_scale       float8e8m0  [10]          one for each index along axis 1
//   x_zero_point  int32       [10]          one for each index along axis 1
//   y             float32     [2, 10, 128]  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<vec4u>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4u>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 40u) { return; }
    let base = unit / 2u * 32u + unit % 2u;
    let group = 4u * base / 128u % 10u;
    let zero_point = sign_extend_int32(x_zero_point[group]);
    let scale = e8m0_to_f32((x_scale[group / 4u] >> (8u * (group % 4u))) & 255u);
    let is_plain = product_takes_y(scale);
    var failed = 0u;
    for (var p = 0u; p < 16u; p++) {
        let piece = base + 2u * p;
        let x_words = x[piece];
        let y_codes = dequantize_linear_quick_4(x_words, zero_point, scale);
        failed |= u32(!all(product_holds_4(i32_to_f32_4(sign_extend_int32_4(x_words) - vec4i(zero_point)), scale))) << p;
        y[piece] = y_codes;
    }
    let redo = select(0xffffffffu, failed, is_plain);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (base + 2u * p);
        let to_element = select(from_element, from_element + 4u, ((redo >> p) & 1u) == 1u);
        for (var i = from_element; i < to_element; i++) {
            y[i / 4u][i % 4u] = dequantize_linear(x[i / 4u][i % 4u], zero_point, scale);
        }
    }
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
}

fn product_takes_y(y: u32) -> bool {
    let ey = (y >> 23u) & 255u;
    return ey != 255u;
}

fn dequantize_linear_quick_4(x: vec4u, zero_point: i32, scale: u32) -> vec4u {
    return product_4(i32_to_f32_4(sign_extend_int32_4(x) - vec4i(zero_point)), scale);
}

// Zero times a finite number is zero, whatever the exponents.
fn product_4(x: vec4u, y: u32) -> vec4u {
    let ax = x & vec4u(0x7fffffffu);
    return select(bitcast<vec4u>(bitcast<vec4f>(x) * vec4f(bitcast<f32>(y))), (x ^ vec4u(y)) & vec4u(0x80000000u), ax == vec4u(0u));
}

fn product_holds_4(x: vec4u, y: u32) -> vec4<bool> {
    let ey = (y >> 23u) & 255u;
    let ax = x & vec4u(0x7fffffffu);
    let ex = ax >> vec4u(23u);
    return select((((min(ex, vec4u(ey)) != vec4u(0u)) & (ex != vec4u(255u))) & ((ex + vec4u(ey)) > vec4u(128u))) & ((ex + vec4u(ey)) < vec4u(0x17cu)), vec4<bool>(true), ax == vec4u(0u));
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

fn dequantize_linear(x: u32, zero_point: i32, scale: u32) -> u32 {
    return mul_f32(i32_to_f32(sign_extend_int32(x) - zero_point), scale);
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
