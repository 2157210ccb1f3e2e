//! DequantizeLinear: the host's side of the kernel `blocked`.
//!
//! ```text
//! x             input   int4
//! x_scale       input   float16
//! x_zero_point  input   int4
//! y             output  float16
//! ```
//!
//! It plans for a device, buffers and a queue that are yours, and needs nothing but `core`: the pipelines of `PASSES` from `WGSL`, a
//! layout with their bindings in the group `GROUP`, and then, for tensors of given shapes:
//!
//! ```text
//! let plan = plan(&Shapes { x: &[...], x_scale: &[...], x_zero_point: &[...] }, limits.max_storage_buffer_binding_size)?;
//! for index in 0..plan.runs {
//!     let run = plan.run(index)?; // bind run.sizes[i] bytes of tensor i at run.offsets[i], and dispatch run.dispatches[pass]
//! }
//! ```
#![allow(dead_code)] // no program uses all of it

pub const NAME: &str = "blocked";
pub const WGSL: &str = include_str!("blocked.wgsl");
pub const GROUP: u32 = 0;

/// How many tensors there are; arrays of numbers are indexed by those in `tensor`.
pub const TENSORS: usize = 4;

pub mod tensor {
    pub const X: usize = 0;
    pub const X_SCALE: usize = 1;
    pub const X_ZERO_POINT: usize = 2;
    pub const Y: usize = 3;
}

/// Bits of an element, from the lowest bits of u32 words on.
pub const BITS: [u32; TENSORS] = [4, 16, 4, 16];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingType {
    ReadOnlyStorage,
    Storage,
    Uniform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Tensor(usize),
    Params,
}

#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub binding: u32,
    pub resource: Resource,
    pub kind: BindingType,
}

#[derive(Clone, Copy, Debug)]
pub struct Pass {
    pub entry_point: &'static str,
    pub bindings: &'static [Binding],
}

/// The dispatches, one after the other.
pub const PASSES: [Pass; 1] = [
    Pass {
        entry_point: "main",
        bindings: &[
            Binding { binding: 0, resource: Resource::Tensor(tensor::X), kind: BindingType::ReadOnlyStorage },
            Binding { binding: 1, resource: Resource::Tensor(tensor::X_SCALE), kind: BindingType::ReadOnlyStorage },
            Binding { binding: 2, resource: Resource::Tensor(tensor::X_ZERO_POINT), kind: BindingType::ReadOnlyStorage },
            Binding { binding: 3, resource: Resource::Tensor(tensor::Y), kind: BindingType::Storage },
            Binding { binding: 4, resource: Resource::Params, kind: BindingType::Uniform },
        ],
    },
];

/// The contents of the uniform buffer `params`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub n: u32,
    pub units: u32,
    pub groups_x: u32,
    pub axis: u32,
    pub inner: u32,
    pub blocks: u32,
    pub axis_start: u32,
}

const _: () = assert!(core::mem::size_of::<Params>() == 28);

impl Params {
    pub const fn to_bytes(self) -> [u8; 28] {
        let words = [self.n, self.units, self.groups_x, self.axis, self.inner, self.blocks, self.axis_start];
        let mut bytes = [0; 28];
        let mut i = 0;
        while i < bytes.len() {
            bytes[i] = words[i / 4].to_le_bytes()[i % 4];
            i += 1;
        }
        bytes
    }
}

/// The tensors whose shapes all else follows from.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    pub x: &'a [u64],
    pub x_scale: &'a [u64],
    pub x_zero_point: &'a [u64],
}

/// What follows from the shapes, and what all else follows from.
#[derive(Clone, Copy, Debug)]
struct Extents {
    outer: i64,
    axis: i64,
    count: i64,
    start: i64,
}

/// Counts of elements and sizes in bytes of the tensors, and in how many runs they are computed: none where there is nothing to compute.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub counts: [u64; TENSORS],
    pub sizes: [u64; TENSORS],
    pub runs: u64,
    extents: Extents,
    /// Elements of one run.
    length: i64,
}

/// One part of the tensors: where it begins in each and how much of it is bound, in bytes; uniforms, and the workgroups of each pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub offsets: [u64; TENSORS],
    pub sizes: [u64; TENSORS],
    pub params: Params,
    pub dispatches: [[u32; 3]; 1],
}

/// Plans the computation of tensors of these shapes, in several runs where one is larger than the device binds, which its limit
/// `max_storage_buffer_binding_size` says.
pub const fn plan(shapes: &Shapes, max_binding_size: u64) -> Result<Plan, &'static str> {
    let extents = match read_shapes(shapes) {
        Ok(extents) => extents,
        Err(error) => return Err(error),
    };
    let (counts, sizes) = measure(extents);
    let mut plan = Plan { counts, sizes, runs: 0, extents, length: 0 };
    if sizes[tensor::Y] == 0 {
        return Ok(plan);
    }
    let mut i = 0;
    plan.extents.count = counts[tensor::X] as i64;
    plan.length = plan.extents.count;
    let mut fits = plan.length <= 4294967168;
    while i < TENSORS {
        fits = fits && sizes[i] <= max_binding_size;
        i += 1;
    }
    if !fits {
        plan.length = run_length(plan.extents, if max_binding_size < 1 << 62 { max_binding_size as i64 } else { 1 << 62 });
        if plan.length == 0 {
            return Err("no part of the tensors is small enough for a binding");
        }
    }
    plan.runs = ceil_div(plan.extents.count, plan.length) as u64;
    i = 0;
    let first = match plan.run(0) {
        Ok(run) => run,
        Err(error) => return Err(error),
    };
    while i < TENSORS {
        if first.sizes[i] == 0 {
            return Err("a tensor has no elements");
        }
        if first.sizes[i] > max_binding_size {
            return Err("a tensor is too large for a binding");
        }
        i += 1;
    }
    Ok(plan)
}

impl Plan {
    /// Says what one run binds and dispatches.
    pub const fn run(&self, index: u64) -> Result<Run, &'static str> {
        if index >= self.runs {
            return Err("there is no such run");
        }
        let mut extents = self.extents;
        extents.start = index as i64 * self.length;
        extents.count = least(self.length, extents.count - extents.start);
        let (offsets, sizes) = bind(extents);
        dispatch(extents, offsets, sizes)
    }
}

const fn read_shapes(shapes: &Shapes) -> Result<Extents, &'static str> {
    if !is_shape(shapes.x) { return Err("x is too large"); }
    if !is_shape(shapes.x_scale) { return Err("x_scale is too large"); }
    if !is_shape(shapes.x_zero_point) { return Err("x_zero_point is too large"); }
    if !(rank(shapes.x) >= 1) {
        return Err("needs rank(x) >= 1");
    }
    let outer = product(shapes.x, 0, rank(shapes.x) - 1);
    let axis = dim(shapes.x, -1);
    let blocks = ceil_div(axis, 32);
    let groups = outer * blocks;
    if !(product(shapes.x_scale, 0, rank(shapes.x_scale)) == groups) {
        return Err("needs numel(x_scale) = groups");
    }
    if !(same_dims_except(shapes.x_scale, shapes.x, -1)) {
        return Err("needs x_scale.shape = x.shape except dimension -1");
    }
    if !(dim(shapes.x_scale, -1) == blocks) {
        return Err("needs x_scale.shape[-1] = blocks");
    }
    if !(product(shapes.x_zero_point, 0, rank(shapes.x_zero_point)) == groups) {
        return Err("needs numel(x_zero_point) = groups");
    }
    if !(same_dims_except(shapes.x_zero_point, shapes.x, -1)) {
        return Err("needs x_zero_point.shape = x.shape except dimension -1");
    }
    if !(dim(shapes.x_zero_point, -1) == blocks) {
        return Err("needs x_zero_point.shape[-1] = blocks");
    }
    Ok(Extents { outer, axis, count: 0, start: 0 })
}

/// Returns counts of elements and sizes in bytes.
const fn measure(extents: Extents) -> ([u64; TENSORS], [u64; TENSORS]) {
    let count = extents.outer * extents.axis;
    let blocks = ceil_div(extents.axis, 32);
    let groups = extents.outer * blocks;
    let counts = [count as u64, groups as u64, groups as u64, count as u64];
    let sizes = [(4 * ceil_div(count, 8)) as u64, (4 * ceil_div(groups, 2)) as u64, (4 * ceil_div(groups, 8)) as u64, (4 * ceil_div(count, 2)) as u64];
    (counts, sizes)
}

const fn dispatch(extents: Extents, offsets: [u64; TENSORS], sizes: [u64; TENSORS]) -> Result<Run, &'static str> {
    if !(extents.count <= 4294967168) {
        return Err("needs count <= 4294967168");
    }
    let invocations = ceil_div(extents.count, 64);
    let workgroups = ceil_div(invocations, 128);
    let workgroups_x = least(workgroups, 65535);
    if !(ceil_div(workgroups, greatest(workgroups_x, 1)) <= 65535) {
        return Err("needs ceil(workgroups / max(workgroups_x, 1)) <= 65535");
    }
    let blocks = ceil_div(extents.axis, 32);
    let size = least(32, extents.axis);
    let is_ragged = (extents.outer >= 2 && extents.axis % size >= 1) as i64;
    let unit_groups = greatest(1, is_ragged * blocks);
    let steps = greatest(1, 512 * (unit_groups % 512 >= 1) as i64);
    let unit_rows = least(extents.axis, size + is_ragged * extents.axis);
    let step_rows = steps * unit_rows;
    let step = extents.start / step_rows;
    let axis_start = extents.start - step * step_rows;
    if (extents.count | invocations | workgroups_x | extents.axis | blocks | axis_start) >> 32 != 0 {
        return Err("a uniform is no u32");
    }
    Ok(Run {
        offsets,
        sizes,
        params: Params {
            n: extents.count as u32,
            units: invocations as u32,
            groups_x: workgroups_x as u32,
            axis: extents.axis as u32,
            inner: 1,
            blocks: blocks as u32,
            axis_start: axis_start as u32,
        },
        dispatches: [
            [workgroups_x as u32, ceil_div(workgroups, workgroups_x) as u32, 1],
        ],
    })
}

/// Returns where a run begins in each tensor and how much of it it binds, in bytes.
const fn bind(extents: Extents) -> ([u64; TENSORS], [u64; TENSORS]) {
    let size = least(32, extents.axis);
    let is_ragged = (extents.outer >= 2 && extents.axis % size >= 1) as i64;
    let blocks = ceil_div(extents.axis, 32);
    let unit_groups = greatest(1, is_ragged * blocks);
    let steps = greatest(1, 512 * (unit_groups % 512 >= 1) as i64);
    let unit_rows = least(extents.axis, size + is_ragged * extents.axis);
    let step_rows = steps * unit_rows;
    let step = extents.start / step_rows;
    let first_group = step * steps * unit_groups;
    let axis_start = extents.start - step * step_rows;
    let end_row = axis_start + extents.count;
    let run_blocks = end_row / extents.axis * blocks + ceil_div(end_row % extents.axis, size);
    let offsets = [(extents.start / 2) as u64, (2 * first_group) as u64, (first_group / 2) as u64, (2 * extents.start) as u64];
    let sizes = [(4 * ceil_div(extents.count, 8)) as u64, (4 * ceil_div(run_blocks, 2)) as u64, (4 * ceil_div(run_blocks, 8)) as u64, (4 * ceil_div(extents.count, 2)) as u64];
    (offsets, sizes)
}

/// Returns how many elements each of several runs has, but the last; 0 where no part is small enough.
const fn run_length(extents: Extents, limit: i64) -> i64 {
    let size = least(32, extents.axis);
    let is_ragged = (extents.outer >= 2 && extents.axis % size >= 1) as i64;
    let blocks = ceil_div(extents.axis, 32);
    let unit_groups = greatest(1, is_ragged * blocks);
    let steps = greatest(1, 512 * (unit_groups % 512 >= 1) as i64);
    let unit_rows = least(extents.axis, size + is_ragged * extents.axis);
    let step_rows = steps * unit_rows;
    let reach = least(extents.count, step_rows);
    let limit_words = least(limit, 1099511627776) / 4;
    let fitting = 512 * (limit_words / 256);
    let groups = extents.outer * blocks;
    let all_groups_fit = (ceil_div(groups, 2) <= limit_words) as i64;
    let all_units = ceil_div(extents.outer * extents.axis, unit_rows);
    let units = least(2 * limit_words / unit_groups, all_units);
    let unit_length = greatest(units - steps, 0) * unit_rows;
    let length_by_groups = greatest(2147483648 * all_groups_fit, 512 * (unit_length / 512));
    (reach <= 2147483648) as i64 * least(fitting, length_by_groups)
}

/// Whether the tensor has at most 2^40 elements, so that no number here overflows.
const fn is_shape(shape: &[u64]) -> bool {
    let mut product = 1;
    let mut i = 0;
    while i < shape.len() {
        let dim = if shape[i] > 1 { shape[i] } else { 1 };
        if dim > (1 << 40) / product {
            return false;
        }
        product *= dim;
        i += 1;
    }
    true
}

const fn rank(shape: &[u64]) -> i64 {
    shape.len() as i64
}

const fn dim(shape: &[u64], index: i64) -> i64 {
    shape[(if index < 0 { index + rank(shape) } else { index }) as usize] as i64
}

const fn product(shape: &[u64], from: i64, to: i64) -> i64 {
    let mut product = 1;
    let mut i = from;
    while i < least(to, rank(shape)) {
        product *= shape[i as usize] as i64;
        i += 1;
    }
    product
}

const fn same_dims_except(shape: &[u64], other: &[u64], index: i64) -> bool {
    let left_out = if index < 0 { index + rank(shape) } else { index };
    let mut same = shape.len() == other.len();
    let mut i = 0;
    while same && i < shape.len() {
        same = i as i64 == left_out || shape[i] == other[i];
        i += 1;
    }
    same
}

const fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}

const fn greatest(a: i64, b: i64) -> i64 {
    if a > b { a } else { b }
}
