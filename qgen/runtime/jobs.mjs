// Runs jobs on a WebGPU device; the same module serves Node and a page, so it uses nothing but WebGPU.
//
// On standard input and output of `node.mjs` and `chromium.mjs`, one JSON object a line: first the adapter { name, features, limits } goes
// out, then what the device needs { requiredFeatures, requiredLimits } comes in and {} goes out, or { error }; then a job comes in and its
// result goes out, any number of times.
//
// A job: { wgsl, buffers: { name: { data (base64), offset, size, usage: "storage" | "uniform" } },
//          passes: [{ entryPoint, bindings: [{ group, binding, buffer }], dispatch: [x, y, z] }], read: [name] }
// Its result: { buffers: { name: base64 of the whole buffer } } or { error }. Layouts are "auto": what a host gets that states none.

// The pipelines of the text that ran last: a kernel is run for a few shapes in a row, and compiling it takes most of the time.
const last = { device: null, wgsl: null, module: null, pipelines: new Map() };

const decode = text => Uint8Array.from(atob(text), character => character.charCodeAt(0));

function encode(bytes) {
  let text = '';
  for (let start = 0; start < bytes.length; start += 0x8000) text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(text);
}

export async function findAdapter(gpu) {
  const adapter = await gpu?.requestAdapter();
  if (!adapter) return null;
  const { vendor, architecture, device, description } = adapter.info;
  const limits = {};
  for (const name in adapter.limits) limits[name] = adapter.limits[name];
  const name = description || [vendor, architecture, device].filter(Boolean).join(' ');
  return { adapter, hello: { name, features: [...adapter.features], limits } };
}

export async function openDevice(adapter, needs) {
  try {
    const device = await adapter.requestDevice(needs);
    return { device, answer: {} };
  } catch (error) {
    return { answer: { error: String(error) } };
  }
}

export async function runJob(device, job) {
  device.pushErrorScope('validation');
  let buffers;
  let failure = null;
  try {
    buffers = await execute(device, job);
  } catch (error) {
    failure = String(error);
  }
  const refusal = await device.popErrorScope();
  if (refusal || failure) last.device = null;
  return refusal || failure ? { error: refusal ? refusal.message : failure } : { buffers };
}

async function execute(device, job) {
  const { GPUBufferUsage: usage, GPUMapMode: mode } = globalThis;
  const buffers = {};
  for (const [name, { data, usage: kind }] of Object.entries(job.buffers)) {
    const bytes = decode(data);
    const flags = kind === 'uniform' ? usage.UNIFORM : usage.STORAGE | usage.COPY_SRC;
    buffers[name] = device.createBuffer({ size: bytes.length, usage: flags, mappedAtCreation: true });
    new Uint8Array(buffers[name].getMappedRange()).set(bytes);
    buffers[name].unmap();
  }
  if (last.device !== device || last.wgsl !== job.wgsl) {
    Object.assign(last, { device, wgsl: job.wgsl, module: device.createShaderModule({ code: job.wgsl }), pipelines: new Map() });
  }
  const encoder = device.createCommandEncoder();
  for (const { entryPoint, bindings, dispatch } of job.passes) {
    const pipeline = last.pipelines.get(entryPoint)
      ?? device.createComputePipeline({ layout: 'auto', compute: { module: last.module, entryPoint } });
    last.pipelines.set(entryPoint, pipeline);
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (const group of new Set(bindings.map(bound => bound.group))) {
      const entries = bindings.filter(bound => bound.group === group).map(({ binding, buffer }) => {
        const { offset, size } = job.buffers[buffer];
        return { binding, resource: { buffer: buffers[buffer], offset, size } };
      });
      pass.setBindGroup(group, device.createBindGroup({ layout: pipeline.getBindGroupLayout(group), entries }));
    }
    pass.dispatchWorkgroups(...dispatch);
    pass.end();
  }
  const total = job.read.reduce((sum, name) => sum + buffers[name].size, 0);
  const staging = device.createBuffer({ size: total, usage: usage.MAP_READ | usage.COPY_DST });
  let start = 0;
  for (const name of job.read) {
    encoder.copyBufferToBuffer(buffers[name], 0, staging, start, buffers[name].size);
    start += buffers[name].size;
  }
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(mode.READ);
  const mapped = new Uint8Array(staging.getMappedRange());
  const found = {};
  start = 0;
  for (const name of job.read) {
    found[name] = encode(mapped.subarray(start, start + buffers[name].size));
    start += buffers[name].size;
  }
  staging.unmap();
  for (const buffer of [...Object.values(buffers), staging]) buffer.destroy();
  return found;
}
