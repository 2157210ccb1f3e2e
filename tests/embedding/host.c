/*
 * Runs the generated headers on wgpu-native: `host WORKS RESULTS`. All numbers in the files are int64.
 *
 * WORKS: how many; then of each the kernel's number in cases.h, a limit for the device (0: the default one), rank and dimensions of each
 * shape, and of each tensor the size and the bytes (none for what is not an input). RESULTS: of each the runs, and of each tensor the size
 * and the bytes after the run, with the margins around them.
 */

#include "cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wgpu.h>

enum { MARGIN = 512, FILL = 0xa5 };

static void require(bool holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static int64_t read_number(FILE *in) {
    int64_t number;
    require(fread(&number, sizeof number, 1, in) == 1, "the works end early");
    return number;
}

static void write_number(FILE *out, int64_t number) {
    require(fwrite(&number, sizeof number, 1, out) == 1, "the results cannot be written");
}

static void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message, void *first, void *second) {
    (void)device, (void)type, (void)first, (void)second;
    fprintf(stderr, "%.*s\n", (int)message.length, message.data);
    exit(1);
}

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message, void *place, void *second) {
    (void)status, (void)message, (void)second;
    *(WGPUAdapter *)place = adapter;
}

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void *place, void *second) {
    (void)status, (void)message, (void)second;
    *(WGPUDevice *)place = device;
}

static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void *first, void *second) {
    (void)message, (void)first, (void)second;
    require(status == WGPUMapAsyncStatus_Success, "a buffer cannot be mapped");
}

static WGPUAdapter open_adapter(void) {
    WGPUInstance instance = wgpuCreateInstance(NULL);
    WGPURequestAdapterOptions options = WGPU_REQUEST_ADAPTER_OPTIONS_INIT;
    options.backendType = WGPUBackendType_Vulkan;
    WGPUAdapter adapter = NULL;
    WGPURequestAdapterCallbackInfo callback = WGPU_REQUEST_ADAPTER_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    callback.callback = on_adapter;
    callback.userdata1 = &adapter;
    wgpuInstanceRequestAdapter(instance, &options, callback);
    require(adapter != NULL, "there is no adapter");
    WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
    wgpuAdapterGetInfo(adapter, &info);
    printf("%.*s\n", (int)info.device.length, info.device.data);
    wgpuAdapterInfoFreeMembers(info);
    return adapter;
}

static WGPUDevice open_device(WGPUAdapter adapter, int64_t limit) {
    WGPULimits limits = WGPU_LIMITS_INIT;
    WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
    if (limit > 0) {
        limits.maxStorageBufferBindingSize = (uint64_t)limit;
        descriptor.requiredLimits = &limits;
    }
    descriptor.uncapturedErrorCallbackInfo.callback = on_error;
    WGPUDevice device = NULL;
    WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    callback.callback = on_device;
    callback.userdata1 = &device;
    wgpuAdapterRequestDevice(adapter, &descriptor, callback);
    require(device != NULL, "there is no device");
    return device;
}

static WGPUBuffer make_buffer(WGPUDevice device, uint64_t size, WGPUBufferUsage usage) {
    WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
    descriptor.size = size;
    descriptor.usage = usage;
    return wgpuDeviceCreateBuffer(device, &descriptor);
}

/* Returns the place of a tensor, with its bytes from the works where it is an input, in a buffer with a margin on either side. */
static qgen_place upload(WGPUDevice device, WGPUQueue queue, FILE *in, int64_t size) {
    const size_t total = (size_t)size + 2 * MARGIN;
    unsigned char *content = (unsigned char *)malloc(total);
    memset(content, FILL, total);
    const int64_t given = read_number(in);
    require(given == 0 || given == size, "an input has another size than its tensor");
    require(fread(content + MARGIN, 1, (size_t)given, in) == (size_t)given, "the works end early");
    qgen_place place = { make_buffer(device, total, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst), MARGIN };
    wgpuQueueWriteBuffer(queue, place.buffer, 0, content, total);
    free(content);
    return place;
}

static void submit(WGPUQueue queue, WGPUCommandEncoder encoder) {
    WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, NULL);
    wgpuQueueSubmit(queue, 1, &commands);
    wgpuCommandBufferRelease(commands);
    wgpuCommandEncoderRelease(encoder);
}

static void download(WGPUDevice device, WGPUQueue queue, FILE *out, qgen_place place, int64_t size) {
    const uint64_t total = (uint64_t)size + 2 * MARGIN;
    WGPUBuffer staging = make_buffer(device, total, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
    WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
    wgpuCommandEncoderCopyBufferToBuffer(encoder, place.buffer, 0, staging, 0, total);
    submit(queue, encoder);
    WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowSpontaneous;
    callback.callback = on_mapped;
    wgpuBufferMapAsync(staging, WGPUMapMode_Read, 0, total, callback);
    wgpuDevicePoll(device, true, NULL);
    write_number(out, (int64_t)total);
    require(fwrite(wgpuBufferGetConstMappedRange(staging, 0, total), 1, total, out) == total, "the results cannot be written");
    wgpuBufferUnmap(staging);
    wgpuBufferRelease(staging);
}

#define INCLUDE_CASES
#include "cases.h"

int main(int count, char **arguments) {
    require(count == 3, "usage: host WORKS RESULTS");
    FILE *in = fopen(arguments[1], "rb");
    FILE *out = fopen(arguments[2], "wb");
    require(in != NULL && out != NULL, "a file cannot be opened");
    WGPUAdapter adapter = open_adapter();
    const int64_t works = read_number(in);
    for (int64_t work = 0; work < works; ++work) {
        const int64_t kernel = read_number(in);
        require(kernel >= 0 && kernel < (int64_t)(sizeof cases / sizeof *cases), "there is no such kernel");
        cases[kernel](in, out, adapter);
    }
    fclose(in);
    return fclose(out);
}
