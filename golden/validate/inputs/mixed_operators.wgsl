fn mix(a: u32, b: u32) -> u32 {
	/* é */ return a << b + 1u;
}

fn merge(a: u32, b: u32) -> u32 {
  return a & b | 3u;
}
