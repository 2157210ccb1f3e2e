// DynamicQuantizeLinear: the host's side of the kernel `dynamic`.
//
// x             input    float32
// x_max         scratch  uint32
// x_min         scratch  uint32
// y             output   uint8
// y_scale       output   float32
// y_zero_point  output   uint8
//
// GPUDevice and the like are WebGPU's own types: those of TypeScript's DOM library, or of the package `@webgpu/types`.

export type Shape = readonly number[];

/** The tensors whose shapes all else follows from. */
export interface Shapes {
  x: Shape;
}

/** A number for each tensor. */
export interface Numbers {
  x: number;
  x_max: number;
  x_min: number;
  y: number;
  y_scale: number;
  y_zero_point: number;
}

/** A tensor on the device: a buffer, or a place in one, at a multiple of 256 bytes. */
export type Place = GPUBuffer | { buffer: GPUBuffer; offset?: number };

export interface Buffers {
  x: Place;
  x_max: Place;
  x_min: Place;
  y: Place;
  y_scale: Place;
  y_zero_point: Place;
}

/** A tensor in memory, its elements from the lowest bits of u32 words on; the last word need not be whole. */
export interface Tensor {
  data: ArrayBufferView;
  shape: Shape;
}

export interface Inputs {
  x: Tensor;
}

export interface Outputs {
  y: Uint8Array;
  y_scale: Float32Array;
  y_zero_point: Uint8Array;
}

/** One part of the tensors: where it begins in each and how much of it is bound, in bytes; and the workgroups of each pass. */
export interface Run {
  offsets: Numbers;
  sizes: Numbers;
  uniforms: { [name: string]: Uint32Array };
  dispatches: [number, number, number][];
}

export interface Plan {
  counts: Numbers;
  sizes: Numbers;
  runs: Run[];
}

export interface Kernel {
  plan(shapes: Shapes): Plan;
  encode(pass: GPUComputePassEncoder, buffers: Buffers, plan: Plan): void;
  run(tensors: Inputs): Promise<Outputs>;
}

export function createKernel(device: GPUDevice): Kernel;

/** Throws a RangeError for shapes that do not go together, and for tensors that are too large and cannot be parted. */
export function plan(shapes: Shapes, maxBindingSize?: number): Plan;

/** The words of the outputs that have elements even where there is nothing to compute: a plan without runs leaves them to the host. */
export const onEmpty: { y_scale: number; y_zero_point: number };

export const wgsl: string;
