enable f16;

@group(0) @binding(0) var<storage, read_write> halves: array<f16>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  halves[id.x] = halves[id.x] + 1h;
}
