// What f32 operations of this device give: a and b, and their sum, difference, product and quotient, as words.
// The mode `exact` relies on + - * of normal numbers with a normal result rounding to nearest even, and on / within 2.5 ULP.
//
// Dispatch: 329 workgroups of 64; an invocation has a pair.

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> sum: array<u32>;
@group(0) @binding(3) var<storage, read_write> difference: array<u32>;
@group(0) @binding(4) var<storage, read_write> product: array<u32>;
@group(0) @binding(5) var<storage, read_write> quotient: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= 21029u) { return; }
    sum[id.x] = bitcast<u32>(bitcast<f32>(a[id.x]) + bitcast<f32>(b[id.x]));
    difference[id.x] = bitcast<u32>(bitcast<f32>(a[id.x]) - bitcast<f32>(b[id.x]));
    product[id.x] = bitcast<u32>(bitcast<f32>(a[id.x]) * bitcast<f32>(b[id.x]));
    quotient[id.x] = bitcast<u32>(bitcast<f32>(a[id.x]) / bitcast<f32>(b[id.x]));
}
