/* Devices are opened when first used, and entered by every call. */
#include "device/cuda/gpu.h"

#include <stdio.h>

/* Bytes of freed memory that a pool keeps, so that a loop of allocations does not call the
 * driver. */
#define KEPT_BYTES ((uint64_t)256 << 20)

static tsr_status make_pool(tsr_cuda_gpu *gpu, int index)
{
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice, .id = index}};
    uint64_t kept = KEPT_BYTES;
    int off = 0;
    TSR_CUDA_TRY(cudaMemPoolCreate(&gpu->pool, &properties), "making a device's memory pool");
    TSR_CUDA_TRY(cudaMemPoolSetAttribute(gpu->pool, cudaMemPoolAttrReleaseThreshold, &kept),
                 "setting up a memory pool");
    /* Else a stream could have to wait for another stream only because that stream freed memory. */
    TSR_CUDA_TRY(cudaMemPoolSetAttribute(gpu->pool, cudaMemPoolReuseAllowInternalDependencies, &off),
                 "setting up a memory pool");
    return TSR_OK;
}

static atomic_bool *refusal(const tsr_cuda *cuda, int index, int owner)
{
    return &cuda->refused[index * cuda->count + owner];
}

static tsr_status enable_peer(const tsr_cuda *cuda, int index, int owner)
{
    const cudaError_t error = cudaDeviceEnablePeerAccess(owner, 0);
    atomic_store(refusal(cuda, index, owner), error == cudaErrorTooManyPeers);
    if (error == cudaErrorPeerAccessAlreadyEnabled || error == cudaErrorTooManyPeers) {
        (void)cudaGetLastError();
        return TSR_OK;
    }
    return tsr_cuda_status(error, "cudaDeviceEnablePeerAccess", "opening a device's memory to a peer");
}

/* Lets device `index`, which is the thread's, read and write memory of device `owner`: its pool,
 * and memory that others allocated there. It is not an error if the hardware cannot do that or has
 * no room for another peer: tsr_cuda_reaches() tells. */
static tsr_status let_access(const tsr_cuda *cuda, int index, int owner)
{
    int can = 0;
    const struct cudaMemAccessDesc access = {.location = {.type = cudaMemLocationTypeDevice, .id = index},
                                             .flags = cudaMemAccessFlagsProtReadWrite};
    TSR_CUDA_TRY(cudaDeviceCanAccessPeer(&can, index, owner), "asking which devices reach each other");
    if (!can)
        return TSR_OK;
    TSR_TRY(enable_peer(cuda, index, owner));
    if (atomic_load(refusal(cuda, index, owner)))
        return TSR_OK;
    TSR_CUDA_TRY(cudaMemPoolSetAccess(cuda->gpu[owner].pool, &access, 1), "opening a memory pool to a peer");
    return TSR_OK;
}

/* Lets `index` and every device that this driver has opened before access each other. */
static tsr_status meet_peers(const tsr_cuda *cuda, int index)
{
    for (int peer = 0; peer < cuda->count; peer++) {
        if (peer == index || !atomic_load(&cuda->gpu[peer].open))
            continue;
        TSR_TRY(let_access(cuda, index, peer));
        TSR_CUDA_TRY(cudaSetDevice(peer), "choosing a device");
        const tsr_status status = let_access(cuda, peer, index);
        TSR_CUDA_TRY(cudaSetDevice(index), "choosing a device");
        TSR_TRY(status);
    }
    return TSR_OK;
}

static tsr_status set_up(tsr_cuda *cuda, int index)
{
    tsr_cuda_gpu *const gpu = &cuda->gpu[index];
    TSR_TRY(make_pool(gpu, index));
    TSR_CUDA_TRY(cudaStreamCreateWithFlags(&gpu->unordered, cudaStreamNonBlocking), "making a stream");
    TSR_TRY(tsr_cuda_faults_create(&gpu->faults));
    if (!cuda->kernels.loaded)
        TSR_TRY(tsr_cuda_kernels_load(&cuda->kernels));
    return meet_peers(cuda, index);
}

static void take_down(tsr_cuda_gpu *gpu)
{
    if (gpu->unordered)
        (void)cudaStreamDestroy(gpu->unordered);
    if (gpu->pool)
        (void)cudaMemPoolDestroy(gpu->pool);
    tsr_cuda_faults_destroy(&gpu->faults);
    gpu->unordered = NULL;
    gpu->pool = NULL;
}

static tsr_status open_locked(tsr_cuda *cuda, int index)
{
    if (atomic_load(&cuda->gpu[index].open))
        return TSR_OK;
    const tsr_status status = set_up(cuda, index);
    if (status == TSR_OK)
        atomic_store(&cuda->gpu[index].open, true);
    else
        take_down(&cuda->gpu[index]);
    return status;
}

static tsr_status open_device(tsr_cuda *cuda, int index)
{
    if (atomic_load_explicit(&cuda->gpu[index].open, memory_order_acquire))
        return TSR_OK;
    pthread_mutex_lock(&cuda->mutex);
    const tsr_status status = open_locked(cuda, index);
    pthread_mutex_unlock(&cuda->mutex);
    return status;
}

static tsr_status check_index(const tsr_cuda *cuda, int index)
{
    if (cuda->count == 0)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "cuda device: there is no device %d: %s", index, cuda->reason);
    if (index < 0 || index >= cuda->count)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "cuda device: there is no device %d; there are 0 to %d", index,
                              cuda->count - 1);
    return TSR_OK;
}

tsr_status tsr_cuda_enter(tsr_cuda *cuda, int index, int *previous)
{
    int current;
    TSR_TRY(check_index(cuda, index));
    TSR_CUDA_TRY(cudaGetDevice(&current), "asking for the thread's device");
    if (current != index)
        TSR_CUDA_TRY(cudaSetDevice(index), "choosing a device");
    const tsr_status status = open_device(cuda, index);
    if (status != TSR_OK) {
        tsr_cuda_leave(current);
        return status;
    }
    *previous = current;
    return TSR_OK;
}

void tsr_cuda_leave(int previous)
{
    int current;
    if (cudaGetDevice(&current) != cudaSuccess || current != previous)
        (void)cudaSetDevice(previous);
}

/* Opens both devices; access is given when the second is opened. */
static tsr_status open_both(tsr_cuda *cuda, int index, int owner)
{
    int previous;
    TSR_TRY(tsr_cuda_enter(cuda, owner, &previous));
    tsr_cuda_leave(previous);
    TSR_TRY(tsr_cuda_enter(cuda, index, &previous));
    tsr_cuda_leave(previous);
    return TSR_OK;
}

tsr_status tsr_cuda_can_reach(const tsr_cuda *cuda, int index, int owner, int *out)
{
    int can = 1;
    if (index != owner)
        TSR_CUDA_TRY(cudaDeviceCanAccessPeer(&can, index, owner), "asking which devices reach each other");
    *out = can && !atomic_load(refusal(cuda, index, owner));
    return TSR_OK;
}

tsr_status tsr_cuda_reach(void *self, int index, int owner, int *out)
{
    TSR_TRY(open_both(self, index, owner));
    return tsr_cuda_can_reach(self, index, owner, out);
}

void tsr_cuda_drain(tsr_cuda *cuda, int index)
{
    int previous;
    if (!atomic_load(&cuda->gpu[index].open) || tsr_cuda_enter(cuda, index, &previous) != TSR_OK)
        return;
    if (cudaDeviceSynchronize() != cudaSuccess)
        (void)cudaGetLastError();
    tsr_cuda_leave(previous);
}

void tsr_cuda_close(tsr_cuda *cuda, int index)
{
    int previous;
    if (!atomic_load(&cuda->gpu[index].open) || cudaGetDevice(&previous) != cudaSuccess)
        return;
    (void)cudaSetDevice(index);
    take_down(&cuda->gpu[index]);
    atomic_store(&cuda->gpu[index].open, false);
    (void)cudaSetDevice(previous);
}
