var<workgroup> scratch: array<u32, 5000>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) index: u32) {
  scratch[index] = index;
}
