@group(0) @binding(0) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  words[id.x] = twice(3u);
}
