// Calls the glue in the folder that is named as it is not meant, on a device that does nothing, and prints { call: [wanted, found] }: the
// message of the RangeError, or null where the call is right.

import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { createKernel, plan } = await import(pathToFileURL(path.join(process.argv[2], 'dq_i4_blocked.js')));

const idle = new Proxy(function () {}, { get: (_, name) => (name === 'then' ? undefined : idle), apply: () => idle });
const device = new Proxy({ limits: { maxStorageBufferBindingSize: 65536 }, queue: idle }, {
  get: (target, name) => target[name] ?? (() => ({ size: 256, getMappedRange: () => new ArrayBuffer(256), unmap() {} })),
});
const kernel = createKernel(device);

const shapes = { x: [2, 64], x_scale: [2, 2], x_zero_point: [2, 2] };
const made = kernel.plan(shapes);
const buffer = { size: 256 };
const buffers = { x: buffer, x_scale: { buffer, offset: 256 }, x_zero_point: { buffer }, y: buffer };
const tensors = {
  x: { data: new Uint8Array(64), shape: [2, 64] },
  x_scale: { data: new Uint16Array(4), shape: [2, 2] },
  x_zero_point: { data: new Uint8Array(2), shape: [2, 2] },
};
const noShape = name => `${name} has no shape, an array of whole numbers that are not negative`;
const noData = name => `${name} has no data, a typed array or a DataView`;
const with_ = (all, name, value) => ({ ...all, [name]: value });

const CALLS = {
  'plan': [null, () => plan(shapes)],
  'plan, with a limit': [null, () => plan(shapes, 65536)],
  'plan, without a limit to bindings': [null, () => plan(shapes, Infinity)],
  'plan, no shapes': [noShape('x'), () => plan()],
  'plan, null': [noShape('x'), () => plan(null)],
  'plan on the device, no shapes': [noShape('x'), () => kernel.plan()],
  'plan, one shape of three': [noShape('x_scale'), () => plan({ x: [2, 64] })],
  'plan, a typed array': [noShape('x'), () => plan(with_(shapes, 'x', Uint32Array.of(2, 64)))],
  'plan, fractions': [noShape('x'), () => plan(with_(shapes, 'x', [2, 63.5]))],
  'plan, texts': [noShape('x'), () => plan(with_(shapes, 'x', ['2', '64']))],
  'plan, a negative dimension': [noShape('x_scale'), () => plan(with_(shapes, 'x_scale', [-2, -2]))],
  'plan, another order': [
    'needs x_scale.shape = x.shape except dimension -1',
    () => plan({ x: [1, 2, 64], x_scale: [2, 1, 2], x_zero_point: [1, 2, 2] }),
  ],
  'plan, a text as the limit': ['the limit is 65536, which is no number of bytes', () => plan(shapes, '65536')],
  'plan, null as the limit': ['the limit is null, which is no number of bytes', () => plan(shapes, null)],
  'plan, a bigint as the limit': ['the limit is 65536, which is no number of bytes', () => plan(shapes, 65536n)],
  'plan, no number as the limit': ['the limit is NaN, which is no number of bytes', () => plan(shapes, NaN)],
  'plan, a negative limit': ['the limit is -1, which is no number of bytes', () => plan(shapes, -1)],
  'encode': [null, () => kernel.encode(idle, buffers, made)],
  'encode, no plan': ['encode has no plan', () => kernel.encode(idle, buffers)],
  'encode, the runs as the plan': ['encode has no plan', () => kernel.encode(idle, buffers, made.runs)],
  'encode, no buffers': ['x has no buffer', () => kernel.encode(idle, undefined, made)],
  'encode, a buffer too few': ['y has no buffer', () => kernel.encode(idle, with_(buffers, 'y', undefined), made)],
  'encode, a place without a buffer': ['x has no buffer', () => kernel.encode(idle, with_(buffers, 'x', { offset: 256 }), made)],
  'encode, a place of nothing': ['x has no buffer', () => kernel.encode(idle, with_(buffers, 'x', { buffer: null }), made)],
  'encode, data': ['x has no buffer', () => kernel.encode(idle, with_(buffers, 'x', new Uint8Array(64)), made)],
  'run, no tensors': [noShape('x'), () => kernel.run()],
  'run, a tensor too few': [noShape('x_zero_point'), () => kernel.run(with_(tensors, 'x_zero_point', undefined))],
  'run, no data': [noData('x'), () => kernel.run(with_(tensors, 'x', { shape: [2, 64] }))],
  'run, an array of numbers': [noData('x_scale'), () => kernel.run(with_(tensors, 'x_scale', { data: [1, 2, 3, 4], shape: [2, 2] }))],
  'run, a bare ArrayBuffer': [noData('x'), () => kernel.run(with_(tensors, 'x', { data: new ArrayBuffer(64), shape: [2, 64] }))],
  'run, too little data': ['x has 63 bytes of data, not 64', () => kernel.run(with_(tensors, 'x', { data: new Uint8Array(63), shape: [2, 64] }))],
};

const found = {};
for (const [call, [wanted, make]] of Object.entries(CALLS)) {
  let message = null;
  try {
    await make();
  } catch (error) {
    message = error instanceof RangeError ? error.message : String(error.stack);
  }
  found[call] = [wanted && `dq_i4_blocked: ${wanted}`, message];
}
process.stdout.write(JSON.stringify(found));
