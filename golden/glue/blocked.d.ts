// DequantizeLinear: the host's side of the kernel `blocked`.
//
// x             input   int4
// x_scale       input   float16
// x_zero_point  input   int4
// y             output  float16
//
// GPUDevice and the like are WebGPU's own types: those of TypeScript's DOM library, or of the package `@webgpu/types`.

export type Shape = readonly number[];

/** The tensors whose shapes all else follows from. */
export interface Shapes {
  x: Shape;
  x_scale: Shape;
  x_zero_point: Shape;
}

/** A number for each tensor. */
export interface Numbers {
  x: number;
  x_scale: number;
  x_zero_point: number;
  y: number;
}

/** A tensor on the device: a buffer, or a place in one, at a multiple of 256 bytes. */
export type Place = GPUBuffer | { buffer: GPUBuffer; offset?: number };

export interface Buffers {
  x: Place;
  x_scale: Place;
  x_zero_point: Place;
  y: Place;
}

/** A tensor in memory, its elements from the lowest bits of u32 words on; the last word need not be whole. */
export interface Tensor {
  data: ArrayBufferView;
  shape: Shape;
}

export interface Inputs {
  x: Tensor;
  x_scale: Tensor;
  x_zero_point: Tensor;
}

export interface Outputs {
  y: Uint16Array;
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

export const wgsl: string;
