// DynamicQuantizeLinear: the host's side of the kernel `dynamic`.
//
// x             input    float32
// x_max         scratch  uint32
// x_min         scratch  uint32
// y             output   uint8
// y_scale       output   float32
// y_zero_point  output   uint8
//
// It runs on a device, buffers and a queue that are yours, and needs nothing but WebGPU:
//
//   const kernel = createKernel(device);
//   const plan = kernel.plan({ x: [...] });
//   kernel.encode(pass, { x, x_max, x_min, y, y_scale, y_zero_point }, plan); // buffers of plan.sizes bytes with usage STORAGE
//
// Or, for tensors in memory: await kernel.run({ x: { data, shape }, ... }).

/** The tensors: `bits` an element, from the lowest bits of u32 words on; `array` is what `run` returns an output in. */
const TENSORS = {
  x: { role: 'input', dtype: 'float32', bits: 32, array: Float32Array },
  x_max: { role: 'scratch', dtype: 'uint32', bits: 32, array: Uint32Array },
  x_min: { role: 'scratch', dtype: 'uint32', bits: 32, array: Uint32Array },
  y: { role: 'output', dtype: 'uint8', bits: 8, array: Uint8Array },
  y_scale: { role: 'output', dtype: 'float32', bits: 32, array: Float32Array },
  y_zero_point: { role: 'output', dtype: 'uint8', bits: 8, array: Uint8Array },
};

const NOWHERE = { x: 0, x_max: 0, x_min: 0, y: 0, y_scale: 0, y_zero_point: 0 };

/** The words of the outputs that have elements even where there is nothing to compute, and no run writes them. */
export const onEmpty = { y_scale: 0x3f800000, y_zero_point: 0x00000000 };

/** The dispatches, one after the other. */
const PASSES = [
  {
    entryPoint: 'clear',
    bindings: [
      { binding: 1, name: 'x_max', type: 'storage' },
      { binding: 2, name: 'x_min', type: 'storage' },
      { binding: 6, name: 'params', type: 'uniform' },
    ],
  },
  {
    entryPoint: 'reduce',
    bindings: [
      { binding: 0, name: 'x', type: 'read-only-storage' },
      { binding: 1, name: 'x_max', type: 'storage' },
      { binding: 2, name: 'x_min', type: 'storage' },
      { binding: 6, name: 'params', type: 'uniform' },
    ],
  },
  {
    entryPoint: 'finish',
    bindings: [
      { binding: 1, name: 'x_max', type: 'storage' },
      { binding: 2, name: 'x_min', type: 'storage' },
      { binding: 4, name: 'y_scale', type: 'storage' },
      { binding: 5, name: 'y_zero_point', type: 'storage' },
      { binding: 6, name: 'params', type: 'uniform' },
    ],
  },
  {
    entryPoint: 'main',
    bindings: [
      { binding: 0, name: 'x', type: 'read-only-storage' },
      { binding: 3, name: 'y', type: 'storage' },
      { binding: 4, name: 'y_scale', type: 'storage' },
      { binding: 5, name: 'y_zero_point', type: 'storage' },
      { binding: 6, name: 'params', type: 'uniform' },
    ],
  },
];

const GROUP = 1;
const USAGE = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 };
const COMPUTE = 4;
const READ = 1;

function check(holds, message) {
  if (!holds) throw new RangeError(`dynamic: ${message}`);
}

function product(dims) {
  return dims.reduce((count, dim) => count * dim, 1);
}

/** Returns what all else follows from; throws a RangeError for shapes that do not go together. */
function readShapes(shapes) {
  for (const name of ['x']) {
    const shape = shapes?.[name];
    const isShape = Array.isArray(shape) && shape.every(dim => Number.isSafeInteger(dim) && dim >= 0);
    check(isShape, `${name} has no shape, an array of whole numbers that are not negative`);
    check(product(shape.map(dim => Math.max(dim, 1))) <= 2 ** 40, `${name} is too large`);
  }
  const count = product(shapes.x);
  return { count };
}

/** Returns how many elements and bytes each tensor has. */
function measure({ count }) {
  return {
    counts: {
      x: count,
      x_max: 1,
      x_min: 1,
      y: count,
      y_scale: 1,
      y_zero_point: 1,
    },
    sizes: {
      x: 4 * count,
      x_max: 4,
      x_min: 4,
      y: 4 * Math.ceil(count / 4),
      y_scale: 4,
      y_zero_point: 4,
    },
  };
}

/** Returns the contents of the uniforms and the workgroups of each pass. */
function dispatch({ count }) {
  check(count <= 4294967168, 'needs count <= 4294967168');
  const invocations = Math.ceil(count / 64);
  const workgroups = Math.ceil(invocations / 128);
  const workgroupsX = Math.min(workgroups, 65535);
  check(Math.ceil(workgroups / Math.max(workgroupsX, 1)) <= 65535, 'needs ceil(workgroups / max(workgroups_x, 1)) <= 65535');
  const reduceInvocations = Math.ceil(count / 64);
  const reduceWorkgroups = Math.ceil(reduceInvocations / 128);
  const reduceWorkgroupsX = Math.min(reduceWorkgroups, 65535);
  check(Math.ceil(reduceWorkgroups / Math.max(reduceWorkgroupsX, 1)) <= 65535, 'needs ceil(reduce_workgroups / max(reduce_workgroups_x, 1)) <= 65535');
  return {
    uniforms: {
      params: words(32, [
        [0, 'n', count],
        [4, 'units', invocations],
        [8, 'groups_x', workgroupsX],
        [12, 'groups', 1],
        [16, 'group_units', 1],
        [20, 'group_groups_x', 1],
        [24, 'reduce_units', reduceInvocations],
        [28, 'reduce_groups_x', reduceWorkgroupsX],
      ]),
    },
    dispatches: [
      [1, 1, 1],
      [reduceWorkgroupsX, Math.ceil(reduceWorkgroups / reduceWorkgroupsX), 1],
      [1, 1, 1],
      [workgroupsX, Math.ceil(workgroups / workgroupsX), 1],
    ],
  };
}

/** Returns so many bytes as u32 words, with each value in the place of its name. */
function words(bytes, fields) {
  const content = new Uint32Array(bytes / 4);
  for (const [offset, name, value] of fields) {
    check(value >= 0 && value < 2 ** 32, `${name} is ${value}, which is no u32`);
    content[offset / 4] = value;
  }
  return content;
}

/** Returns what one run binds and dispatches. */
function planRun(extents, maxBindingSize) {
  const { offsets, sizes } = { offsets: NOWHERE, ...measure(extents) };
  for (const [name, size] of Object.entries(sizes)) {
    check(size > 0, `${name} has no elements`);
    check(size <= maxBindingSize, `${name} has ${size} bytes, and the device binds ${maxBindingSize}`);
  }
  return { offsets, sizes, ...dispatch(extents) };
}

/**
 * Returns counts of elements and sizes in bytes of the tensors of these shapes, and the runs that compute them: one, or several where a
 * tensor is larger than a binding may be. There is no run where there is nothing to compute.
 */
export function plan(shapes, maxBindingSize = 134217728) {
  check(maxBindingSize >= 0 && typeof maxBindingSize === 'number', `the limit is ${maxBindingSize}, which is no number of bytes`);
  const extents = readShapes(shapes);
  const { counts, sizes } = measure(extents);
  if (['y', 'y_scale', 'y_zero_point'].some(name => sizes[name] === 0)) return { counts, sizes, runs: [] };
  return { counts, sizes, runs: [planRun(extents, maxBindingSize)] };
}

/** Returns the kernel on a device: its pipelines and layouts are made here, once. */
export function createKernel(device) {
  const empty = device.createBindGroupLayout({ entries: [] });
  const module = device.createShaderModule({ label: 'dynamic', code: wgsl });
  const passes = PASSES.map(({ entryPoint, bindings }) => {
    const entries = bindings.map(({ binding, type }) => ({ binding, visibility: COMPUTE, buffer: { type } }));
    const layouts = [...Array(GROUP).fill(empty), device.createBindGroupLayout({ entries })];
    const layout = device.createPipelineLayout({ bindGroupLayouts: layouts });
    return { layouts, bindings, pipeline: device.createComputePipeline({ layout, compute: { module, entryPoint } }) };
  });
  const uniformBuffers = new WeakMap();

  function uniformBuffersOf(run) {
    if (!uniformBuffers.has(run)) {
      const made = Object.entries(run.uniforms).map(([name, content]) => {
        const buffer = device.createBuffer({ size: content.byteLength, usage: USAGE.UNIFORM, mappedAtCreation: true });
        new Uint32Array(buffer.getMappedRange()).set(content);
        buffer.unmap();
        return [name, { buffer }];
      });
      uniformBuffers.set(run, Object.fromEntries(made));
    }
    return uniformBuffers.get(run);
  }

  function storageBuffersOf(run, buffers) {
    const bound = Object.keys(TENSORS).map(name => {
      const place = buffers?.[name];
      const { buffer, offset = 0 } = place?.buffer ? place : { buffer: place };
      check(buffer?.size >= 0, `${name} has no buffer`);
      return [name, { buffer, offset: offset + run.offsets[name], size: run.sizes[name] }];
    });
    return Object.fromEntries(bound);
  }

  /** Encodes the runs of a plan; a tensor is a buffer, or { buffer, offset } with an offset that is a multiple of 256. */
  function encode(pass, buffers, plan) {
    check(Array.isArray(plan?.runs), 'encode has no plan');
    for (const run of plan.runs) {
      const resources = { ...storageBuffersOf(run, buffers), ...uniformBuffersOf(run) };
      passes.forEach(({ layouts, bindings, pipeline }, index) => {
        pass.setPipeline(pipeline);
        layouts.forEach((layout, group) => {
          const entries = group < GROUP ? [] : bindings.map(({ binding, name }) => ({ binding, resource: resources[name] }));
          pass.setBindGroup(group, device.createBindGroup({ layout, entries }));
        });
        pass.dispatchWorkgroups(...run.dispatches[index]);
      });
    }
  }

  function planHere(shapes) {
    return plan(shapes, device.limits.maxStorageBufferBindingSize);
  }

  /** Computes tensors of the page's memory, { data, shape } each, and returns the outputs as typed arrays. */
  async function run(tensors) {
    const shapes = Object.fromEntries(Object.keys(TENSORS).map(name => [name, tensors?.[name]?.shape]));
    const { counts, sizes, runs } = planHere(shapes);
    const buffers = {};
    const staging = {};
    for (const [name, { role, bits }] of Object.entries(TENSORS)) {
      const size = Math.max(sizes[name], 4);
      buffers[name] = device.createBuffer({ size, usage: USAGE.STORAGE | USAGE.COPY_SRC | USAGE.COPY_DST });
      if (role === 'input') {
        const data = tensors[name]?.data;
        check(ArrayBuffer.isView(data), `${name} has no data, a typed array or a DataView`);
        const { buffer, byteOffset, byteLength } = data;
        const least = Math.ceil((counts[name] * bits) / 8);
        check(byteLength >= least && byteLength <= size, `${name} has ${byteLength} bytes of data, not ${least}`);
        const content = new Uint8Array(size);
        content.set(new Uint8Array(buffer, byteOffset, byteLength));
        device.queue.writeBuffer(buffers[name], 0, content);
      }
      if (runs.length === 0 && name in onEmpty) {
        device.queue.writeBuffer(buffers[name], 0, new Uint32Array(size / 4).fill(onEmpty[name]));
      }
    }
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    encode(pass, buffers, { runs });
    pass.end();
    for (const name of ['y', 'y_scale', 'y_zero_point']) {
      staging[name] = device.createBuffer({ size: buffers[name].size, usage: USAGE.MAP_READ | USAGE.COPY_DST });
      encoder.copyBufferToBuffer(buffers[name], 0, staging[name], 0, buffers[name].size);
    }
    device.queue.submit([encoder.finish()]);
    const outputs = {};
    for (const [name, buffer] of Object.entries(staging)) {
      const { bits, array: TypedArray } = TENSORS[name];
      await buffer.mapAsync(READ);
      outputs[name] = new TypedArray(buffer.getMappedRange().slice(0, Math.ceil((counts[name] * bits) / 8)));
    }
    for (const buffer of [...Object.values(buffers), ...Object.values(staging)]) buffer.destroy();
    return outputs;
  }

  return { plan: planHere, encode, run };
}

export const wgsl = `// The text of the kernel stands here: \`backticks\`, \${braces}, "quotes", \\backslashes, """more""", what??/ and */ have to come.
@compute @workgroup_size(64)
fn main() {}
`;
