// DequantizeLinear: y = float16(float32(x) * float32(x_scale))
//
//   x        float6e2m3  [2, 3, 5, 7]  16 in 3 words, first in the lowest bits
//   x_scale  bfloat16    []            one for all elements
//   y        float16     [2, 3, 5, 7]  2 in a word, first in the lowest bits
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: 1 workgroup of 128; an invocation computes 16 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 14u) { return; }
    let first = 16u * unit;
    let end = min(first + 16u, 210u);
    let scale = bf16_to_f32(x_scale[0u] & 0xffffu);
    let is_plain = product_takes_y(scale);
    var held = true;
    for (var start = first; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let x_bit = 6u * (i % 16u);
            let x_at = i / 16u * 3u + x_bit / 32u;
            let x_bit_2 = 6u * (i % 16u);
            let x_at_2 = i / 16u * 3u + x_bit_2 / 32u;
            held = held && (is_plain && product_holds(finite_to_f32_float6e2m3(((x[x_at_2] >> (x_bit_2 % 32u)) | (x[x_at_2 + u32((x_bit_2 % 32u) > 26u)] << ((32u - x_bit_2 % 32u) & 31u))) & 63u), scale));
            word |= dequantize_linear_quick(((x[x_at] >> (x_bit % 32u)) | (x[x_at + u32((x_bit % 32u) > 26u)] << ((32u - x_bit % 32u) & 31u))) & 63u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
    let again = select(first, end, held);
    for (var start = again; start < end; start += 2u) {
        var redone = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let x_bit = 6u * (i % 16u);
            let x_at = i / 16u * 3u + x_bit / 32u;
            redone |= dequantize_linear(((x[x_at] >> (x_bit % 32u)) | (x[x_at + u32((x_bit % 32u) > 26u)] << ((32u - x_bit % 32u) & 31u))) & 63u, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = redone;
    }
}

fn bf16_to_f32(x: u32) -> u32 {
    let bits = x << 16u;
    return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn product_takes_y(y: u32) -> bool {
    let ey = (y >> 23u) & 255u;
    return ey != 255u;
}

fn product_holds(x: u32, y: u32) -> bool {
    let ey = (y >> 23u) & 255u;
    let ax = x & 0x7fffffffu;
    if (ax == 0u) { return true; }
    let ex = ax >> 23u;
    return (((min(ex, ey) != 0u) && (ex != 255u)) && ((ex + ey) > 128u)) && ((ex + ey) < 0x17cu);
}

fn dequantize_linear_quick(x: u32, scale: u32) -> u32 {
    return convert_to_f16(product(finite_to_f32_float6e2m3(x), scale));
}

// Zero times a finite number is zero, whatever the exponents.
fn product(x: u32, y: u32) -> u32 {
    let ax = x & 0x7fffffffu;
    if (ax == 0u) { return (x ^ y) & 0x80000000u; }
    return bitcast<u32>(bitcast<f32>(x) * bitcast<f32>(y));
}

// Normal numbers are rounded by integers; below them a sum with 0.5, whose last bit is float16's least, rounds natively.
fn convert_to_f16(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    let normal = min((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u, 0x7c00u);
    let subnormal = bitcast<u32>(bitcast<f32>(select(magnitude, 0u, magnitude < 0x800000u)) + 0.5f) - 0x3f000000u;
    let code = select(normal, subnormal, magnitude < 0x38800000u);
    return select(((x >> 16u) & 0x8000u) | code, 0x7e00u, magnitude > 0x7f800000u);
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(finite_to_f32_float6e2m3(x), scale));
}

fn finite_to_f32_float6e2m3(code: u32) -> u32 {
    return expand_float6e2m3(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float6e2m3(code: u32) -> u32 {
    let magnitude = code & 31u;
    let normal = (magnitude << 20u) + 0x3f000000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x3e000000u)) & 0x7fffffffu;
    return ((code >> 5u) << 31u) | select(normal, subnormal, (magnitude >> 3u) == 0u);
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
