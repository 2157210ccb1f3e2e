/*
 * DequantizeLinear: the host's side of the kernel `blocked`.
 *
 *     x             input   int4
 *     x_scale       input   float16
 *     x_zero_point  input   int4
 *     y             output  float16
 *
 * It runs on a device, buffers and a queue that are yours, and needs nothing but webgpu.h. All in it is static.
 *
 *     blocked_create(device, &kernel);
 *     const char *error = blocked_make_plan(&shapes, limits.maxStorageBufferBindingSize, &plan);
 *     blocked_write_uniforms(queue, uniforms, &plan);
 *     blocked_encode(&kernel, pass, tensors, uniforms, &plan);
 */

#ifndef BLOCKED_H
#define BLOCKED_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus) && __cplusplus < 201103L && !defined(_MSC_VER) /* which has another number there, whatever it compiles */
#error "blocked: this header needs C++11 or later"
#elif !defined(__cplusplus) && !defined(static_assert) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "blocked: this header needs C11 or later"
#endif

#ifndef WEBGPU_H_
#include <webgpu/webgpu.h>
#endif

/* What the headers of all kernels share. */
#ifndef QGEN_GLUE_1
#define QGEN_GLUE_1

/* The dimensions of a tensor. */
typedef struct qgen_shape {
    const int64_t *dims;
    int64_t rank;
} qgen_shape;

/* A tensor on the device: a place in a buffer, at a multiple of 256 bytes. */
typedef struct qgen_place {
    WGPUBuffer buffer;
    uint64_t offset;
} qgen_place;

/* A binding: the number of its tensor, or -1 for a uniform, which lies so far into the uniforms of a run. */
typedef struct qgen_binding {
    uint32_t binding;
    WGPUBufferBindingType type;
    int tensor;
    uint64_t uniform_offset;
    uint64_t uniform_size;
} qgen_binding;

static inline int64_t qgen_min(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t qgen_max(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t qgen_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int64_t qgen_product(qgen_shape shape, int64_t from, int64_t to) {
    int64_t product = 1;
    for (int64_t i = from; i < to && i < shape.rank; ++i) {
        product *= shape.dims[i];
    }
    return product;
}

/* Whether two tensors have the same rank and the same dimensions, all but the one at the index, which may count from the last. */
static inline bool qgen_same_dims_except(qgen_shape shape, qgen_shape other, int64_t index) {
    bool same = shape.rank == other.rank;
    for (int64_t i = 0; same && i < shape.rank; ++i) {
        same = i == index || i == index + shape.rank || shape.dims[i] == other.dims[i];
    }
    return same;
}

/* Whether no dimension is negative and the tensor has at most 2^40 elements, so that no number here overflows. */
static inline bool qgen_is_shape(qgen_shape shape) {
    int64_t product = 1;
    for (int64_t i = 0; i < shape.rank; ++i) {
        if (shape.dims[i] < 0 || qgen_max(shape.dims[i], 1) > (INT64_C(1) << 40) / product) {
            return false;
        }
        product *= qgen_max(shape.dims[i], 1);
    }
    return true;
}

#endif

/* The tensors. */
enum {
    BLOCKED_X,
    BLOCKED_X_SCALE,
    BLOCKED_X_ZERO_POINT,
    BLOCKED_Y,
    BLOCKED_TENSORS
};

enum { BLOCKED_GROUP = 0, BLOCKED_PASSES = 1, BLOCKED_UNIFORM_BYTES = 256 };

/* The tensors whose shapes all else follows from. */
typedef struct blocked_shapes {
    qgen_shape x;
    qgen_shape x_scale;
    qgen_shape x_zero_point;
} blocked_shapes;

/* What follows from the shapes, and what all else follows from. */
typedef struct blocked_extents {
    int64_t outer;
    int64_t axis;
    int64_t count;
    int64_t start;
} blocked_extents;

/* The contents of the uniform buffer `params`. */
typedef struct blocked_params {
    uint32_t n;
    uint32_t units;
    uint32_t groups_x;
    uint32_t axis;
    uint32_t inner;
    uint32_t blocks;
    uint32_t axis_start;
} blocked_params;

static_assert(offsetof(blocked_params, n) == 0, "offset of n");
static_assert(offsetof(blocked_params, units) == 4, "offset of units");
static_assert(offsetof(blocked_params, groups_x) == 8, "offset of groups_x");
static_assert(offsetof(blocked_params, axis) == 12, "offset of axis");
static_assert(offsetof(blocked_params, inner) == 16, "offset of inner");
static_assert(offsetof(blocked_params, blocks) == 20, "offset of blocks");
static_assert(offsetof(blocked_params, axis_start) == 24, "offset of axis_start");
static_assert(sizeof(blocked_params) == 28, "size of params");

/* How tensors are computed: counts of elements and sizes in bytes, and in how many runs; in none where there is nothing to compute. */
typedef struct blocked_plan {
    int64_t counts[BLOCKED_TENSORS];
    int64_t sizes[BLOCKED_TENSORS];
    int64_t runs;
    blocked_extents extents;
    int64_t length; /* elements of one run */
} blocked_plan;

/* One part of the tensors: where it begins in each and how much of it is bound, in bytes; uniforms, and the workgroups of each pass. */
typedef struct blocked_run {
    int64_t offsets[BLOCKED_TENSORS];
    int64_t sizes[BLOCKED_TENSORS];
    blocked_params params;
    uint32_t dispatches[BLOCKED_PASSES][3];
} blocked_run;

/* The kernel on a device: made once, for all shapes. */
typedef struct blocked_kernel {
    WGPUDevice device;
    WGPUBindGroupLayout empty;
    WGPUBindGroupLayout layouts[BLOCKED_PASSES];
    WGPUComputePipeline pipelines[BLOCKED_PASSES];
} blocked_kernel;

static inline const char *blocked_read_shapes(const blocked_shapes *shapes, blocked_extents *extents) {
    if (!qgen_is_shape(shapes->x)) return "x has no shape, or is too large";
    if (!qgen_is_shape(shapes->x_scale)) return "x_scale has no shape, or is too large";
    if (!qgen_is_shape(shapes->x_zero_point)) return "x_zero_point has no shape, or is too large";
    if (!(shapes->x.rank >= 1)) return "needs rank(x) >= 1";
    extents->outer = qgen_product(shapes->x, 0, shapes->x.rank - 1);
    extents->axis = shapes->x.dims[shapes->x.rank - 1];
    const int64_t blocks = qgen_ceil_div(extents->axis, 32);
    const int64_t groups = extents->outer * blocks;
    if (!(qgen_product(shapes->x_scale, 0, shapes->x_scale.rank) == groups)) return "needs numel(x_scale) = groups";
    if (!(qgen_same_dims_except(shapes->x_scale, shapes->x, -1))) return "needs x_scale.shape = x.shape except dimension -1";
    if (!(shapes->x_scale.dims[shapes->x_scale.rank - 1] == blocks)) return "needs x_scale.shape[-1] = blocks";
    if (!(qgen_product(shapes->x_zero_point, 0, shapes->x_zero_point.rank) == groups)) return "needs numel(x_zero_point) = groups";
    if (!(qgen_same_dims_except(shapes->x_zero_point, shapes->x, -1))) return "needs x_zero_point.shape = x.shape except dimension -1";
    if (!(shapes->x_zero_point.dims[shapes->x_zero_point.rank - 1] == blocks)) return "needs x_zero_point.shape[-1] = blocks";
    return NULL;
}

static inline void blocked_measure(const blocked_extents *extents, int64_t *counts, int64_t *sizes) {
    const int64_t count = extents->outer * extents->axis;
    const int64_t blocks = qgen_ceil_div(extents->axis, 32);
    const int64_t groups = extents->outer * blocks;
    counts[BLOCKED_X] = count;
    counts[BLOCKED_X_SCALE] = groups;
    counts[BLOCKED_X_ZERO_POINT] = groups;
    counts[BLOCKED_Y] = count;
    sizes[BLOCKED_X] = 4 * qgen_ceil_div(count, 8);
    sizes[BLOCKED_X_SCALE] = 4 * qgen_ceil_div(groups, 2);
    sizes[BLOCKED_X_ZERO_POINT] = 4 * qgen_ceil_div(groups, 8);
    sizes[BLOCKED_Y] = 4 * qgen_ceil_div(count, 2);
}

static inline const char *blocked_dispatch(const blocked_extents *extents, blocked_run *run) {
    if (!(extents->count <= INT64_C(4294967168))) return "needs count <= 4294967168";
    const int64_t invocations = qgen_ceil_div(extents->count, 64);
    const int64_t workgroups = qgen_ceil_div(invocations, 128);
    const int64_t workgroups_x = qgen_min(workgroups, 65535);
    if (!(qgen_ceil_div(workgroups, qgen_max(workgroups_x, 1)) <= 65535)) return "needs ceil(workgroups / max(workgroups_x, 1)) <= 65535";
    const int64_t blocks = qgen_ceil_div(extents->axis, 32);
    const int64_t size = qgen_min(32, extents->axis);
    const int64_t is_ragged = (int64_t)(extents->outer >= 2 && extents->axis % size >= 1);
    const int64_t unit_groups = qgen_max(1, is_ragged * blocks);
    const int64_t steps = qgen_max(1, 512 * (int64_t)(unit_groups % 512 >= 1));
    const int64_t unit_rows = qgen_min(extents->axis, size + is_ragged * extents->axis);
    const int64_t step_rows = steps * unit_rows;
    const int64_t step = extents->start / step_rows;
    const int64_t axis_start = extents->start - step * step_rows;
    if ((extents->count | invocations | workgroups_x | extents->axis | blocks | axis_start) >> 32 != 0) return "a uniform is no u32";
    run->params.n = (uint32_t)extents->count;
    run->params.units = (uint32_t)invocations;
    run->params.groups_x = (uint32_t)workgroups_x;
    run->params.axis = (uint32_t)extents->axis;
    run->params.inner = 1;
    run->params.blocks = (uint32_t)blocks;
    run->params.axis_start = (uint32_t)axis_start;
    run->dispatches[0][0] = (uint32_t)workgroups_x;
    run->dispatches[0][1] = (uint32_t)qgen_ceil_div(workgroups, workgroups_x);
    run->dispatches[0][2] = 1;
    return NULL;
}

/* Says where a run begins in each tensor and how much of it it binds, in bytes. */
static inline void blocked_bind(const blocked_extents *extents, blocked_run *run) {
    const int64_t size = qgen_min(32, extents->axis);
    const int64_t is_ragged = (int64_t)(extents->outer >= 2 && extents->axis % size >= 1);
    const int64_t blocks = qgen_ceil_div(extents->axis, 32);
    const int64_t unit_groups = qgen_max(1, is_ragged * blocks);
    const int64_t steps = qgen_max(1, 512 * (int64_t)(unit_groups % 512 >= 1));
    const int64_t unit_rows = qgen_min(extents->axis, size + is_ragged * extents->axis);
    const int64_t step_rows = steps * unit_rows;
    const int64_t step = extents->start / step_rows;
    const int64_t first_group = step * steps * unit_groups;
    const int64_t axis_start = extents->start - step * step_rows;
    const int64_t end_row = axis_start + extents->count;
    const int64_t run_blocks = end_row / extents->axis * blocks + qgen_ceil_div(end_row % extents->axis, size);
    run->offsets[BLOCKED_X] = extents->start / 2;
    run->offsets[BLOCKED_X_SCALE] = 2 * first_group;
    run->offsets[BLOCKED_X_ZERO_POINT] = first_group / 2;
    run->offsets[BLOCKED_Y] = 2 * extents->start;
    run->sizes[BLOCKED_X] = 4 * qgen_ceil_div(extents->count, 8);
    run->sizes[BLOCKED_X_SCALE] = 4 * qgen_ceil_div(run_blocks, 2);
    run->sizes[BLOCKED_X_ZERO_POINT] = 4 * qgen_ceil_div(run_blocks, 8);
    run->sizes[BLOCKED_Y] = 4 * qgen_ceil_div(extents->count, 2);
}

/* Returns how many elements each of several runs has, but the last; 0 where no part is small enough. */
static inline int64_t blocked_run_length(const blocked_extents *extents, int64_t limit) {
    const int64_t size = qgen_min(32, extents->axis);
    const int64_t is_ragged = (int64_t)(extents->outer >= 2 && extents->axis % size >= 1);
    const int64_t blocks = qgen_ceil_div(extents->axis, 32);
    const int64_t unit_groups = qgen_max(1, is_ragged * blocks);
    const int64_t steps = qgen_max(1, 512 * (int64_t)(unit_groups % 512 >= 1));
    const int64_t unit_rows = qgen_min(extents->axis, size + is_ragged * extents->axis);
    const int64_t step_rows = steps * unit_rows;
    const int64_t reach = qgen_min(extents->count, step_rows);
    const int64_t limit_words = qgen_min(limit, INT64_C(1099511627776)) / 4;
    const int64_t fitting = 512 * (limit_words / 256);
    const int64_t groups = extents->outer * blocks;
    const int64_t all_groups_fit = (int64_t)(qgen_ceil_div(groups, 2) <= limit_words);
    const int64_t all_units = qgen_ceil_div(extents->outer * extents->axis, unit_rows);
    const int64_t units = qgen_min(2 * limit_words / unit_groups, all_units);
    const int64_t unit_length = qgen_max(units - steps, 0) * unit_rows;
    const int64_t length_by_groups = qgen_max(INT64_C(2147483648) * all_groups_fit, 512 * (unit_length / 512));
    return (int64_t)(reach <= INT64_C(2147483648)) * qgen_min(fitting, length_by_groups);
}

/* Says what one run of a plan binds and dispatches. Returns NULL, or what is wrong. */
static inline const char *blocked_make_run(const blocked_plan *plan, int64_t index, blocked_run *run) {
    blocked_extents extents = plan->extents;
    extents.start = index * plan->length;
    extents.count = qgen_min(plan->length, extents.count - extents.start);
    blocked_bind(&extents, run);
    return blocked_dispatch(&extents, run);
}

/*
 * Plans the computation of tensors of these shapes, in several runs where one is larger than the device binds, which its limit
 * maxStorageBufferBindingSize says. Returns NULL, or what is wrong.
 */
static inline const char *blocked_make_plan(const blocked_shapes *shapes, uint64_t max_binding_size, blocked_plan *plan) {
    const int64_t limit = max_binding_size < INT64_MAX ? (int64_t)max_binding_size : INT64_MAX;
    const char *error = blocked_read_shapes(shapes, &plan->extents);
    if (error != NULL) {
        return error;
    }
    blocked_measure(&plan->extents, plan->counts, plan->sizes);
    plan->runs = 0;
    if (plan->sizes[BLOCKED_Y] == 0) {
        return NULL;
    }
    plan->extents.start = 0;
    plan->extents.count = plan->counts[BLOCKED_X];
    plan->length = plan->extents.count;
    bool fits = plan->length <= INT64_C(4294967168);
    for (int i = 0; i < BLOCKED_TENSORS; ++i) {
        fits = fits && plan->sizes[i] <= limit;
    }
    if (!fits) {
        plan->length = blocked_run_length(&plan->extents, limit);
        if (plan->length == 0) {
            return "no part of the tensors is small enough for a binding";
        }
    }
    plan->runs = qgen_ceil_div(plan->extents.count, plan->length);
    blocked_run run; /* tells of all: the length is such that none of several is too large */
    error = blocked_make_run(plan, 0, &run);
    for (int i = 0; i < BLOCKED_TENSORS && error == NULL; ++i) {
        error = run.sizes[i] == 0 ? "a tensor has no elements" : run.sizes[i] > limit ? "a tensor is too large for a binding" : NULL;
    }
    return error;
}

/* The bindings of all passes; those of pass i end where those of the next begin. */
static const qgen_binding blocked_bindings[] = {
    { 0, WGPUBufferBindingType_ReadOnlyStorage, BLOCKED_X, 0, 0 },
    { 1, WGPUBufferBindingType_ReadOnlyStorage, BLOCKED_X_SCALE, 0, 0 },
    { 2, WGPUBufferBindingType_ReadOnlyStorage, BLOCKED_X_ZERO_POINT, 0, 0 },
    { 3, WGPUBufferBindingType_Storage, BLOCKED_Y, 0, 0 },
    { 4, WGPUBufferBindingType_Uniform, -1, 0, 28 },
};

static const size_t blocked_binding_starts[] = { 0, 5 };

static const char *const blocked_entry_points[] = { "main" };

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings" /* longer than the least that C promises; every compiler takes it */
#endif
static const char blocked_wgsl[] =
    "// The text of the kernel stands here: `backticks`, ${braces}, \"quotes\", \\backslashes, \"\"\"more\"\"\", what?\?/ and */ have to come.\n"
    "@compute @workgroup_size(64)\n"
    "fn main() {}\n"
    ;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Makes the kernel on a device that is the caller's. */
static inline void blocked_create(WGPUDevice device, blocked_kernel *kernel) {
    WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
    source.code.data = blocked_wgsl;
    source.code.length = sizeof blocked_wgsl - 1;
    WGPUShaderModuleDescriptor module_descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
    module_descriptor.nextInChain = &source.chain;
    WGPUShaderModule module = wgpuDeviceCreateShaderModule(device, &module_descriptor);
    WGPUBindGroupLayoutDescriptor empty_descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
    kernel->device = device;
    kernel->empty = wgpuDeviceCreateBindGroupLayout(device, &empty_descriptor);
    for (int step = 0; step < BLOCKED_PASSES; ++step) {
        WGPUBindGroupLayoutEntry entries[5];
        WGPUBindGroupLayoutDescriptor layout_descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
        for (size_t i = blocked_binding_starts[step]; i < blocked_binding_starts[step + 1]; ++i) {
            WGPUBindGroupLayoutEntry entry = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
            entry.binding = blocked_bindings[i].binding;
            entry.visibility = WGPUShaderStage_Compute;
            entry.buffer.type = blocked_bindings[i].type;
            entries[layout_descriptor.entryCount++] = entry;
        }
        layout_descriptor.entries = entries;
        kernel->layouts[step] = wgpuDeviceCreateBindGroupLayout(device, &layout_descriptor);
        WGPUBindGroupLayout groups[BLOCKED_GROUP + 1];
        for (int i = 0; i < BLOCKED_GROUP; ++i) {
            groups[i] = kernel->empty;
        }
        groups[BLOCKED_GROUP] = kernel->layouts[step];
        WGPUPipelineLayoutDescriptor pipeline_layout_descriptor = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
        pipeline_layout_descriptor.bindGroupLayoutCount = BLOCKED_GROUP + 1;
        pipeline_layout_descriptor.bindGroupLayouts = groups;
        WGPUPipelineLayout layout = wgpuDeviceCreatePipelineLayout(device, &pipeline_layout_descriptor);
        WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
        descriptor.layout = layout;
        descriptor.compute.module = module;
        descriptor.compute.entryPoint.data = blocked_entry_points[step];
        descriptor.compute.entryPoint.length = WGPU_STRLEN;
        kernel->pipelines[step] = wgpuDeviceCreateComputePipeline(device, &descriptor);
        wgpuPipelineLayoutRelease(layout);
    }
    wgpuShaderModuleRelease(module);
}

static inline void blocked_release(blocked_kernel *kernel) {
    for (int step = 0; step < BLOCKED_PASSES; ++step) {
        wgpuComputePipelineRelease(kernel->pipelines[step]);
        wgpuBindGroupLayoutRelease(kernel->layouts[step]);
    }
    wgpuBindGroupLayoutRelease(kernel->empty);
}

/* Writes the uniforms of all runs: plan->runs times BLOCKED_UNIFORM_BYTES, in a buffer with the usages Uniform and CopyDst. */
static inline void blocked_write_uniforms(WGPUQueue queue, qgen_place place, const blocked_plan *plan) {
    for (int64_t index = 0; index < plan->runs; ++index) {
        const uint64_t offset = place.offset + (uint64_t)index * BLOCKED_UNIFORM_BYTES;
        blocked_run run;
        blocked_make_run(plan, index, &run);
        wgpuQueueWriteBuffer(queue, place.buffer, offset + 0, &run.params, sizeof run.params);
    }
}

/* Encodes the runs of a plan; the uniforms are where they were written. Tensors go by their numbers, and need the usage Storage. */
static inline void blocked_encode(
    const blocked_kernel *kernel, WGPUComputePassEncoder pass, const qgen_place *tensors, qgen_place uniforms, const blocked_plan *plan) {
    for (int64_t index = 0; index < plan->runs; ++index) {
        blocked_run run;
        blocked_make_run(plan, index, &run);
        for (int step = 0; step < BLOCKED_PASSES; ++step) {
            WGPUBindGroupEntry entries[5];
            WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
            for (size_t i = blocked_binding_starts[step]; i < blocked_binding_starts[step + 1]; ++i) {
                const qgen_binding *bound = &blocked_bindings[i];
                WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
                entry.binding = bound->binding;
                if (bound->tensor < 0) {
                    entry.buffer = uniforms.buffer;
                    entry.offset = uniforms.offset + (uint64_t)index * BLOCKED_UNIFORM_BYTES + bound->uniform_offset;
                    entry.size = bound->uniform_size;
                    entries[descriptor.entryCount++] = entry;
                    continue;
                }
                entry.buffer = tensors[bound->tensor].buffer;
                entry.offset = tensors[bound->tensor].offset + (uint64_t)run.offsets[bound->tensor];
                entry.size = (uint64_t)run.sizes[bound->tensor];
                entries[descriptor.entryCount++] = entry;
            }
            descriptor.layout = kernel->layouts[step];
            descriptor.entries = entries;
            WGPUBindGroup group = wgpuDeviceCreateBindGroup(kernel->device, &descriptor);
            wgpuComputePassEncoderSetPipeline(pass, kernel->pipelines[step]);
            for (int i = 0; i < BLOCKED_GROUP; ++i) {
                WGPUBindGroupDescriptor empty_descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
                empty_descriptor.layout = kernel->empty;
                WGPUBindGroup empty = wgpuDeviceCreateBindGroup(kernel->device, &empty_descriptor);
                wgpuComputePassEncoderSetBindGroup(pass, (uint32_t)i, empty, 0, NULL);
                wgpuBindGroupRelease(empty);
            }
            wgpuComputePassEncoderSetBindGroup(pass, BLOCKED_GROUP, group, 0, NULL);
            wgpuComputePassEncoderDispatchWorkgroups(pass, run.dispatches[step][0], run.dispatches[step][1], run.dispatches[step][2]);
            wgpuBindGroupRelease(group);
        }
    }
}

#endif
