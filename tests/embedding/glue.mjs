// Runs the generated glue on a WebGPU device; the same module serves Node and a page.
//
// A work: { kernel, shapes: { name: [dim] }, inputs: { name: base64 }, outputs: [name], limit }
// Its result: { memory: { name: base64 }, device: { name: base64 }, runs, margins } or { error }. `memory` is what `run` returned, `device`
// what `encode` left in buffers in which each tensor begins 512 bytes in; `margins` tells whether what lies around them is as it was.

const MARGIN = 512;
const FILL = 0xa5;

const decode = text => Uint8Array.from(atob(text), character => character.charCodeAt(0));

function encode(bytes) {
  let text = '';
  for (let start = 0; start < bytes.length; start += 0x8000) text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  return btoa(text);
}

export async function openDevice(gpu) {
  const adapter = await gpu.requestAdapter();
  const { vendor, architecture, device, description } = adapter.info;
  return { device: await adapter.requestDevice(), adapter: [vendor, architecture, device, description].join(' ') };
}

export async function runWork(device, glue, work) {
  device.pushErrorScope('validation');
  let found;
  try {
    found = { ...(await inMemory(device, glue, work)), ...(await onDevice(device, glue, work)) };
  } catch (error) {
    found = { error: String(error.stack ?? error) };
  }
  const refusal = await device.popErrorScope();
  return refusal ? { error: refusal.message } : found;
}

async function inMemory(device, glue, work) {
  const tensors = Object.entries(work.inputs).map(([name, data]) => [name, { data: decode(data), shape: work.shapes[name] }]);
  const outputs = await glue.createKernel(device).run(Object.fromEntries(tensors));
  const memory = {};
  for (const [name, array] of Object.entries(outputs)) memory[name] = encode(new Uint8Array(array.buffer));
  return { memory };
}

async function onDevice(device, glue, work) {
  const { GPUBufferUsage: usage, GPUMapMode: mode } = globalThis;
  const kernel = glue.createKernel(device);
  const plan = work.limit ? glue.plan(work.shapes, work.limit) : kernel.plan(work.shapes);
  const places = {};
  for (const [name, size] of Object.entries(plan.sizes)) {
    const content = new Uint8Array(size + 2 * MARGIN).fill(FILL);
    if (name in work.inputs) content.set(decode(work.inputs[name]), MARGIN);
    const buffer = device.createBuffer({ size: content.length, usage: usage.STORAGE | usage.COPY_SRC | usage.COPY_DST });
    device.queue.writeBuffer(buffer, 0, content);
    places[name] = { buffer, offset: MARGIN };
  }
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  kernel.encode(pass, places, plan);
  pass.end();
  const found = { device: {}, runs: plan.runs.length, margins: true };
  const staging = {};
  for (const name of work.outputs) {
    const { buffer } = places[name];
    staging[name] = device.createBuffer({ size: buffer.size, usage: usage.MAP_READ | usage.COPY_DST });
    encoder.copyBufferToBuffer(buffer, 0, staging[name], 0, buffer.size);
  }
  device.queue.submit([encoder.finish()]);
  for (const [name, buffer] of Object.entries(staging)) {
    await buffer.mapAsync(mode.READ);
    const whole = new Uint8Array(buffer.getMappedRange());
    const around = [whole.subarray(0, MARGIN), whole.subarray(whole.length - MARGIN)];
    found.margins &&= around.every(part => part.every(byte => byte === FILL));
    found.device[name] = encode(whole.subarray(MARGIN, whole.length - MARGIN));
    buffer.unmap();
  }
  for (const { buffer } of Object.values(places)) buffer.destroy();
  return found;
}
