@group(0) @binding(0) var<storage, read> words: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  words[id.x] = 3u;
}
