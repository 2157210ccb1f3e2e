// QuantizeLinear: y = saturate_uint8(round_even(x / y_scale) + y_zero_point)
//
//   x             float32  1 a word
//   y_scale       float32  one for each index along axis 1
//   y_zero_point  uint8    one for each index along axis 1
//   y             uint8    4 in a word, first in the lowest bits
//
// Numerics: fast, native arithmetic, with the error that the sidecar states.
// Dispatch: any shape, from the uniform parameters; an invocation computes 4 elements.

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
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let unit = id.y * (params.groups_x * 64u) + id.x;
    if (unit >= params.units) { return; }
    let first = 4u * unit;
    let end = min(first + 4u, params.n);
    var word = 0u;
    for (var i = first; i < end; i++) {
        let group = i / params.inner % params.axis;
        let scale = y_scale[group];
        let zero_point = zero_extend_uint8((y_zero_point[group / 4u] >> (8u * (group % 4u))) & 255u);
        word |= quantize_linear(x[i], scale, zero_point) << (8u * (i % 4u));
    }
    y[unit] = word;
}

fn quantize_linear(x: u32, scale: u32, zero_point: i32) -> u32 {
    return saturate_unsigned_uint8(rint_quotient(x, scale) + zero_point);
}

fn saturate_unsigned_uint8(v: i32) -> u32 {
    return u32(clamp(v, 0, 255));
}

// Right unless the quotient is near a tie: 2^-20 of it is more than 2.5 ULP and the rounding of the sum.
fn rint_quotient(x: u32, s: u32) -> i32 {
    let q = bitcast<f32>(x) / bitcast<f32>(s);
    let r = round(q);
    return i32(r);
}

fn zero_extend_uint8(code: u32) -> i32 {
    return i32(code);
}
