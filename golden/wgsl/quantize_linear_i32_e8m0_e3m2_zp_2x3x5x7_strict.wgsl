// QuantizeLinear: y = saturate_float6e3m2(float32(x) / float32(y_scale) + float32(y_zero_point))
//
//   x             int32       [2, 3, 5, 7]  1 a word
//   y_scale       float8e8m0  []            one for all elements
//   y_zero_point  float6e3m2  []            one for all elements
//   y             float6e3m2  [2, 3, 5, 7]  16 in 3 words, first in the lowest bits
//
// Numerics: strict, bit-exact on every conforming WebGPU implementation.
// Dispatch: 1 workgroup of 128; an invocation computes 16 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> y_scale: array<u32>;
@group(0) @binding(2) var<storage, read> y_zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.x;
    if (unit >= 14u) { return; }
    let first = 16u * unit;
    let end = min(first + 16u, 210u);
    let scale = e8m0_to_f32(y_scale[0u] & 255u);
    let y_zero_point_bit = 0u;
    let y_zero_point_at = y_zero_point_bit / 32u;
    let zero_point = finite_to_f32_float6e3m2(((y_zero_point[y_zero_point_at] >> (y_zero_point_bit % 32u)) | (y_zero_point[y_zero_point_at + u32((y_zero_point_bit % 32u) > 26u)] << ((32u - y_zero_point_bit % 32u) & 31u))) & 63u);
    for (var number = 0u; number < ((6u * (end - first) + 31u) / 32u); number++) {
        let bit = 32u * number;
        var word = 0u;
        for (var i = first + bit / 6u; i < min(first + (bit + 37u) / 6u, end); i++) {
            let code = quantize_linear(x[i], scale, zero_point);
            let offset = 6u * (i % 16u);
            word |= select(code >> ((bit - offset) & 31u), code << ((offset - bit) & 31u), offset >= bit);
        }
        y[first / 16u * 3u + number] = word;
    }
}

// A power of two, 2^(code - 127); the least is subnormal.
fn e8m0_to_f32(code: u32) -> u32 {
    if (code == 255u) { return 0x7fc00000u; }
    return select(code << 23u, 0x400000u, code == 0u);
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

fn quantize_linear(x: u32, scale: u32, zero_point: u32) -> u32 {
    return saturate_float_float6e3m2(add_f32(div_f32(i32_to_f32(sign_extend_int32(x)), scale), zero_point));
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

// significand * 2^(exponent - 152), rounded to float32; the significand is in [2^25, 2^26), bit 0 tells that something was lost below it.
fn round_pack(sign: u32, exponent: i32, significand: u32) -> u32 {
    let shift = u32(2 + clamp(1 - exponent, 0, 25));
    let bits = (u32(clamp(exponent, 1, 255) - 1) << 23u) + round_shift(significand, shift);
    return sign | min(bits, 0x7f800000u);
}

// A format without NaN has its greatest number in place of it.
fn saturate_float_float6e3m2(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 31u; }
    return ((x >> 31u) << 5u) | min(round_to_float6e3m2(magnitude), 31u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float6e3m2(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 125u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x3e000000u, normal);
    return round_shift(value, select(min(146u - exponent, 26u), 21u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
