// DequantizeLinear: y = float32(x) * x_scale
//
//   x        int8     4 in a word, first in the lowest bits
//   x_scale  float32  one for each index along axis 1
//   y        float32  1 a word
//
// Numerics: exact, bit-exact where f32 products of normal numbers round to nearest even, as on every known device.
// Dispatch: any shape, from the uniform parameters; an invocation computes 64 elements.

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> x_scale: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

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
    let part = min(params.axis & (0u - params.axis), 4u);
    let rows = 64u / part;
    let walks = ((params.inner == 1u) && ((params.n % params.axis) == 0u)) && ((params.n / params.axis % rows) == 0u);
    let columns = select(1u, params.axis / part, walks);
    let base = unit / columns * (16u * columns) + unit % columns;
    var failed = 0u;
    let row = (4u * base + params.axis_start) / params.inner;
    let rest = (4u * base + params.axis_start) % params.inner;
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
        let scales = vec4u(x_scale[group.x], x_scale[group.y], x_scale[group.z], x_scale[group.w]);
        let is_plain = all(scale_product_takes_s_4(scales));
        failed = select(0xffffffffu, failed, is_plain);
        span = select(max((params.inner - (rest + ahead.x - passed.x * params.inner)) / 4u, 1u), 16u, walks);
        for (var p = from_piece; p < min(from_piece + span, 16u); p++) {
            let piece = base + columns * p;
            let x_word = x[piece];
            let y_codes = dequantize_linear_quick_4_vv(unpack4xU8(x_word), scales);
            y[4u * piece] = y_codes.x;
            y[4u * piece + 1u] = y_codes.y;
            y[4u * piece + 2u] = y_codes.z;
            y[4u * piece + 3u] = y_codes.w;
        }
    }
    let redo = select(0xffffffffu, failed, whole);
    for (var p = 0u; p < select(16u, 0u, redo == 0u); p++) {
        let from_element = 4u * (base + columns * p);
        let to_element = select(from_element, min(from_element + 4u, params.n), ((redo >> p) & 1u) == 1u);
        for (var i = from_element; i < to_element; i++) {
            let group = (i + params.axis_start) / params.inner % params.axis;
            let scale = x_scale[group];
            y[i] = dequantize_linear((x[i / 4u] >> (8u * (i % 4u))) & 255u, scale);
        }
    }
}

fn scale_product_takes_s_4(s: vec4u) -> vec4<bool> {
    let es = s & vec4u(0x7f800000u);
    return (es > vec4u(0x800000u)) & (es < vec4u(0x73000000u));
}

fn dequantize_linear_quick_4_vv(x: vec4u, scale: vec4u) -> vec4u {
    return scale_product_4_vv(sign_extend_int8_4(x), scale);
}

fn sign_extend_int8_4(code: vec4u) -> vec4i {
    return vec4i(code ^ vec4u(128u)) + vec4i(-128);
}

// The scale alone decides: with its exponent in 2..229 a product with an integer of 24 bits is zero or a normal number.
fn scale_product_4_vv(v: vec4i, s: vec4u) -> vec4u {
    return select(bitcast<vec4u>(vec4f(v) * bitcast<vec4f>(s)), s & vec4u(0x80000000u), v == vec4i(0));
}

fn dequantize_linear(x: u32, scale: u32) -> u32 {
    return mul_small(sign_extend_int8(x), scale);
}

fn sign_extend_int8(code: u32) -> i32 {
    return i32(code ^ 128u) + -128;
}

// An integer of 9 bits times a significand of 24 fits a word, so a subnormal factor needs no other treatment than a normal one.
fn mul_small(v: i32, s: u32) -> u32 {
    let magnitude = s & 0x7fffffffu;
    let sign = (u32(v) ^ s) & 0x80000000u;
    if ((magnitude > 0x7f800000u) || ((magnitude == 0x7f800000u) && (v == 0))) { return 0x7fc00000u; }
    if (magnitude == 0x7f800000u) { return sign | 0x7f800000u; }
    let significand = (magnitude & 0x7fffffu) | (u32(magnitude > 0x7fffffu) << 23u);
    let product = u32(abs(v)) * significand;
    if (product == 0u) { return sign; }
    let zeros = countLeadingZeros(product);
    let n = product << (zeros & 31u);
    return round_pack(sign, i32(max(magnitude >> 23u, 1u)) + 8 - i32(zeros), (n >> 6u) | u32((n & 63u) != 0u));
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
