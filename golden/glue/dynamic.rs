//! DynamicQuantizeLinear: the host's side of the kernel `dynamic`.
//!
//! ```text
//! x             input    float32
//! x_max         scratch  uint32
//! x_min         scratch  uint32
//! y             output   uint8
//! y_scale       output   float32
//! y_zero_point  output   uint8
//! ```
//!
//! It plans for a device, buffers and a queue that are yours, and needs nothing but `core`: the pipelines of `PASSES` from `WGSL`, a
//! layout with their bindings in the group `GROUP`, and then, for tensors of given shapes:
//!
//! ```text
//! let plan = plan(&Shapes { x: &[...] }, limits.max_storage_buffer_binding_size)?;
//! for index in 0..plan.runs {
//!     let run = plan.run(index)?; // bind run.sizes[i] bytes of tensor i at run.offsets[i], and dispatch run.dispatches[pass]
//! }
//! ```
#![allow(dead_code)] // no program uses all of it

pub const NAME: &str = "dynamic";
pub const WGSL: &str = include_str!("dynamic.wgsl");
pub const GROUP: u32 = 1;

/// How many tensors there are; arrays of numbers are indexed by those in `tensor`.
pub const TENSORS: usize = 6;

pub mod tensor {
    pub const X: usize = 0;
    pub const X_MAX: usize = 1;
    pub const X_MIN: usize = 2;
    pub const Y: usize = 3;
    pub const Y_SCALE: usize = 4;
    pub const Y_ZERO_POINT: usize = 5;
}

/// Bits of an element, from the lowest bits of u32 words on.
pub const BITS: [u32; TENSORS] = [32, 32, 32, 8, 32, 8];

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
pub const PASSES: [Pass; 4] = [
    Pass {
        entry_point: "clear",
        bindings: &[
            Binding { binding: 1, resource: Resource::Tensor(tensor::X_MAX), kind: BindingType::Storage },
            Binding { binding: 2, resource: Resource::Tensor(tensor::X_MIN), kind: BindingType::Storage },
            Binding { binding: 6, resource: Resource::Params, kind: BindingType::Uniform },
        ],
    },
    Pass {
        entry_point: "reduce",
        bindings: &[
            Binding { binding: 0, resource: Resource::Tensor(tensor::X), kind: BindingType::ReadOnlyStorage },
            Binding { binding: 1, resource: Resource::Tensor(tensor::X_MAX), kind: BindingType::Storage },
            Binding { binding: 2, resource: Resource::Tensor(tensor::X_MIN), kind: BindingType::Storage },
            Binding { binding: 6, resource: Resource::Params, kind: BindingType::Uniform },
        ],
    },
    Pass {
        entry_point: "finish",
        bindings: &[
            Binding { binding: 1, resource: Resource::Tensor(tensor::X_MAX), kind: BindingType::Storage },
            Binding { binding: 2, resource: Resource::Tensor(tensor::X_MIN), kind: BindingType::Storage },
            Binding { binding: 4, resource: Resource::Tensor(tensor::Y_SCALE), kind: BindingType::Storage },
            Binding { binding: 5, resource: Resource::Tensor(tensor::Y_ZERO_POINT), kind: BindingType::Storage },
            Binding { binding: 6, resource: Resource::Params, kind: BindingType::Uniform },
        ],
    },
    Pass {
        entry_point: "main",
        bindings: &[
            Binding { binding: 0, resource: Resource::Tensor(tensor::X), kind: BindingType::ReadOnlyStorage },
            Binding { binding: 3, resource: Resource::Tensor(tensor::Y), kind: BindingType::Storage },
            Binding { binding: 4, resource: Resource::Tensor(tensor::Y_SCALE), kind: BindingType::Storage },
            Binding { binding: 5, resource: Resource::Tensor(tensor::Y_ZERO_POINT), kind: BindingType::Storage },
            Binding { binding: 6, resource: Resource::Params, kind: BindingType::Uniform },
        ],
    },
];

/// The words of the outputs that have elements even where there is nothing to compute, and no run writes them.
pub const ON_EMPTY: [(usize, u32); 2] = [
    (tensor::Y_SCALE, 0x3f800000),
    (tensor::Y_ZERO_POINT, 0x00000000),
];

/// The contents of the uniform buffer `params`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub n: u32,
    pub units: u32,
    pub groups_x: u32,
    pub groups: u32,
    pub group_units: u32,
    pub group_groups_x: u32,
    pub reduce_units: u32,
    pub reduce_groups_x: u32,
}

const _: () = assert!(core::mem::size_of::<Params>() == 32);

impl Params {
    pub const fn to_bytes(self) -> [u8; 32] {
        let words = [self.n, self.units, self.groups_x, self.groups, self.group_units, self.group_groups_x, self.reduce_units, self.reduce_groups_x];
        let mut bytes = [0; 32];
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
}

/// What follows from the shapes, and what all else follows from.
#[derive(Clone, Copy, Debug)]
struct Extents {
    count: i64,
}

/// Counts of elements and sizes in bytes of the tensors, and in how many runs they are computed: none where there is nothing to compute.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub counts: [u64; TENSORS],
    pub sizes: [u64; TENSORS],
    pub runs: u64,
    extents: Extents,
}

/// One part of the tensors: where it begins in each and how much of it is bound, in bytes; uniforms, and the workgroups of each pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub offsets: [u64; TENSORS],
    pub sizes: [u64; TENSORS],
    pub params: Params,
    pub dispatches: [[u32; 3]; 4],
}

/// Plans the computation of tensors of these shapes, in several runs where one is larger than the device binds, which its limit
/// `max_storage_buffer_binding_size` says.
pub const fn plan(shapes: &Shapes, max_binding_size: u64) -> Result<Plan, &'static str> {
    let extents = match read_shapes(shapes) {
        Ok(extents) => extents,
        Err(error) => return Err(error),
    };
    let (counts, sizes) = measure(extents);
    let mut plan = Plan { counts, sizes, runs: 0, extents };
    if sizes[tensor::Y] == 0 || sizes[tensor::Y_SCALE] == 0 || sizes[tensor::Y_ZERO_POINT] == 0 {
        return Ok(plan);
    }
    let mut i = 0;
    plan.runs = 1;
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
        dispatch(self.extents, [0; TENSORS], self.sizes)
    }
}

const fn read_shapes(shapes: &Shapes) -> Result<Extents, &'static str> {
    if !is_shape(shapes.x) { return Err("x is too large"); }
    let count = product(shapes.x, 0, rank(shapes.x));
    Ok(Extents { count })
}

/// Returns counts of elements and sizes in bytes.
const fn measure(extents: Extents) -> ([u64; TENSORS], [u64; TENSORS]) {
    let counts = [extents.count as u64, 1, 1, extents.count as u64, 1, 1];
    let sizes = [(4 * extents.count) as u64, 4, 4, (4 * ceil_div(extents.count, 4)) as u64, 4, 4];
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
    let reduce_invocations = ceil_div(extents.count, 64);
    let reduce_workgroups = ceil_div(reduce_invocations, 128);
    let reduce_workgroups_x = least(reduce_workgroups, 65535);
    if !(ceil_div(reduce_workgroups, greatest(reduce_workgroups_x, 1)) <= 65535) {
        return Err("needs ceil(reduce_workgroups / max(reduce_workgroups_x, 1)) <= 65535");
    }
    if (extents.count | invocations | workgroups_x | reduce_invocations | reduce_workgroups_x) >> 32 != 0 {
        return Err("a uniform is no u32");
    }
    Ok(Run {
        offsets,
        sizes,
        params: Params {
            n: extents.count as u32,
            units: invocations as u32,
            groups_x: workgroups_x as u32,
            groups: 1,
            group_units: 1,
            group_groups_x: 1,
            reduce_units: reduce_invocations as u32,
            reduce_groups_x: reduce_workgroups_x as u32,
        },
        dispatches: [
            [1, 1, 1],
            [reduce_workgroups_x as u32, ceil_div(reduce_workgroups, reduce_workgroups_x) as u32, 1],
            [1, 1, 1],
            [workgroups_x as u32, ceil_div(workgroups, workgroups_x) as u32, 1],
        ],
    })
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
