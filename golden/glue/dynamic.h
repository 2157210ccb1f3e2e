/*
 * DynamicQuantizeLinear: the host's side of the kernel `dynamic`.
 *
 *     x             input    float32
 *     x_max         scratch  uint32
 *     x_min         scratch  uint32
 *     y             output   uint8
 *     y_scale       output   float32
 *     y_zero_point  output   uint8
 *
 * It runs on a device, buffers and a queue that are yours, and needs nothing but webgpu.h. All in it is static.
 *
 *     dynamic_create(device, &kernel);
 *     const char *error = dynamic_make_plan(&shapes, limits.maxStorageBufferBindingSize, &plan);
 *     dynamic_write_uniforms(queue, uniforms, &plan);
 *     dynamic_encode(&kernel, pass, tensors, uniforms, &plan);
 */

#ifndef DYNAMIC_H
#define DYNAMIC_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus) && __cplusplus < 201103L && !defined(_MSC_VER) /* which has another number there, whatever it compiles */
#error "dynamic: this header needs C++11 or later"
#elif !defined(__cplusplus) && !defined(static_assert) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "dynamic: this header needs C11 or later"
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
    DYNAMIC_X,
    DYNAMIC_X_MAX,
    DYNAMIC_X_MIN,
    DYNAMIC_Y,
    DYNAMIC_Y_SCALE,
    DYNAMIC_Y_ZERO_POINT,
    DYNAMIC_TENSORS
};

enum { DYNAMIC_GROUP = 1, DYNAMIC_PASSES = 4, DYNAMIC_UNIFORM_BYTES = 256 };

/* The tensors whose shapes all else follows from. */
typedef struct dynamic_shapes {
    qgen_shape x;
} dynamic_shapes;

/* What follows from the shapes, and what all else follows from. */
typedef struct dynamic_extents {
    int64_t count;
} dynamic_extents;

/* The contents of the uniform buffer `params`. */
typedef struct dynamic_params {
    uint32_t n;
    uint32_t units;
    uint32_t groups_x;
    uint32_t groups;
    uint32_t group_units;
    uint32_t group_groups_x;
    uint32_t reduce_units;
    uint32_t reduce_groups_x;
} dynamic_params;

static_assert(offsetof(dynamic_params, n) == 0, "offset of n");
static_assert(offsetof(dynamic_params, units) == 4, "offset of units");
static_assert(offsetof(dynamic_params, groups_x) == 8, "offset of groups_x");
static_assert(offsetof(dynamic_params, groups) == 12, "offset of groups");
static_assert(offsetof(dynamic_params, group_units) == 16, "offset of group_units");
static_assert(offsetof(dynamic_params, group_groups_x) == 20, "offset of group_groups_x");
static_assert(offsetof(dynamic_params, reduce_units) == 24, "offset of reduce_units");
static_assert(offsetof(dynamic_params, reduce_groups_x) == 28, "offset of reduce_groups_x");
static_assert(sizeof(dynamic_params) == 32, "size of params");

/* How tensors are computed: counts of elements and sizes in bytes, and in how many runs; in none where there is nothing to compute. */
typedef struct dynamic_plan {
    int64_t counts[DYNAMIC_TENSORS];
    int64_t sizes[DYNAMIC_TENSORS];
    int64_t runs;
    dynamic_extents extents;
} dynamic_plan;

/* One part of the tensors: where it begins in each and how much of it is bound, in bytes; uniforms, and the workgroups of each pass. */
typedef struct dynamic_run {
    int64_t offsets[DYNAMIC_TENSORS];
    int64_t sizes[DYNAMIC_TENSORS];
    dynamic_params params;
    uint32_t dispatches[DYNAMIC_PASSES][3];
} dynamic_run;

/* The kernel on a device: made once, for all shapes. */
typedef struct dynamic_kernel {
    WGPUDevice device;
    WGPUBindGroupLayout empty;
    WGPUBindGroupLayout layouts[DYNAMIC_PASSES];
    WGPUComputePipeline pipelines[DYNAMIC_PASSES];
} dynamic_kernel;

/* The word of an output that has elements even where there is nothing to compute, and no run writes it. */
static inline uint32_t dynamic_on_empty(int tensor) {
    switch (tensor) {
    case DYNAMIC_Y_SCALE: return 0x3f800000;
    case DYNAMIC_Y_ZERO_POINT: return 0x00000000;
    default: return 0;
    }
}

static inline const char *dynamic_read_shapes(const dynamic_shapes *shapes, dynamic_extents *extents) {
    if (!qgen_is_shape(shapes->x)) return "x has no shape, or is too large";
    extents->count = qgen_product(shapes->x, 0, shapes->x.rank);
    return NULL;
}

static inline void dynamic_measure(const dynamic_extents *extents, int64_t *counts, int64_t *sizes) {
    counts[DYNAMIC_X] = extents->count;
    counts[DYNAMIC_X_MAX] = 1;
    counts[DYNAMIC_X_MIN] = 1;
    counts[DYNAMIC_Y] = extents->count;
    counts[DYNAMIC_Y_SCALE] = 1;
    counts[DYNAMIC_Y_ZERO_POINT] = 1;
    sizes[DYNAMIC_X] = 4 * extents->count;
    sizes[DYNAMIC_X_MAX] = 4;
    sizes[DYNAMIC_X_MIN] = 4;
    sizes[DYNAMIC_Y] = 4 * qgen_ceil_div(extents->count, 4);
    sizes[DYNAMIC_Y_SCALE] = 4;
    sizes[DYNAMIC_Y_ZERO_POINT] = 4;
}

static inline const char *dynamic_dispatch(const dynamic_extents *extents, dynamic_run *run) {
    if (!(extents->count <= INT64_C(4294967168))) return "needs count <= 4294967168";
    const int64_t invocations = qgen_ceil_div(extents->count, 64);
    const int64_t workgroups = qgen_ceil_div(invocations, 128);
    const int64_t workgroups_x = qgen_min(workgroups, 65535);
    if (!(qgen_ceil_div(workgroups, qgen_max(workgroups_x, 1)) <= 65535)) return "needs ceil(workgroups / max(workgroups_x, 1)) <= 65535";
    const int64_t reduce_invocations = qgen_ceil_div(extents->count, 64);
    const int64_t reduce_workgroups = qgen_ceil_div(reduce_invocations, 128);
    const int64_t reduce_workgroups_x = qgen_min(reduce_workgroups, 65535);
    if (!(qgen_ceil_div(reduce_workgroups, qgen_max(reduce_workgroups_x, 1)) <= 65535)) return "needs ceil(reduce_workgroups / max(reduce_workgroups_x, 1)) <= 65535";
    if ((extents->count | invocations | workgroups_x | reduce_invocations | reduce_workgroups_x) >> 32 != 0) return "a uniform is no u32";
    run->params.n = (uint32_t)extents->count;
    run->params.units = (uint32_t)invocations;
    run->params.groups_x = (uint32_t)workgroups_x;
    run->params.groups = 1;
    run->params.group_units = 1;
    run->params.group_groups_x = 1;
    run->params.reduce_units = (uint32_t)reduce_invocations;
    run->params.reduce_groups_x = (uint32_t)reduce_workgroups_x;
    run->dispatches[0][0] = 1;
    run->dispatches[0][1] = 1;
    run->dispatches[0][2] = 1;
    run->dispatches[1][0] = (uint32_t)reduce_workgroups_x;
    run->dispatches[1][1] = (uint32_t)qgen_ceil_div(reduce_workgroups, reduce_workgroups_x);
    run->dispatches[1][2] = 1;
    run->dispatches[2][0] = 1;
    run->dispatches[2][1] = 1;
    run->dispatches[2][2] = 1;
    run->dispatches[3][0] = (uint32_t)workgroups_x;
    run->dispatches[3][1] = (uint32_t)qgen_ceil_div(workgroups, workgroups_x);
    run->dispatches[3][2] = 1;
    return NULL;
}

/* Says what one run of a plan binds and dispatches. Returns NULL, or what is wrong. */
static inline const char *dynamic_make_run(const dynamic_plan *plan, int64_t index, dynamic_run *run) {
    dynamic_extents extents = plan->extents;
    (void)index; /* there is only one */
    for (int i = 0; i < DYNAMIC_TENSORS; ++i) {
        run->offsets[i] = 0;
        run->sizes[i] = plan->sizes[i];
    }
    return dynamic_dispatch(&extents, run);
}

/*
 * Plans the computation of tensors of these shapes, in several runs where one is larger than the device binds, which its limit
 * maxStorageBufferBindingSize says. Returns NULL, or what is wrong.
 */
static inline const char *dynamic_make_plan(const dynamic_shapes *shapes, uint64_t max_binding_size, dynamic_plan *plan) {
    const int64_t limit = max_binding_size < INT64_MAX ? (int64_t)max_binding_size : INT64_MAX;
    const char *error = dynamic_read_shapes(shapes, &plan->extents);
    if (error != NULL) {
        return error;
    }
    dynamic_measure(&plan->extents, plan->counts, plan->sizes);
    plan->runs = 0;
    if (plan->sizes[DYNAMIC_Y] == 0 || plan->sizes[DYNAMIC_Y_SCALE] == 0 || plan->sizes[DYNAMIC_Y_ZERO_POINT] == 0) {
        return NULL;
    }
    plan->runs = 1;
    dynamic_run run; /* tells of all: the length is such that none of several is too large */
    error = dynamic_make_run(plan, 0, &run);
    for (int i = 0; i < DYNAMIC_TENSORS && error == NULL; ++i) {
        error = run.sizes[i] == 0 ? "a tensor has no elements" : run.sizes[i] > limit ? "a tensor is too large for a binding" : NULL;
    }
    return error;
}

/* The bindings of all passes; those of pass i end where those of the next begin. */
static const qgen_binding dynamic_bindings[] = {
    { 1, WGPUBufferBindingType_Storage, DYNAMIC_X_MAX, 0, 0 },
    { 2, WGPUBufferBindingType_Storage, DYNAMIC_X_MIN, 0, 0 },
    { 6, WGPUBufferBindingType_Uniform, -1, 0, 32 },
    { 0, WGPUBufferBindingType_ReadOnlyStorage, DYNAMIC_X, 0, 0 },
    { 1, WGPUBufferBindingType_Storage, DYNAMIC_X_MAX, 0, 0 },
    { 2, WGPUBufferBindingType_Storage, DYNAMIC_X_MIN, 0, 0 },
    { 6, WGPUBufferBindingType_Uniform, -1, 0, 32 },
    { 1, WGPUBufferBindingType_Storage, DYNAMIC_X_MAX, 0, 0 },
    { 2, WGPUBufferBindingType_Storage, DYNAMIC_X_MIN, 0, 0 },
    { 4, WGPUBufferBindingType_Storage, DYNAMIC_Y_SCALE, 0, 0 },
    { 5, WGPUBufferBindingType_Storage, DYNAMIC_Y_ZERO_POINT, 0, 0 },
    { 6, WGPUBufferBindingType_Uniform, -1, 0, 32 },
    { 0, WGPUBufferBindingType_ReadOnlyStorage, DYNAMIC_X, 0, 0 },
    { 3, WGPUBufferBindingType_Storage, DYNAMIC_Y, 0, 0 },
    { 4, WGPUBufferBindingType_Storage, DYNAMIC_Y_SCALE, 0, 0 },
    { 5, WGPUBufferBindingType_Storage, DYNAMIC_Y_ZERO_POINT, 0, 0 },
    { 6, WGPUBufferBindingType_Uniform, -1, 0, 32 },
};

static const size_t dynamic_binding_starts[] = { 0, 3, 7, 12, 17 };

static const char *const dynamic_entry_points[] = { "clear", "reduce", "finish", "main" };

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings" /* longer than the least that C promises; every compiler takes it */
#endif
static const char dynamic_wgsl[] =
    "// The text of the kernel stands here: `backticks`, ${braces}, \"quotes\", \\backslashes, \"\"\"more\"\"\", what?\?/ and */ have to come.\n"
    "@compute @workgroup_size(64)\n"
    "fn main() {}\n"
    ;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Makes the kernel on a device that is the caller's. */
static inline void dynamic_create(WGPUDevice device, dynamic_kernel *kernel) {
    WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
    source.code.data = dynamic_wgsl;
    source.code.length = sizeof dynamic_wgsl - 1;
    WGPUShaderModuleDescriptor module_descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
    module_descriptor.nextInChain = &source.chain;
    WGPUShaderModule module = wgpuDeviceCreateShaderModule(device, &module_descriptor);
    WGPUBindGroupLayoutDescriptor empty_descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
    kernel->device = device;
    kernel->empty = wgpuDeviceCreateBindGroupLayout(device, &empty_descriptor);
    for (int step = 0; step < DYNAMIC_PASSES; ++step) {
        WGPUBindGroupLayoutEntry entries[5];
        WGPUBindGroupLayoutDescriptor layout_descriptor = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
        for (size_t i = dynamic_binding_starts[step]; i < dynamic_binding_starts[step + 1]; ++i) {
            WGPUBindGroupLayoutEntry entry = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
            entry.binding = dynamic_bindings[i].binding;
            entry.visibility = WGPUShaderStage_Compute;
            entry.buffer.type = dynamic_bindings[i].type;
            entries[layout_descriptor.entryCount++] = entry;
        }
        layout_descriptor.entries = entries;
        kernel->layouts[step] = wgpuDeviceCreateBindGroupLayout(device, &layout_descriptor);
        WGPUBindGroupLayout groups[DYNAMIC_GROUP + 1];
        for (int i = 0; i < DYNAMIC_GROUP; ++i) {
            groups[i] = kernel->empty;
        }
        groups[DYNAMIC_GROUP] = kernel->layouts[step];
        WGPUPipelineLayoutDescriptor pipeline_layout_descriptor = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
        pipeline_layout_descriptor.bindGroupLayoutCount = DYNAMIC_GROUP + 1;
        pipeline_layout_descriptor.bindGroupLayouts = groups;
        WGPUPipelineLayout layout = wgpuDeviceCreatePipelineLayout(device, &pipeline_layout_descriptor);
        WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
        descriptor.layout = layout;
        descriptor.compute.module = module;
        descriptor.compute.entryPoint.data = dynamic_entry_points[step];
        descriptor.compute.entryPoint.length = WGPU_STRLEN;
        kernel->pipelines[step] = wgpuDeviceCreateComputePipeline(device, &descriptor);
        wgpuPipelineLayoutRelease(layout);
    }
    wgpuShaderModuleRelease(module);
}

static inline void dynamic_release(dynamic_kernel *kernel) {
    for (int step = 0; step < DYNAMIC_PASSES; ++step) {
        wgpuComputePipelineRelease(kernel->pipelines[step]);
        wgpuBindGroupLayoutRelease(kernel->layouts[step]);
    }
    wgpuBindGroupLayoutRelease(kernel->empty);
}

/* Writes the uniforms of all runs: plan->runs times DYNAMIC_UNIFORM_BYTES, in a buffer with the usages Uniform and CopyDst. */
static inline void dynamic_write_uniforms(WGPUQueue queue, qgen_place place, const dynamic_plan *plan) {
    for (int64_t index = 0; index < plan->runs; ++index) {
        const uint64_t offset = place.offset + (uint64_t)index * DYNAMIC_UNIFORM_BYTES;
        dynamic_run run;
        dynamic_make_run(plan, index, &run);
        wgpuQueueWriteBuffer(queue, place.buffer, offset + 0, &run.params, sizeof run.params);
    }
}

/* Encodes the runs of a plan; the uniforms are where they were written. Tensors go by their numbers, and need the usage Storage. */
static inline void dynamic_encode(
    const dynamic_kernel *kernel, WGPUComputePassEncoder pass, const qgen_place *tensors, qgen_place uniforms, const dynamic_plan *plan) {
    for (int64_t index = 0; index < plan->runs; ++index) {
        dynamic_run run;
        dynamic_make_run(plan, index, &run);
        for (int step = 0; step < DYNAMIC_PASSES; ++step) {
            WGPUBindGroupEntry entries[5];
            WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
            for (size_t i = dynamic_binding_starts[step]; i < dynamic_binding_starts[step + 1]; ++i) {
                const qgen_binding *bound = &dynamic_bindings[i];
                WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
                entry.binding = bound->binding;
                if (bound->tensor < 0) {
                    entry.buffer = uniforms.buffer;
                    entry.offset = uniforms.offset + (uint64_t)index * DYNAMIC_UNIFORM_BYTES + bound->uniform_offset;
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
            for (int i = 0; i < DYNAMIC_GROUP; ++i) {
                WGPUBindGroupDescriptor empty_descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
                empty_descriptor.layout = kernel->empty;
                WGPUBindGroup empty = wgpuDeviceCreateBindGroup(kernel->device, &empty_descriptor);
                wgpuComputePassEncoderSetBindGroup(pass, (uint32_t)i, empty, 0, NULL);
                wgpuBindGroupRelease(empty);
            }
            wgpuComputePassEncoderSetBindGroup(pass, DYNAMIC_GROUP, group, 0, NULL);
            wgpuComputePassEncoderDispatchWorkgroups(pass, run.dispatches[step][0], run.dispatches[step][1], run.dispatches[step][2]);
            wgpuBindGroupRelease(group);
        }
    }
}

#endif
