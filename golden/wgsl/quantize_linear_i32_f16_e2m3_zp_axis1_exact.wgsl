// QuantizeLinear: y = saturate_float6e2m3(float32(float16(x) / y_scale) + float32(y_zero_point))
//
//   x             int32       1 a word
//   y_scale       float16     one for each index along axis 1
//   y_zero_point  float6e2m3  one for each index along axis 1
//   y             float6e2m3  16 in 3 words, first in the lowest bits
//
// Numerics: exact, bit-exact on every conforming WebGPU implementation.
// Dispatch: any shape, from the uniform parameters; an invocation computes 16 elements.

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
    let first = 16u * unit;
    let end = min(first + 16u, params.n);
    for (var number = 0u; number < ((6u * (end - first) + 31u) / 32u); number++) {
        let bit = 32u * number;
        var word = 0u;
        for (var i = first + bit / 6u; i < min(first + (bit + 37u) / 6u, end); i++) {
            let group = (i + params.axis_start) / params.inner % params.axis;
            let scale = (y_scale[group / 2u] >> (16u * (group % 2u))) & 0xffffu;
            let y_zero_point_bit = 6u * (group % 16u);
            let y_zero_point_at = group / 16u * 3u + y_zero_point_bit / 32u;
            let zero_point = finite_to_f32_float6e2m3(((y_zero_point[y_zero_point_at] >> (y_zero_point_bit % 32u)) | (y_zero_point[y_zero_point_at + u32((y_zero_point_bit % 32u) > 26u)] << ((32u - y_zero_point_bit % 32u) & 31u))) & 63u);
            let code = quantize_linear(x[i], scale, zero_point);
            let offset = 6u * (i % 16u);
            word |= select(code >> ((bit - offset) & 31u), code << ((offset - bit) & 31u), offset >= bit);
        }
        y[first / 16u * 3u + number] = word;
    }
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

fn quantize_linear(x: u32, scale: u32, zero_point: u32) -> u32 {
    return saturate_float_float6e2m3(add_f32(ieee_to_f32_float16(div_f16(i32_to_narrow_float16(sign_extend_int32(x)), scale)), zero_point));
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
fn saturate_float_float6e2m3(x: u32) -> u32 {
    let magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 31u; }
    return ((x >> 31u) << 5u) | min(round_to_float6e2m3(magnitude), 31u);
}

// The code of a float32's magnitude, half to even, subnormals kept, and counted on beyond the format's greatest.
fn round_to_float6e2m3(magnitude: u32) -> u32 {
    let exponent = magnitude >> 23u;
    let normal = exponent >= 127u;
    let value = select((magnitude & 0x7fffffu) | 0x800000u, magnitude - 0x3f000000u, normal);
    return round_shift(value, select(min(147u - exponent, 26u), 20u, normal));
}

// value / 2^shift, half to even; shift in 1..31, and value + 2^(shift - 1) is below 2^32.
fn round_shift(value: u32, shift: u32) -> u32 {
    return (value + ((1u << (shift - 1u)) - 1u) + ((value >> shift) & 1u)) >> shift;
}
