#include "device/cuda/device_memory.h"

#include "device/cuda/gpu.h"

#include <stdio.h>

/* Room for what a sentence says the library was doing. */
#define DOING_BYTES 96

/* Gives the pool's freed memory back to the driver, and tries again. */
static cudaError_t allocate_again(const tsr_cuda_gpu *gpu, size_t bytes, cudaStream_t stream, void **memory)
{
    (void)cudaGetLastError();
    const cudaError_t error = cudaMemPoolTrimTo(gpu->pool, 0);
    return error == cudaSuccess ? cudaMallocFromPoolAsync(memory, bytes, gpu->pool, stream) : error;
}

/* cudaErrorMemoryAllocation leaves the device usable, so it can be asked how much memory is
 * free. */
static tsr_status no_memory(size_t bytes, int index)
{
    size_t unused = 0, total = 0;
    (void)cudaGetLastError();
    if (cudaMemGetInfo(&unused, &total) != cudaSuccess)
        (void)cudaGetLastError();
    return tsr_status_set(TSR_ERROR_MEMORY,
                          "cuda device: no memory for %zu bytes on device %d, where %zu of %zu are free", bytes, index,
                          unused, total);
}

/* The stream in whose order memory is allocated and freed. NULL is the default stream to CUDA, but
 * no order to the table. */
static cudaStream_t order_of(const tsr_cuda_gpu *gpu, tsr_stream stream)
{
    return stream == cudaStreamLegacy ? NULL : stream ? stream : gpu->unordered;
}

static tsr_status allocate_in_order(const tsr_cuda_gpu *gpu, int index, size_t bytes, cudaStream_t stream, void **out)
{
    void *memory = NULL;
    char doing[DOING_BYTES];
    const cudaStream_t ordered = order_of(gpu, stream);
    cudaError_t error = cudaMallocFromPoolAsync(&memory, bytes, gpu->pool, ordered);
    if (error == cudaErrorMemoryAllocation)
        error = allocate_again(gpu, bytes, ordered, &memory);
    if (error == cudaErrorMemoryAllocation)
        return no_memory(bytes, index);
    snprintf(doing, sizeof doing, "allocating %zu bytes", bytes);
    TSR_TRY(tsr_cuda_status(error, "cudaMallocFromPoolAsync", doing));
    /* Memory without a stream's order may be used on any stream at once, so its allocation must be
     * done. */
    if (!stream) {
        const tsr_status status = tsr_cuda_status(cudaStreamSynchronize(ordered), "cudaStreamSynchronize", doing);
        if (status != TSR_OK) {
            (void)cudaFreeAsync(memory, ordered);
            return status;
        }
    }
    *out = memory;
    return TSR_OK;
}

tsr_status tsr_cuda_alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    tsr_cuda *const cuda = self;
    int previous;
    TSR_TRY(tsr_cuda_enter(cuda, index, &previous));
    const tsr_status status = allocate_in_order(&cuda->gpu[index], index, bytes > 0 ? bytes : 1, stream, out);
    tsr_cuda_leave(previous);
    return status;
}

void tsr_cuda_free(void *self, int index, void *memory, size_t bytes, tsr_stream stream)
{
    tsr_cuda *const cuda = self;
    int previous;
    (void)bytes;
    if (!memory || tsr_cuda_enter(cuda, index, &previous) != TSR_OK)
        return;
    /* Without a stream any work may still use the memory: all work is awaited, as cudaFree()
     * does. */
    if (!stream)
        (void)cudaDeviceSynchronize();
    if (cudaFreeAsync(memory, order_of(&cuda->gpu[index], stream)) != cudaSuccess)
        (void)cudaGetLastError();
    tsr_cuda_leave(previous);
}

static const enum cudaMemcpyKind kinds[] = {[TSR_COPY_WITHIN] = cudaMemcpyDeviceToDevice,
                                            [TSR_COPY_FROM_HOST] = cudaMemcpyHostToDevice,
                                            [TSR_COPY_TO_HOST] = cudaMemcpyDeviceToHost};

tsr_status tsr_cuda_copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                         tsr_stream stream)
{
    static const char *const ways[] = {"within devices", "from the host", "to the host"};
    char doing[DOING_BYTES];
    int previous;
    if ((unsigned)kind >= sizeof kinds / sizeof kinds[0])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "cuda device: the kind of copy is %d, not 0 to %d", (int)kind,
                              (int)TSR_COPY_TO_HOST);
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    snprintf(doing, sizeof doing, "copying %zu bytes %s", bytes, ways[kind]);
    const tsr_status status =
        bytes > 0 ? tsr_cuda_status(cudaMemcpyAsync(dst, src, bytes, kinds[kind], stream), "cudaMemcpyAsync", doing)
                  : TSR_OK;
    tsr_cuda_leave(previous);
    return status;
}
