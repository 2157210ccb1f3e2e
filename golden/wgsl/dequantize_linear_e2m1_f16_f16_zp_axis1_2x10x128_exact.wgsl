// DequantizeLinear: y = float16((float32(x) - float32(x_zero_point)) * float32(x_scale))
//
//   x             float4e2m1  [2, 10, 128]  8 in a word, first in the lowest bits
//   x_scale       float16     [10]          one for each index along axis 1
//   x_zero_point  float4e2m1  [10]          one for each index along axis 1
//   y             float16     [2, 10, 128]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 40u) { return; }
    let base = unit / 2u * 32u + unit % 2u;
    let group = 4u * base / 128u % 10u;
    let zero_point = finite_to_f32_float4e2m1((x_zero_point[group / 8u] >> (4u * (group % 8u))) & 15u);
    let scale = ieee_to_f32_float16((x_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu);
    let is_plain = product_takes_y(scale);
    var failed = 0u;
    for (var p = 0u; p < 16u; p++) {
        let piece = base + 2u * p;
        let y_codes = dequantize_linear_quick_4((vec4u(x[piece / 2u]) >> (vec4u(16u * (piece % 2u)) + vec4u(0u, 4u, 8u, 12u))) & vec4u(15u), zero_point, scale);
        failed |= u32(!all(product_holds_4(sub_f32_4(finite_to_f32_float4e2m1_4((vec4u(x[piece / 2u]) >> (vec4u(16u * (piece % 2u)) + vec4u(0u, 4u, 8u, 12u))) & vec4u(15u)), zero_point), scale))) << p;
        y[2u * piece] = y_codes.x | (y_codes.y << 16u);
        y[2u * piece + 1u] = y_codes.z | (y_codes.w << 16u);
    }
    let redo = select(0xffffffffu, failed, is_plain);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (base + 2u * p);
        let to_element = select(from_element, from_element + 4u, ((redo >> p) & 1u) == 1u);
        for (var start = from_element; start < to_element; start += 2u) {
            var word = 0u;
            for (var i = start; i < min(start + 2u, to_element); i++) {
                word |= dequantize_linear((x[i / 8u] >> (4u * (i % 8u))) & 15u, zero_point, scale) << (16u * (i % 2u));
            }
            y[start / 2u] = word;
        }
    }
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

fn product_takes_y(y: u32) -> bool {
    let ey = (y >> 23u) & 255u;
    return ey != 255u;
}

fn dequantize_linear_quick_4(x: vec4u, zero_point: u32, scale: u32) -> vec4u {
    return convert_to_f16_4(product_4(sub_f32_4(finite_to_f32_float4e2m1_4(x), zero_point), scale));
}

// Zero times a finite number is zero, whatever the exponents.
fn product_4(x: vec4u, y: u32) -> vec4u {
    let ax = x & vec4u(0x7fffffffu);
    return select(bitcast<vec4u>(bitcast<vec4f>(x) * vec4f(bitcast<f32>(y))), (x ^ vec4u(y)) & vec4u(0x80000000u), ax == vec4u(0u));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16_4(x: vec4u) -> vec4u {
    let magnitude = x & vec4u(0x7fffffffu);
    let normal = min((magnitude - vec4u(0x38000000u) + vec4u(0xfffu) + ((magnitude >> vec4u(13u)) & vec4u(1u))) >> vec4u(13u), vec4u(0x7c00u));
    let subnormal = bitcast<vec4u>(bitcast<vec4f>(select(magnitude, vec4u(0u), magnitude < vec4u(0x800000u))) + vec4f(0.5f)) - vec4u(0x3f000000u);
    let code = select(normal, subnormal, magnitude < vec4u(0x38800000u));
    return select(((x >> vec4u(16u)) & vec4u(0x8000u)) | code, vec4u(0x7e00u), magnitude > vec4u(0x7f800000u));
}

fn product_holds_4(x: vec4u, y: u32) -> vec4<bool> {
    let ey = (y >> 23u) & 255u;
    let ax = x & vec4u(0x7fffffffu);
    let ex = ax >> vec4u(23u);
    return select((((min(ex, vec4u(ey)) != vec4u(0u)) & (ex != vec4u(255u))) & ((ex + vec4u(ey)) > vec4u(128u))) & ((ex + vec4u(ey)) < vec4u(0x17cu)), vec4<bool>(true), ax == vec4u(0u));
}

fn sub_f32_4(x: vec4u, y: u32) -> vec4u {
    return add_f32_4(x, y ^ 0x80000000u);
}

// x + y: three guard bits below the significand of the greater operand, the last of them sticky.
fn add_f32_4(x: vec4u, y: u32) -> vec4u {
    let swap = vec4u(y & 0x7fffffffu) > (x & vec4u(0x7fffffffu));
    let a = select(x, vec4u(y), swap);
    let b = select(vec4u(y), x, swap);
    let aa = a & vec4u(0x7fffffffu);
    let ab = b & vec4u(0x7fffffffu);
    let opposite = ((a ^ b) >> vec4u(31u)) != vec4u(0u);
    let ea = max(vec4i(aa >> vec4u(23u)), vec4i(1));
    let eb = max(vec4i(ab >> vec4u(23u)), vec4i(1));
    let ma = ((aa & vec4u(0x7fffffu)) | (vec4u(aa >= vec4u(0x800000u)) << vec4u(23u))) << vec4u(3u);
    let mb = ((ab & vec4u(0x7fffffu)) | (vec4u(ab >= vec4u(0x800000u)) << vec4u(23u))) << vec4u(3u);
    let shift = vec4u(min(ea - eb, vec4i(27)));
    let aligned = (mb >> shift) | vec4u((mb & ((vec4u(1u) << shift) - vec4u(1u))) != vec4u(0u));
    let sum = select(ma + aligned, ma - aligned, opposite);
    let zeros = countLeadingZeros(sum);
    let down = max(vec4u(6u), zeros) - zeros;
    let up = max(vec4u(6u), zeros) - vec4u(6u);
    let significand = ((sum >> down) | vec4u((sum & ((vec4u(1u) << down) - vec4u(1u))) != vec4u(0u))) << up;
    return select(select(select(round_pack_4_vvv(a & vec4u(0x80000000u), ea + vec4i(5) - vec4i(zeros), significand), select(a & vec4u(0x80000000u), vec4u(0u), opposite), sum == vec4u(0u)), a, aa == vec4u(0x7f800000u)), vec4u(0x7fc00000u), (aa > vec4u(0x7f800000u)) | ((ab == vec4u(0x7f800000u)) & opposite));
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

fn finite_to_f32_float4e2m1_4(code: vec4u) -> vec4u {
    return expand_float4e2m1_4(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float4e2m1_4(code: vec4u) -> vec4u {
    let magnitude = code & vec4u(7u);
    let normal = (magnitude << vec4u(22u)) + vec4u(0x3f000000u);
    let subnormal = bitcast<vec4u>(vec4f(vec4i(magnitude)) * vec4f(bitcast<f32>(0x3f000000u))) & vec4u(0x7fffffffu);
    return ((code >> vec4u(3u)) << vec4u(31u)) | select(normal, subnormal, (magnitude >> vec4u(1u)) == vec4u(0u));
}

fn dequantize_linear(x: u32, zero_point: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(sub_f32(finite_to_f32_float4e2m1(x), zero_point), scale));
}

fn finite_to_f32_float4e2m1(code: u32) -> u32 {
    return expand_float4e2m1(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float4e2m1(code: u32) -> u32 {
    let magnitude = code & 7u;
    let normal = (magnitude << 22u) + 0x3f000000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x3f000000u)) & 0x7fffffffu;
    return ((code >> 3u) << 31u) | select(normal, subnormal, (magnitude >> 1u) == 0u);
}

fn sub_f32(x: u32, y: u32) -> u32 {
    return add_f32(x, y ^ 0x80000000u);
}

// x + y: three guard bits below the significand of the greater operand, the last of them sticky.
fn add_f32(x: u32, y: u32) -> u32 {
    let swap = (y & 0x7fffffffu) > (x & 0x7fffffffu);
    let a = select(x, y, swap);
    let b = select(y, x, swap);
    let aa = a & 0x7fffffffu;
    let ab = b & 0x7fffffffu;
    let opposite = ((a ^ b) >> 31u) != 0u;
    if ((aa > 0x7f800000u) || ((ab == 0x7f800000u) && opposite)) { return 0x7fc00000u; }
    if (aa == 0x7f800000u) { return a; }
    let ea = max(i32(aa >> 23u), 1);
    let eb = max(i32(ab >> 23u), 1);
    let ma = ((aa & 0x7fffffu) | (u32(aa >= 0x800000u) << 23u)) << 3u;
    let mb = ((ab & 0x7fffffu) | (u32(ab >= 0x800000u) << 23u)) << 3u;
    let shift = u32(min(ea - eb, 27));
    let aligned = (mb >> shift) | u32((mb & ((1u << shift) - 1u)) != 0u);
    let sum = select(ma + aligned, ma - aligned, opposite);
    if (sum == 0u) { return select(a & 0x80000000u, 0u, opposite); }
    let zeros = countLeadingZeros(sum);
    let down = max(6u, zeros) - zeros;
    let up = max(6u, zeros) - 6u;
    let significand = ((sum >> down) | u32((sum & ((1u << down) - 1u)) != 0u)) << up;
    return round_pack(a & 0x80000000u, ea + 5 - i32(zeros), significand);
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
