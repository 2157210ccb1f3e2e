@compute @workgroup_size(64)
fn small() {
}

@workgroup_size(1, 1, 128) @compute
fn deep() {
}
