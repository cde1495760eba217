#include "emulated_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const unsigned long long tsr_cuda_image_copy[1] = {1}, tsr_cuda_image_convert[1] = {2},
                         tsr_cuda_image_reduce_floats[1] = {3}, tsr_cuda_image_reduce_others[1] = {4},
                         tsr_cuda_image_ops[1] = {5}, tsr_cuda_image_rows[1] = {6};

/* The header of an allocation, with which the runtime's rules are checked. */
typedef struct block {
    struct block *next;
    void *memory;
    size_t bytes;
    cudaMemPool_t pool;
} block;

struct CUmemPoolHandle_st {
    int device;
};

struct CUlib_st {
    int unused;
};

static struct {
    pthread_mutex_t mutex;
    block *blocks;
    size_t total, used[EMULATED_GPUS], kept[EMULATED_GPUS];
    int gpus, peers, calls, fail_at, error, lost, alive, openings;
    const char *failed_call;
} gpu = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .total = (size_t)1 << 30, .gpus = EMULATED_GPUS, .peers = 1, .fail_at = -1};

_Thread_local int emulated_device;

void emulated_misuse(const char *what)
{
    fprintf(stderr, "emulated GPU: %s\n", what);
    abort();
}

cudaError_t emulated_turn(const char *name)
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

int emulated_blas_call(const char *name)
{
    return emulated_turn(name) != cudaSuccess;
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
    return emulated_launch_count;
}

int emulated_waits(void)
{
    return emulated_wait_count;
}

int emulated_openings(void)
{
    return gpu.openings;
}

int emulated_host_waits(void)
{
    return emulated_host_wait_count;
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
           : error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread
               ? "cudaErrorStreamCapture.."
               : "cudaErrorInvalidValue";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "emulated";
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    EMULATED_TURN();
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    EMULATED_TURN();
    *version = gpu.gpus > 0 ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *devices)
{
    EMULATED_TURN();
    if (gpu.gpus == 0)
        return cudaErrorInsufficientDriver;
    *devices = gpu.gpus;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    EMULATED_TURN();
    *device = emulated_device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    EMULATED_TURN();
    if (device < 0 || device >= gpu.gpus)
        emulated_misuse("cudaSetDevice: there is no such device");
    emulated_device = device;
    return cudaSuccess;
}

/* A macro of the toolkit's headers may stand for a versioned name. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    EMULATED_TURN();
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "emulated %d", device);
    properties->major = 9;
    properties->multiProcessorCount = 132;
    properties->totalGlobalMem = gpu.total;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    EMULATED_TURN();
    if (device == peer)
        emulated_misuse("cudaDeviceCanAccessPeer: a device is no peer of its own");
    *can = gpu.peers;
    return cudaSuccess;
}

/* Device 0 is already open to device 1, as by other code in the process. */
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    EMULATED_TURN();
    if (peer == emulated_device || flags != 0 || !gpu.peers)
        emulated_misuse("cudaDeviceEnablePeerAccess: not a peer that can be reached");
    count(&gpu.openings, 1);
    return peer == 0 ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    EMULATED_TURN();
    *unused = gpu.total - gpu.used[emulated_device];
    *total = gpu.total;
    return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    EMULATED_TURN();
    if (properties->location.id != emulated_device || properties->location.type != cudaMemLocationTypeDevice)
        emulated_misuse("cudaMemPoolCreate: a pool of another device");
    cudaMemPool_t made = malloc(sizeof *made);
    made->device = emulated_device;
    count(&gpu.alive, 1);
    *pool = made;
    return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    count(&gpu.alive, -1);
    free(pool);
    return emulated_turn(__func__);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    EMULATED_TURN();
    return pool && value && attribute != cudaMemPoolAttrReservedMemCurrent ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t descriptions)
{
    EMULATED_TURN();
    if (descriptions != 1 || access->location.id == pool->device || access->flags != cudaMemAccessFlagsProtReadWrite)
        emulated_misuse("cudaMemPoolSetAccess: not a peer's access");
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    EMULATED_TURN();
    if (gpu.kept[pool->device] > bytes)
        gpu.kept[pool->device] = bytes;
    return cudaSuccess;
}

/* Checks the stream of an allocation. In a captured stream it is misuse: the library allocates
 * before a capture. */
static cudaError_t check_pool_stream(cudaStream_t stream, int device, const char *what)
{
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t in = emulated_stream(stream);
    if (in->device != device)
        emulated_misuse(what);
    const cudaError_t error = emulated_spoil(in);
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    EMULATED_TURN();
    if (bytes == 0)
        emulated_misuse("cudaMallocFromPoolAsync: no bytes");
    const cudaError_t error =
        check_pool_stream(stream, pool->device, "cudaMallocFromPoolAsync: the stream of another device");
    if (error != cudaSuccess)
        return error;
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

static block *take_block(const void *memory)
{
    pthread_mutex_lock(&gpu.mutex);
    block **at = &gpu.blocks;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    block *const found = *at;
    if (!found)
        emulated_misuse("cudaFreeAsync: memory that nobody allocated");
    *at = found->next;
    gpu.used[found->pool->device] -= found->bytes;
    gpu.kept[found->pool->device] += found->bytes;
    gpu.alive--;
    pthread_mutex_unlock(&gpu.mutex);
    return found;
}

static void do_nothing(const void *argument)
{
    (void)argument;
}

/* Frees in stream order, even if the call is to fail, since the memory could not be freed later. */
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    block *const found = take_block(memory);
    const cudaError_t refused =
        check_pool_stream(stream, found->pool->device, "cudaFreeAsync: the stream of another device");
    if (refused == cudaSuccess) {
        pthread_mutex_lock(&emulated_lock);
        emulated_add(emulated_stream(stream), do_nothing, free, found->memory);
        pthread_mutex_unlock(&emulated_lock);
    } else {
        free(found->memory);
    }
    free(found);
    const cudaError_t error = emulated_turn(__func__);
    return refused == cudaSuccess ? error : refused;
}

/* Memory of the host that kernels reach, with the same address. */
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    EMULATED_TURN();
    if (bytes == 0 || flags != (cudaHostAllocPortable | cudaHostAllocMapped))
        emulated_misuse("cudaHostAlloc: memory that devices do not reach");
    void *const made = malloc(bytes);
    if (!made)
        return cudaErrorMemoryAllocation;
    memset(made, 0xa5, bytes);
    count(&gpu.alive, 1);
    *out = made;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    count(&gpu.alive, -1);
    free(memory);
    return emulated_turn(__func__);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit, void **jit_values,
                                unsigned jit_count, enum cudaLibraryOption *options, void **values,
                                unsigned option_count)
{
    EMULATED_TURN();
    if (!code || jit || jit_values || jit_count || options || values || option_count)
        emulated_misuse("cudaLibraryLoadData: arguments that are not known here");
    *library = malloc(sizeof **library);
    count(&gpu.alive, 1);
    return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    count(&gpu.alive, -1);
    free(library);
    return emulated_turn(__func__);
}

/* A kernel's handle is its name. */
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    EMULATED_TURN();
    if (!library || !emulated_kernel(name, 0, NULL))
        emulated_misuse("cudaLibraryGetKernel: no such kernel");
    memcpy(kernel, &name, sizeof name);
    return cudaSuccess;
}
