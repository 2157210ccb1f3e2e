// DequantizeLinear: the host's side of the kernel `blocked`.
//
// x             input   int4
// x_scale       input   float16
// x_zero_point  input   int4
// y             output  float16
//
// It runs on a device, buffers and a queue that are yours, and needs nothing but WebGPU:
//
//   const kernel = createKernel(device);
//   const plan = kernel.plan({ x: [...], x_scale: [...], x_zero_point: [...] });
//   kernel.encode(pass, { x, x_scale, x_zero_point, y }, plan); // buffers of plan.sizes bytes with usage STORAGE
//
// Or, for tensors in memory: await kernel.run({ x: { data, shape }, ... }).

/** The tensors: `bits` an element, from the lowest bits of u32 words on; `array` is what `run` returns an output in. */
const TENSORS = {
  x: { role: 'input', dtype: 'int4', bits: 4, array: Uint8Array },
  x_scale: { role: 'input', dtype: 'float16', bits: 16, array: Uint16Array },
  x_zero_point: { role: 'input', dtype: 'int4', bits: 4, array: Uint8Array },
  y: { role: 'output', dtype: 'float16', bits: 16, array: Uint16Array },
};

/** The dispatches, one after the other. */
const PASSES = [
  {
    entryPoint: 'main',
    bindings: [
      { binding: 0, name: 'x', type: 'read-only-storage' },
      { binding: 1, name: 'x_scale', type: 'read-only-storage' },
      { binding: 2, name: 'x_zero_point', type: 'read-only-storage' },
      { binding: 3, name: 'y', type: 'storage' },
      { binding: 4, name: 'params', type: 'uniform' },
    ],
  },
];

const GROUP = 0;
const USAGE = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 };
const COMPUTE = 4;
const READ = 1;

function check(holds, message) {
  if (!holds) throw new RangeError(`blocked: ${message}`);
}

function product(dims) {
  return dims.reduce((count, dim) => count * dim, 1);
}

function sameDimsExcept(shape, other, index) {
  const leftOut = index < 0 ? index + shape.length : index;
  return shape.length === other.length && shape.every((dim, place) => place === leftOut || dim === other[place]);
}

/** Returns what all else follows from; throws a RangeError for shapes that do not go together. */
function readShapes(shapes) {
  for (const name of ['x', 'x_scale', 'x_zero_point']) {
    const shape = shapes?.[name];
    const isShape = Array.isArray(shape) && shape.every(dim => Number.isSafeInteger(dim) && dim >= 0);
    check(isShape, `${name} has no shape, an array of whole numbers that are not negative`);
    check(product(shape.map(dim => Math.max(dim, 1))) <= 2 ** 40, `${name} is too large`);
  }
  check(shapes.x.length >= 1, 'needs rank(x) >= 1');
  const outer = product(shapes.x.slice(0, -1));
  const axis = shapes.x.at(-1);
  const blocks = Math.ceil(axis / 32);
  const groups = outer * blocks;
  check(product(shapes.x_scale) === groups, 'needs numel(x_scale) = groups');
  check(sameDimsExcept(shapes.x_scale, shapes.x, -1), 'needs x_scale.shape = x.shape except dimension -1');
  check(shapes.x_scale.at(-1) === blocks, 'needs x_scale.shape[-1] = blocks');
  check(product(shapes.x_zero_point) === groups, 'needs numel(x_zero_point) = groups');
  check(sameDimsExcept(shapes.x_zero_point, shapes.x, -1), 'needs x_zero_point.shape = x.shape except dimension -1');
  check(shapes.x_zero_point.at(-1) === blocks, 'needs x_zero_point.shape[-1] = blocks');
  return { outer, axis };
}

/** Returns how many elements and bytes each tensor has. */
function measure({ outer, axis }) {
  const count = outer * axis;
  const blocks = Math.ceil(axis / 32);
  const groups = outer * blocks;
  return {
    counts: {
      x: count,
      x_scale: groups,
      x_zero_point: groups,
      y: count,
    },
    sizes: {
      x: 4 * Math.ceil(count / 8),
      x_scale: 4 * Math.ceil(groups / 2),
      x_zero_point: 4 * Math.ceil(groups / 8),
      y: 4 * Math.ceil(count / 2),
    },
  };
}

/** Returns the contents of the uniforms and the workgroups of each pass. */
function dispatch({ outer, axis, count, start }) {
  check(count <= 4294967168, 'needs count <= 4294967168');
  const invocations = Math.ceil(count / 64);
  const workgroups = Math.ceil(invocations / 128);
  const workgroupsX = Math.min(workgroups, 65535);
  check(Math.ceil(workgroups / Math.max(workgroupsX, 1)) <= 65535, 'needs ceil(workgroups / max(workgroups_x, 1)) <= 65535');
  const blocks = Math.ceil(axis / 32);
  const size = Math.min(32, axis);
  const isRagged = Number(outer >= 2 && axis % size >= 1);
  const unitGroups = Math.max(1, isRagged * blocks);
  const steps = Math.max(1, 512 * Number(unitGroups % 512 >= 1));
  const unitRows = Math.min(axis, size + isRagged * axis);
  const stepRows = steps * unitRows;
  const step = Math.floor(start / stepRows);
  const axisStart = start - step * stepRows;
  return {
    uniforms: {
      params: words(28, [
        [0, 'n', count],
        [4, 'units', invocations],
        [8, 'groups_x', workgroupsX],
        [12, 'axis', axis],
        [16, 'inner', 1],
        [20, 'blocks', blocks],
        [24, 'axis_start', axisStart],
      ]),
    },
    dispatches: [
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

/** Returns where a run begins in each tensor and how much of it it binds, in bytes. */
function bind({ outer, axis, count, start }) {
  const size = Math.min(32, axis);
  const isRagged = Number(outer >= 2 && axis % size >= 1);
  const blocks = Math.ceil(axis / 32);
  const unitGroups = Math.max(1, isRagged * blocks);
  const steps = Math.max(1, 512 * Number(unitGroups % 512 >= 1));
  const unitRows = Math.min(axis, size + isRagged * axis);
  const stepRows = steps * unitRows;
  const step = Math.floor(start / stepRows);
  const firstGroup = step * steps * unitGroups;
  const axisStart = start - step * stepRows;
  const endRow = axisStart + count;
  const runBlocks = Math.floor(endRow / axis) * blocks + Math.ceil(endRow % axis / size);
  return {
    offsets: {
      x: Math.floor(start / 2),
      x_scale: 2 * firstGroup,
      x_zero_point: Math.floor(firstGroup / 2),
      y: 2 * start,
    },
    sizes: {
      x: 4 * Math.ceil(count / 8),
      x_scale: 4 * Math.ceil(runBlocks / 2),
      x_zero_point: 4 * Math.ceil(runBlocks / 8),
      y: 4 * Math.ceil(count / 2),
    },
  };
}

/** Returns how many elements each of several runs has, but the last; 0 where no part is small enough. */
function runLength({ outer, axis, count, limit }) {
  const size = Math.min(32, axis);
  const isRagged = Number(outer >= 2 && axis % size >= 1);
  const blocks = Math.ceil(axis / 32);
  const unitGroups = Math.max(1, isRagged * blocks);
  const steps = Math.max(1, 512 * Number(unitGroups % 512 >= 1));
  const unitRows = Math.min(axis, size + isRagged * axis);
  const stepRows = steps * unitRows;
  const reach = Math.min(count, stepRows);
  const limitWords = Math.floor(Math.min(limit, 1099511627776) / 4);
  const fitting = 512 * Math.floor(limitWords / 256);
  const groups = outer * blocks;
  const allGroupsFit = Number(Math.ceil(groups / 2) <= limitWords);
  const allUnits = Math.ceil(outer * axis / unitRows);
  const units = Math.min(Math.floor(2 * limitWords / unitGroups), allUnits);
  const unitLength = Math.max(units - steps, 0) * unitRows;
  const lengthByGroups = Math.max(2147483648 * allGroupsFit, 512 * Math.floor(unitLength / 512));
  return Number(reach <= 2147483648) * Math.min(fitting, lengthByGroups);
}

/** Returns what one run binds and dispatches. */
function planRun(extents, maxBindingSize) {
  const { offsets, sizes } = bind(extents);
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
  if (['y'].some(name => sizes[name] === 0)) return { counts, sizes, runs: [] };
  const count = counts.x;
  const fits = count <= 4294967168 && Object.values(sizes).every(size => size <= maxBindingSize);
  const length = fits ? count : runLength({ ...extents, count, limit: maxBindingSize });
  check(length > 0, `no part is small enough for bindings of ${maxBindingSize} bytes`);
  const runs = [];
  for (let start = 0; start < count; start += length) {
    runs.push(planRun({ ...extents, start, count: Math.min(length, count - start) }, maxBindingSize));
  }
  return { counts, sizes, runs };
}

/** Returns the kernel on a device: its pipelines and layouts are made here, once. */
export function createKernel(device) {
  const empty = device.createBindGroupLayout({ entries: [] });
  const module = device.createShaderModule({ label: 'blocked', code: wgsl });
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
    }
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    encode(pass, buffers, { runs });
    pass.end();
    for (const name of ['y']) {
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
