@compute @workgroup_size(512)
fn main() {
}
