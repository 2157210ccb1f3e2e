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
}

const _: () = assert!(core::mem::size_of::<Params>() == 24);

impl Params {
    pub const fn to_bytes(self) -> [u8; 24] {
        let words = [self.n, self.units, self.groups_x, self.axis, self.inner, self.blocks];
        let mut bytes = [0; 24];
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
}

/// Counts of elements and sizes in bytes of the tensors, and in how many runs they are computed: none where there is nothing to compute.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub counts: [u64; TENSORS],
    pub sizes: [u64; TENSORS],
    pub runs: u64,
    extents: Extents,
    /// Of the extent that is cut, in one run.
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
    plan.runs = 1;
    let mut i = 0;
    let cut = find_cut(extents);
    let mut fits = true;
    while i < TENSORS {
        let part = cut.parts[i];
        fits = fits && (part.elements == 0 || (sizes[i] <= max_binding_size && counts[i] <= part.most as u64));
        i += 1;
    }
    if !fits {
        plan.length = cut.step * run_steps(&cut.parts, max_binding_size);
        if plan.length == 0 {
            return Err("no part of the tensors is small enough for a binding");
        }
        plan.runs = ceil_div(cut.extent, plan.length) as u64;
    }
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
        let cut = find_cut(self.extents);
        let start = index as i64 * self.length;
        let mut extents = self.extents;
        if self.length > 0 {
            extents = with_extent(extents, cut.along, least(self.length, cut.extent - start));
        }
        let mut offsets = [0; TENSORS];
        let mut i = 0;
        while i < TENSORS {
            offsets[i] = (start / cut.step * cut.parts[i].elements * BITS[i] as i64 / 8) as u64;
            i += 1;
        }
        let (_, sizes) = measure(extents);
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
    if !(rank(shapes.x_scale) == rank(shapes.x)) {
        return Err("needs rank(x_scale) = rank(x)");
    }
    if !(dim(shapes.x_scale, -1) == blocks) {
        return Err("needs x_scale.shape[-1] = blocks");
    }
    if !(product(shapes.x_zero_point, 0, rank(shapes.x_zero_point)) == groups) {
        return Err("needs numel(x_zero_point) = groups");
    }
    if !(rank(shapes.x_zero_point) == rank(shapes.x)) {
        return Err("needs rank(x_zero_point) = rank(x)");
    }
    if !(dim(shapes.x_zero_point, -1) == blocks) {
        return Err("needs x_zero_point.shape[-1] = blocks");
    }
    Ok(Extents { outer, axis })
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
    let count = extents.outer * extents.axis;
    if !(count <= 4294967168) {
        return Err("needs count <= 4294967168");
    }
    let invocations = ceil_div(count, 32);
    let workgroups = ceil_div(invocations, 128);
    let workgroups_x = least(workgroups, 65535);
    if !(ceil_div(workgroups, greatest(workgroups_x, 1)) <= 65535) {
        return Err("needs ceil(workgroups / max(workgroups_x, 1)) <= 65535");
    }
    let blocks = ceil_div(extents.axis, 32);
    if (count | invocations | workgroups_x | extents.axis | blocks) >> 32 != 0 {
        return Err("a uniform is no u32");
    }
    Ok(Run {
        offsets,
        sizes,
        params: Params {
            n: count as u32,
            units: invocations as u32,
            groups_x: workgroups_x as u32,
            axis: extents.axis as u32,
            inner: 1,
            blocks: blocks as u32,
        },
        dispatches: [
            [workgroups_x as u32, ceil_div(workgroups, workgroups_x) as u32, 1],
        ],
    })
}

#[derive(Clone, Copy)]
enum Along {
    Axis,
    Outer,
}

/// What of a tensor belongs to a step of the extent that is cut, none where all of it is bound; where a part may begin, what it has at most.
#[derive(Clone, Copy)]
struct Part {
    elements: i64,
    multiple: i64,
    most: i64,
}

struct Cut {
    along: Along,
    extent: i64,
    step: i64,
    parts: [Part; TENSORS],
}

const fn find_cut(extents: Extents) -> Cut {
    let blocks = ceil_div(extents.axis, 32);
    if extents.outer == 1 {
        return Cut {
            along: Along::Axis,
            extent: extents.axis,
            step: 32,
            parts: [
                Part { elements: 32, multiple: 512, most: 4294967168 },
                Part { elements: 1, multiple: 512, most: 4294967168 },
                Part { elements: 1, multiple: 512, most: 4294967168 },
                Part { elements: 32, multiple: 512, most: 4294967168 },
            ],
        };
    }
    Cut {
        along: Along::Outer,
        extent: extents.outer,
        step: 1,
        parts: [
            Part { elements: extents.axis, multiple: 512, most: 4294967168 },
            Part { elements: blocks, multiple: 512, most: 4294967168 },
            Part { elements: blocks, multiple: 512, most: 4294967168 },
            Part { elements: extents.axis, multiple: 512, most: 4294967168 },
        ],
    }
}

const fn with_extent(extents: Extents, along: Along, value: i64) -> Extents {
    let mut part = extents;
    match along {
        Along::Axis => part.axis = value,
        Along::Outer => part.outer = value,
    }
    part
}

/// Returns how many steps one run has, a part beginning where all tensors can be bound; 0 where no part is small enough.
const fn run_steps(parts: &[Part; TENSORS], max_binding_size: u64) -> i64 {
    let mut steps = 1;
    let mut i = 0;
    while i < TENSORS {
        if steps * (parts[i].elements % parts[i].multiple) % parts[i].multiple == 0 {
            i += 1;
        } else {
            steps += 1;
            i = 0;
        }
    }
    let mut times = 1 << 40;
    i = 0;
    while i < TENSORS {
        let elements = steps * parts[i].elements;
        if elements > 0 {
            let bytes = elements * BITS[i] as i64 / 8;
            times = least(times, least(parts[i].most / elements, (max_binding_size / bytes as u64) as i64));
        }
        i += 1;
    }
    times * steps
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

const fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

const fn least(a: i64, b: i64) -> i64 {
    if a < b { a } else { b }
}

const fn greatest(a: i64, b: i64) -> i64 {
    if a > b { a } else { b }
}
