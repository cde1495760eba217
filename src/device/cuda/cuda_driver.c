/* The CUDA driver: its table, its making, and public calls that describe devices and versions. */
#include "device/cuda/cublaslt.h"
#include "device/cuda/device_memory.h"
#include "device/cuda/gpu.h"
#include "device/cuda/launch.h"
#include "device/cuda/ops/ops.h"
#include "device/cuda/product.h"
#include "device/cuda/streams.h"

#include <tessera/cuda.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/options.h>

#include <stdio.h>
#include <string.h>

static tsr_status count(void *self, int *out, const char **reason)
{
    const tsr_cuda *const cuda = self;
    *out = cuda->count;
    *reason = cuda->count == 0 ? cuda->reason : NULL;
    return TSR_OK;
}

static void cuda_destroy(void *self)
{
    tsr_cuda *const cuda = self;
    tsr_context *const context = cuda->context;
    /* Kernels that are unloaded below may still run on the caller's streams. */
    for (int index = 0; index < cuda->count; index++)
        tsr_cuda_drain(cuda, index);
    tsr_cuda_gemms_destroy(cuda);
    for (int index = 0; index < cuda->count; index++)
        tsr_cuda_close(cuda, index);
    tsr_cuda_kernels_unload(&cuda->kernels);
    pthread_mutex_destroy(&cuda->mutex);
    tsr_release(context, cuda);
    tsr_context_destroy(context);
}

static const tsr_device_table table = {
    .size = sizeof(tsr_device_table),
    .name = "cuda",
    .count = count,
    .alloc = tsr_cuda_alloc,
    .free = tsr_cuda_free,
    .copy = tsr_cuda_copy,
    .copy_boxes = tsr_cuda_copy_boxes,
    .fill = tsr_cuda_fill,
    .reduce = tsr_cuda_reduce_boxes,
    .convert = tsr_cuda_convert_elements,
    .gemm = tsr_cuda_gemm,
    .stream_create = tsr_cuda_stream_create,
    .stream_destroy = tsr_cuda_stream_destroy,
    .stream_synchronize = tsr_cuda_stream_synchronize,
    .event_create = tsr_cuda_event_create,
    .event_destroy = tsr_cuda_event_destroy,
    .event_record = tsr_cuda_event_record,
    .event_wait = tsr_cuda_event_wait,
    .destroy = cuda_destroy,
    .gemm_workspace = tsr_cuda_gemm_workspace,
    .default_stream = cudaStreamLegacy,
    .reaches = tsr_cuda_reach,
    .capture = tsr_cuda_capture,
    .launch = tsr_cuda_run_op,
};

/* The number of devices; if it is 0, `reason` says why. cudaGetDeviceCount() fails without a
 * driver, and then leaves its result alone. */
static int count_devices(char *reason, size_t bytes)
{
    int devices = 0, driver = 0;
    reason[0] = '\0';
    const cudaError_t error = cudaGetDeviceCount(&devices);
    if (error == cudaSuccess && devices > 0)
        return devices;
    (void)cudaGetLastError();
    if (error == cudaSuccess)
        snprintf(reason, bytes, "this machine shows no CUDA device to this process");
    else if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
        snprintf(reason, bytes, "no CUDA driver is installed (cudaGetDeviceCount: %s)", cudaGetErrorName(error));
    else
        snprintf(reason, bytes, "cudaGetDeviceCount failed: %s (%s)", cudaGetErrorName(error),
                 cudaGetErrorString(error));
    return 0;
}

/* Makes a driver; its devices are opened when first used. Takes over the caller's reference to
 * `context`, also on failure. */
static tsr_status make_driver(tsr_context *context, const tsr_cuda_options *options, tsr_cuda **out)
{
    char reason[sizeof((tsr_cuda *)NULL)->reason];
    const int devices = count_devices(reason, sizeof reason);
    const size_t fixed = sizeof(tsr_cuda) + (size_t)devices * sizeof(tsr_cuda_gpu);
    const size_t bytes = fixed + (size_t)devices * (size_t)devices * sizeof(atomic_bool);
    tsr_cuda *cuda = NULL;
    tsr_status status = tsr_allocate(context, bytes, (void **)&cuda);
    if (status != TSR_OK)
        goto release_context;
    memset(cuda, 0, bytes);
    cuda->context = context;
    cuda->tf32 = options->tf32 != 0;
    cuda->count = devices;
    cuda->refused = (atomic_bool *)((char *)cuda + fixed);
    memcpy(cuda->reason, reason, sizeof reason);
    if (pthread_mutex_init(&cuda->mutex, NULL) != 0) {
        status = tsr_status_set(TSR_ERROR_MEMORY, "tsr_cuda_driver_create: no memory for a mutex");
        goto release_cuda;
    }
    status = tsr_cuda_gemms_create(context, devices, &cuda->gemms);
    if (status != TSR_OK)
        goto destroy_mutex;
    *out = cuda;
    return TSR_OK;

destroy_mutex:
    pthread_mutex_destroy(&cuda->mutex);
release_cuda:
    tsr_release(context, cuda);
release_context:
    tsr_context_destroy(context);
    return status;
}

tsr_status tsr_cuda_driver_create(tsr_context *context, const tsr_cuda_options *options, tsr_device_driver **out)
{
    tsr_cuda_options known = TSR_CUDA_OPTIONS_INIT;
    tsr_cuda *cuda;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_cuda_driver_create: out is NULL");
    TSR_TRY(tsr_options_read("tsr_cuda_driver_create", options, &known, sizeof known));
    if (context)
        tsr_context_retain(context);
    else
        TSR_TRY(tsr_context_create(NULL, &context));
    TSR_TRY(make_driver(context, &known, &cuda));
    const tsr_status status = tsr_device_driver_create(&table, cuda, out);
    if (status != TSR_OK)
        cuda_destroy(cuda);
    return status;
}

/* Copies as much of `known`, of `bytes` bytes, as the caller's struct, which begins with `*size`,
 * has room for. */
static tsr_status give_known(const char *call, size_t *size, void *known, size_t bytes)
{
    const size_t room = *size;
    if (room < sizeof room)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out->size is %zu; set it to the size of the struct", call, room);
    memcpy((char *)size + sizeof room, (char *)known + sizeof room, (room < bytes ? room : bytes) - sizeof room);
    return TSR_OK;
}

tsr_status tsr_cuda_versions_get(tsr_cuda_versions *out)
{
    tsr_cuda_versions known = {.built = CUDART_VERSION, .cublaslt = (int)cublasLtGetVersion()};
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_cuda_versions_get: out is NULL");
    TSR_CUDA_TRY(cudaRuntimeGetVersion(&known.runtime), "asking for versions");
    TSR_CUDA_TRY(cudaDriverGetVersion(&known.driver), "asking for versions");
    return give_known("tsr_cuda_versions_get", &out->size, &known, sizeof known);
}

static tsr_status find_device(const char *call, const tsr_device_driver *driver, int index, tsr_cuda **out)
{
    void *self;
    const tsr_device_table *const of = tsr_device_driver_table(driver, &self);
    tsr_cuda *const cuda = self;
    if (of->count != count)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: driver is for \"%s\"; it must come from tsr_cuda_driver_create()", call, of->name);
    if (index < 0 || index >= cuda->count)
        return cuda->count == 0
                   ? tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s: there is no device %d: %s", call, index, cuda->reason)
                   : tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s: there is no device %d; there are 0 to %d", call, index,
                                    cuda->count - 1);
    *out = cuda;
    return TSR_OK;
}

tsr_status tsr_cuda_device_describe(const tsr_device_driver *driver, int index, tsr_cuda_device_info *out)
{
    tsr_cuda *cuda;
    struct cudaDeviceProp properties;
    tsr_cuda_device_info known = {0};
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_cuda_device_describe: out is NULL");
    TSR_TRY(find_device("tsr_cuda_device_describe", driver, index, &cuda));
    TSR_CUDA_TRY(cudaGetDeviceProperties(&properties, index), "describing a device");
    snprintf(known.name, sizeof known.name, "%s", properties.name);
    known.major = properties.major;
    known.minor = properties.minor;
    known.multiprocessors = properties.multiProcessorCount;
    known.memory_bytes = (int64_t)properties.totalGlobalMem;
    return give_known("tsr_cuda_device_describe", &out->size, &known, sizeof known);
}

tsr_status tsr_cuda_reaches(const tsr_device_driver *driver, int index, int owner, int *reaches)
{
    tsr_cuda *cuda = NULL;
    if (!reaches)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_cuda_reaches: reaches is NULL");
    TSR_TRY(find_device("tsr_cuda_reaches", driver, index, &cuda));
    TSR_TRY(find_device("tsr_cuda_reaches", driver, owner, &cuda));
    return tsr_cuda_can_reach(cuda, index, owner, reaches);
}
