/**
 * @file
 * GPUs by CUDA: the driver that libtessera-cuda brings. A tensor whose device is {driver, index}
 * lies on GPU `index` of this process.
 *
 * The library links the CUDA runtime and cuBLASLt, never libcuda: it loads on machines without a
 * driver, and says there why it finds no device. A tsr_stream is a cudaStream_t; NULL is the legacy
 * default stream. Every call leaves the calling thread's current device as it was. For a thread
 * that never chose one that is device 0, where CUDA 12 and newer then make a context, which takes
 * some of its memory: threads of a process that is to stay off device 0 choose theirs, by
 * cudaSetDevice(), before they use this library.
 *
 * What only enqueues can be captured into CUDA graphs, once it was executed as it is: that opens
 * devices and loads kernels. Ranks of one process that execute together over a direct communicator
 * fork their streams from one capture and join them to it; captures apart are refused. A graph
 * holds kernels of the driver, and goes before it does.
 */
#ifndef TESSERA_CUDA_H
#define TESSERA_CUDA_H

#include <stddef.h>
#include <tessera/context.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of the driver for GPUs. */
typedef struct tsr_cuda_options {
    size_t size; /**< sizeof(tsr_cuda_options) */
    int tf32; /**< 1: products of f32 matrices round their factors to TF32, 10 bits of mantissa,
                   which tensor cores multiply, but not those of a single row or column; 0: no
                   product does */
} tsr_cuda_options;

/** No TF32. */
#define TSR_CUDA_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_cuda_options), 0                                                                \
    }

/**
 * A driver for the GPUs that this process sees; freed by tsr_device_driver_destroy(), after all
 * that lives on its devices, and once these have done what they were given. Succeeds where there is
 * none: its table's `count` then gives 0 and the reason, and every other call
 * TSR_ERROR_UNAVAILABLE. A device is opened when it is first used: its kernels are loaded, a memory
 * pool is made, and it and the devices opened before get access to each other's memory where the
 * hardware has it: to this driver's and to that of cudaMalloc(). Memory of other pools (that of
 * cudaMallocAsync() too) or mapped by cuMemMap() is reached by peers only if its owner gives them
 * access. `context` is retained, NULL: defaults. `options` may be NULL. Any thread may use the
 * driver.
 */
TSR_API tsr_status tsr_cuda_driver_create(tsr_context *context, const tsr_cuda_options *options,
                                          tsr_device_driver **out);

/** Versions as CUDA numbers them: 13000 is 13.0. */
typedef struct tsr_cuda_versions {
    size_t size;  /**< sizeof(tsr_cuda_versions), set by the caller; fields beyond it are left
                       alone */
    int built;    /**< the toolkit that this library was built with */
    int runtime;  /**< the CUDA runtime that was loaded */
    int driver;   /**< the newest runtime that the installed driver serves; 0: there is none */
    int cublaslt; /**< the cuBLASLt that was loaded: 130002 is 13.0.2 */
} tsr_cuda_versions;

/** Fills `*out`; needs no device. TSR_ERROR_ARGUMENT: `out` is NULL or its size 0. */
TSR_API tsr_status tsr_cuda_versions_get(tsr_cuda_versions *out);

/** What a GPU is. */
typedef struct tsr_cuda_device_info {
    size_t size; /**< sizeof(tsr_cuda_device_info), set by the caller; fields beyond it are left
                      alone */
    char name[256];
    int major, minor; /**< compute capability */
    int multiprocessors;
    int64_t memory_bytes;
} tsr_cuda_device_info;

/**
 * Describes device `index` of a driver of this library without opening it. TSR_ERROR_UNAVAILABLE:
 * there is no such device; TSR_ERROR_ARGUMENT: the driver is another library's, or out->size is 0.
 */
TSR_API tsr_status tsr_cuda_device_describe(const tsr_device_driver *driver, int index,
                                            tsr_cuda_device_info *out);

/** 1 in `*reaches` if work on device `index` may read and write what lies on device `owner` (always
 * for itself). Errors likewise. */
TSR_API tsr_status tsr_cuda_reaches(const tsr_device_driver *driver, int index, int owner,
                                    int *reaches);

#ifdef __cplusplus
}
#endif

#endif
