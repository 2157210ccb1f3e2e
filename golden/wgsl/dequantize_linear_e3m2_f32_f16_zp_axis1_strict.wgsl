// DequantizeLinear: y = float16((float32(x) - float32(x_zero_point)) * x_scale)
//
//   x             float6e3m2  16 in 3 words, first in the lowest bits
//   x_scale       float32     one for each index along axis 1
//   x_zero_point  float6e3m2  one for each index along axis 1
//   y             float16     2 in a word, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 16 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read> x_zero_point: array<u32>;
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
    let first = 16u * unit;
    let end = min(first + 16u, params.n);
    for (var start = first; start < end; start += 2u) {
        var word = 0u;
        for (var i = start; i < min(start + 2u, end); i++) {
            let group = (i + params.axis_start) / params.inner % params.axis;
            let x_zero_point_bit = 6u * (group % 16u);
            let x_zero_point_at = group / 16u * 3u + x_zero_point_bit / 32u;
            let zero_point = finite_to_f32_float6e3m2(((x_zero_point[x_zero_point_at] >> (x_zero_point_bit % 32u)) | (x_zero_point[x_zero_point_at + u32((x_zero_point_bit % 32u) > 26u)] << ((32u - x_zero_point_bit % 32u) & 31u))) & 63u);
            let scale = x_scale[group];
            let x_bit = 6u * (i % 16u);
            let x_at = i / 16u * 3u + x_bit / 32u;
            word |= dequantize_linear(((x[x_at] >> (x_bit % 32u)) | (x[x_at + u32((x_bit % 32u) > 26u)] << ((32u - x_bit % 32u) & 31u))) & 63u, zero_point, scale) << (16u * (i % 2u));
        }
        y[start / 2u] = word;
    }
}

fn dequantize_linear(x: u32, zero_point: u32, scale: u32) -> u32 {
    return convert_ieee_float16(mul_f32(sub_f32(finite_to_f32_float6e3m2(x), zero_point), scale));
}

fn finite_to_f32_float6e3m2(code: u32) -> u32 {
    return expand_float6e3m2(code);
}

// A finite number of a format whose numbers are all normal, or zero, in float32.
fn expand_float6e3m2(code: u32) -> u32 {
    let magnitude = code & 31u;
    let normal = (magnitude << 21u) + 0x3e000000u;
    let subnormal = bitcast<u32>(f32(i32(magnitude)) * bitcast<f32>(0x3d800000u)) & 0x7fffffffu;
    return ((code >> 5u) << 31u) | select(normal, subnormal, (magnitude >> 2u) == 0u);
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
