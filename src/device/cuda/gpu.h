/** The state of a CUDA driver: its devices, which are opened when they are first used, and its
 * kernels. */
#ifndef TSR_DEVICE_CUDA_GPU_H
#define TSR_DEVICE_CUDA_GPU_H

#include "device/cuda/faults.h"
#include "device/cuda/kernels.h"
#include "device/cuda/runtime.h"

#include <tessera/context.h>
#include <tessera/sys/device.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct tsr_cuda_gemms tsr_cuda_gemms;

/** One device. Once it is open, nothing but `faults` changes until the driver is destroyed. */
typedef struct tsr_cuda_gpu {
    atomic_bool open;
    cudaMemPool_t pool;
    cudaStream_t unordered; /**< orders allocations that are made without a stream */
    tsr_cuda_faults faults; /**< errors of data that its kernels find */
} tsr_cuda_gpu;

typedef struct tsr_cuda {
    tsr_context *context;
    bool tf32;
    int count;
    char reason[512];      /**< why count is 0 */
    pthread_mutex_t mutex; /**< held while a device is opened, kernels are loaded or faults are looked for */
    tsr_cuda_kernels kernels;
    tsr_cuda_gemms *gemms;
    /** refused[index * count + owner]: the hardware had no room for `owner` as a peer of `index` */
    atomic_bool *refused;
    tsr_cuda_gpu gpu[];
} tsr_cuda;

/** Makes `index` the calling thread's device, and opens it if needed. On TSR_OK the caller must
 * call tsr_cuda_leave() with `*previous`. TSR_ERROR_UNAVAILABLE: there is no such device, or it
 * cannot be opened. */
tsr_status tsr_cuda_enter(tsr_cuda *cuda, int index, int *previous);

/** `*out` becomes 1 if the hardware lets `index` reach the memory of `owner` and, once both are
 * open, had room for it as a peer; else 0. */
tsr_status tsr_cuda_can_reach(const tsr_cuda *cuda, int index, int owner, int *out);

/** Makes `previous`, from tsr_cuda_enter(), the calling thread's device again. */
void tsr_cuda_leave(int previous);

/** Waits for all work of a device; returns at once if it is not open. */
void tsr_cuda_drain(tsr_cuda *cuda, int index);

/** Closes a device if it is open. */
void tsr_cuda_close(tsr_cuda *cuda, int index);

/** The entry `reaches` of the operation table; `self` is a tsr_cuda. */
tsr_status tsr_cuda_reach(void *self, int index, int owner, int *out);

#endif
