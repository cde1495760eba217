#include "device/cuda/runtime.h"
#include "emulated_gpu.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const unsigned long long tsr_cuda_image_copy[1] = {1}, tsr_cuda_image_convert[1] = {2}, tsr_cuda_image_reduce_floats[1] = {3},
                         tsr_cuda_image_reduce_others[1] = {4};

/* An allocation, before what it holds: the rules about it can be checked. */
typedef struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    cudaMemPool_t pool;
} block;

struct CUmemPoolHandle_st {
    int device;
};

struct CUstream_st {
    int device;
};

struct CUevent_st {
    int device;
};

struct CUlib_st {
    int unused;
};

static struct {
    pthread_mutex_t mutex;
    block *blocks;
    size_t total, used[EMULATED_GPUS], kept[EMULATED_GPUS];
    int gpus, peers, calls, fail_at, error, lost, alive, launches, waits, openings, host_waits;
    const char *failed_call;
    const void *captured;
} gpu = {.mutex = PTHREAD_MUTEX_INITIALIZER, .total = (size_t)1 << 30, .gpus = EMULATED_GPUS, .peers = 1, .fail_at = -1};

static _Thread_local int current;

/* A misuse that the real runtime might let pass. */
static void misuse(const char *what)
{
    fprintf(stderr, "emulated GPU: %s\n", what);
    abort();
}

static cudaError_t turn(const char *name)
{
    pthread_mutex_lock(&gpu.mutex);
    const int at = gpu.calls++;
    int error = gpu.lost;
    if (at == gpu.fail_at) {
        error = gpu.error;
        gpu.failed_call = name;
        if (tsr_cuda_is_sticky((cudaError_t)error))
            gpu.lost = error;
    }
    pthread_mutex_unlock(&gpu.mutex);
    return (cudaError_t)error;
}

#define TURN()                                                                                                                             \
    do {                                                                                                                                   \
        const cudaError_t error_ = turn(__func__);                                                                                         \
        if (error_ != cudaSuccess)                                                                                                         \
            return error_;                                                                                                                 \
    } while (0)

int emulated_blas_call(const char *name)
{
    return turn(name) != cudaSuccess;
}

static void count(int *counter, int by)
{
    pthread_mutex_lock(&gpu.mutex);
    *counter += by;
    pthread_mutex_unlock(&gpu.mutex);
}

void emulated_count(int handles)
{
    count(&gpu.alive, handles);
}

void emulated_fail(int after, int error)
{
    gpu.fail_at = gpu.calls + after;
    gpu.error = error;
    gpu.failed_call = NULL;
}

void emulated_heal(size_t bytes)
{
    gpu.fail_at = -1;
    gpu.lost = 0;
    gpu.total = bytes;
}

void emulated_machine(int gpus, int peers)
{
    gpu.gpus = gpus;
    gpu.peers = peers;
}

int emulated_calls(void)
{
    return gpu.calls;
}

const char *emulated_failed_call(void)
{
    return gpu.failed_call;
}

int emulated_alive(void)
{
    return gpu.alive;
}

int emulated_launches(void)
{
    return gpu.launches;
}

int emulated_waits(void)
{
    return gpu.waits;
}

int emulated_openings(void)
{
    return gpu.openings;
}

int emulated_host_waits(void)
{
    return gpu.host_waits;
}

void emulated_capture(void *stream)
{
    gpu.captured = stream;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation     ? "cudaErrorMemoryAllocation"
           : error == cudaErrorInsufficientDriver ? "cudaErrorInsufficientDriver"
           : error == cudaErrorIllegalAddress     ? "cudaErrorIllegalAddress"
                                                  : "cudaErrorInvalidValue";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "emulated";
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    TURN();
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    TURN();
    *version = gpu.gpus > 0 ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *devices)
{
    TURN();
    if (gpu.gpus == 0)
        return cudaErrorInsufficientDriver;
    *devices = gpu.gpus;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    TURN();
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    TURN();
    if (device < 0 || device >= gpu.gpus)
        misuse("cudaSetDevice: there is no such device");
    current = device;
    return cudaSuccess;
}

/* A macro of the toolkit's headers may stand for a versioned name. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    TURN();
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "emulated %d", device);
    properties->major = 9;
    properties->multiProcessorCount = 132;
    properties->totalGlobalMem = gpu.total;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    TURN();
    if (device == peer)
        misuse("cudaDeviceCanAccessPeer: a device is no peer of its own");
    *can = gpu.peers;
    return cudaSuccess;
}

/* Somebody else in the process has opened device 0 to device 1 before. */
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    TURN();
    if (peer == current || flags != 0 || !gpu.peers)
        misuse("cudaDeviceEnablePeerAccess: not a peer that can be reached");
    count(&gpu.openings, 1);
    return peer == 0 ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    TURN();
    count(&gpu.host_waits, 1);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    TURN();
    *unused = gpu.total - gpu.used[current];
    *total = gpu.total;
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    TURN();
    if (properties->location.id != current || properties->location.type != cudaMemLocationTypeDevice)
        misuse("cudaMemPoolCreate: a pool of another device");
    cudaMemPool_t made = malloc(sizeof *made);
    made->device = current;
    count(&gpu.alive, 1);
    *pool = made;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    count(&gpu.alive, -1);
    free(pool);
    return turn(__func__);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    TURN();
    return pool && value && attribute != cudaMemPoolAttrReservedMemCurrent ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t descriptions)
{
    TURN();
    if (descriptions != 1 || access->location.id == pool->device || access->flags != cudaMemAccessFlagsProtReadWrite)
        misuse("cudaMemPoolSetAccess: not a peer's access");
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    TURN();
    if (gpu.kept[pool->device] > bytes)
        gpu.kept[pool->device] = bytes;
    return cudaSuccess;
}

static int device_of(cudaStream_t stream)
{
    return stream ? stream->device : current;
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    TURN();
    if (device_of(stream) != pool->device || bytes == 0)
        misuse("cudaMallocFromPoolAsync: no bytes, or the stream of another device");
    pthread_mutex_lock(&gpu.mutex);
    const int fits = bytes <= gpu.total && gpu.used[pool->device] + gpu.kept[pool->device] <= gpu.total - bytes;
    block *const made = fits ? malloc(sizeof *made) : NULL;
    if (made && posix_memalign(&made->memory, 512, bytes) == 0) {
        made->bytes = bytes;
        made->pool = pool;
        made->next = gpu.blocks;
        gpu.blocks = made;
        gpu.used[pool->device] += bytes;
        gpu.alive++;
        *out = made->memory;
    }
    pthread_mutex_unlock(&gpu.mutex);
    return made ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Frees the memory even where the call is told to fail: nobody could free it later. */
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    pthread_mutex_lock(&gpu.mutex);
    block **at = &gpu.blocks;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    block *const found = *at;
    if (!found || device_of(stream) != found->pool->device)
        misuse("cudaFreeAsync: memory that nobody allocated, or on the stream of another device");
    *at = found->next;
    gpu.used[found->pool->device] -= found->bytes;
    gpu.kept[found->pool->device] += found->bytes;
    gpu.alive--;
    pthread_mutex_unlock(&gpu.mutex);
    free(found->memory);
    free(found);
    return turn(__func__);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    TURN();
    if (bytes == 0 || device_of(stream) != current || kind == cudaMemcpyHostToHost)
        misuse("cudaMemcpyAsync: nothing to copy, or on the stream of another device");
    memcpy(dst, src, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    TURN();
    if (flags != cudaStreamNonBlocking)
        misuse("cudaStreamCreateWithFlags: a stream that the NULL stream waits for");
    cudaStream_t made = malloc(sizeof *made);
    made->device = current;
    count(&gpu.alive, 1);
    *out = made;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    count(&gpu.alive, -1);
    free(stream);
    return turn(__func__);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    TURN();
    count(&gpu.host_waits, 1);
    return device_of(stream) == current ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    TURN();
    *status = stream && stream == gpu.captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *count)
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *number,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count)
#endif
{
    TURN();
    if (graph || nodes || count)
        misuse("cudaStreamGetCaptureInfo: asked for what is not known here");
#if CUDART_VERSION >= 13000
    (void)edges;
#endif
    *status = stream && stream == gpu.captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    *number = *status == cudaStreamCaptureStatusActive ? 1 : 0;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    TURN();
    if (device_of(stream) != current || !event || flags != 0)
        misuse("cudaStreamWaitEvent: the stream of another device");
    count(&gpu.waits, 1);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    TURN();
    if (flags != cudaEventDisableTiming)
        misuse("cudaEventCreateWithFlags: an event that takes the time");
    cudaEvent_t made = malloc(sizeof *made);
    made->device = current;
    count(&gpu.alive, 1);
    *out = made;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    count(&gpu.alive, -1);
    free(event);
    return turn(__func__);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    TURN();
    if (event->device != device_of(stream))
        misuse("cudaEventRecord: an event and a stream of two devices");
    return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit, void **jit_values, unsigned jit_count,
                                enum cudaLibraryOption *options, void **values, unsigned option_count)
{
    TURN();
    if (!code || jit || jit_values || jit_count || options || values || option_count)
        misuse("cudaLibraryLoadData: arguments that are not known here");
    *library = malloc(sizeof **library);
    count(&gpu.alive, 1);
    return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    count(&gpu.alive, -1);
    free(library);
    return turn(__func__);
}

/* A kernel is its name. */
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    TURN();
    if (!library || !emulated_kernel(name, 0, NULL))
        misuse("cudaLibraryGetKernel: no such kernel");
    memcpy(kernel, &name, sizeof name);
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 threads, void **arguments, size_t shared, cudaStream_t stream)
{
    TURN();
    if (grid.x == 0 || grid.y != 1 || grid.z != 1 || threads.x != 256 || threads.y != 1 || threads.z != 1 || shared != 0)
        misuse("cudaLaunchKernel: a grid that no kernel here wants");
    if (device_of(stream) != current)
        misuse("cudaLaunchKernel: the stream of another device");
    count(&gpu.launches, 1);
    emulated_kernel(function, grid.x, arguments);
    return cudaSuccess;
}
