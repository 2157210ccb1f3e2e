// @compute fn commented_out() {}
override LANES: u32; /* has /* no */ value */

@compute @workgroup_size(64)
fn main() {
  return;
  var lanes = LANES;
}
