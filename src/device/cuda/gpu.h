/** What a CUDA driver keeps: its devices, which are opened when they are first used, and the kernels. */
#ifndef TSR_DEVICE_CUDA_GPU_H
#define TSR_DEVICE_CUDA_GPU_H

#include "device/cuda/kernels.h"
#include "device/cuda/runtime.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tessera/context.h>
#include <tessera/sys/device.h>

typedef struct tsr_cuda_gemms tsr_cuda_gemms;

/** One device. Once `open`, nothing here changes until the driver goes. */
typedef struct tsr_cuda_gpu {
    atomic_bool open;
    cudaMemPool_t pool;
    cudaStream_t unordered; /**< for memory that is asked for without a stream */
} tsr_cuda_gpu;

typedef struct tsr_cuda {
    tsr_context *context;
    bool tf32;
    int count;
    char reason[512];      /**< why count is 0 */
    pthread_mutex_t mutex; /**< opening devices, loading kernels */
    tsr_cuda_kernels kernels;
    tsr_cuda_gemms *gemms;
    atomic_bool *refused; /**< at [index * count + owner]: the hardware had no room to open `owner` to `index` */
    tsr_cuda_gpu gpu[];
} tsr_cuda;

/** Makes `index` the calling thread's device, opening it first; `*previous` is for tsr_cuda_leave(), which is due on TSR_OK only.
 * TSR_ERROR_UNAVAILABLE: there is no such device, or it cannot be opened. */
tsr_status tsr_cuda_enter(tsr_cuda *cuda, int index, int *previous);

/** 1 in `*out` if `index` may reach the memory of `owner`, as far as is known: both are opened, or it is what the hardware promises. */
tsr_status tsr_cuda_can_reach(const tsr_cuda *cuda, int index, int owner, int *out);

/** Gives the calling thread its device back. */
void tsr_cuda_leave(int previous);

/** Waits for all that a device was given, if it is open. */
void tsr_cuda_drain(tsr_cuda *cuda, int index);

/** Closes a device that may be open. */
void tsr_cuda_close(tsr_cuda *cuda, int index);

/** The entry `reach` of the table; `self` is a tsr_cuda. */
tsr_status tsr_cuda_reach(void *self, int index, int owner, int *out);

#endif
