/**
 * @file
 * GPUs by CUDA: the driver of libtessera-cuda. A tensor whose device is {driver, index} lies on GPU
 * `index` of this process.
 *
 * @par Linking
 * The library links the CUDA runtime and cuBLASLt, never libcuda. It loads on machines without a
 * driver, and there says why it finds no device.
 *
 * @par Streams and the current device
 * A tsr_stream is a cudaStream_t; NULL is the legacy default stream. Every call leaves the calling
 * thread's current device as it was. A thread that never chose a device has device 0, where CUDA 12
 * and newer then make a context, which takes some of its memory. If a process must stay off device
 * 0, its threads choose theirs by cudaSetDevice() before they use this library.
 *
 * @par Graphs
 * A call that only enqueues can be captured into a CUDA graph once it has been executed in the same
 * way, for that opens devices and loads kernels. Ranks of one process that execute together over a
 * direct communicator fork their streams from one capture and join them to it; separate captures
 * are refused. A graph holds kernels of the driver and must be destroyed before it.
 */
#ifndef TESSERA_CUDA_H
#define TESSERA_CUDA_H

#include <tessera/context.h>
#include <tessera/tensor.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of the driver for GPUs. */
typedef struct tsr_cuda_options {
    size_t size; /**< sizeof(tsr_cuda_options) */
    int tf32;    /**< 1: products of f32 matrices run on tensor cores, which round their factors to
                      TF32 (10 bits of mantissa), except products with a single row or column; 0:
                      factors are not rounded */
} tsr_cuda_options;

/** No TF32. */
#define TSR_CUDA_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_cuda_options), 0                                                                \
    }

/**
 * A driver for the GPUs that this process sees. `context` is retained, NULL: defaults. `options`
 * may be NULL. Any thread may use the driver. Free it with tsr_device_driver_destroy(), after the
 * memory on its devices; the driver then waits for the devices' work before it goes.
 *
 * It succeeds where there is no GPU: then its table's `count` gives 0 and the reason, and every
 * other call returns TSR_ERROR_UNAVAILABLE.
 *
 * A device is opened on first use: its kernels are loaded and a memory pool is made. It and the
 * devices opened before get access to each other's memory where the hardware allows it: memory of
 * this driver and of cudaMalloc(). Memory of other pools (cudaMallocAsync() too), or mapped by
 * cuMemMap(), is reached by peers only if its owner gives them access.
 */
TSR_API tsr_status tsr_cuda_driver_create(tsr_context *context, const tsr_cuda_options *options,
                                          tsr_device_driver **out);

/** Versions as CUDA numbers them: 13000 is 13.0. */
typedef struct tsr_cuda_versions {
    size_t size;  /**< sizeof(tsr_cuda_versions), set by the caller; fields beyond it are left
                       alone */
    int built;    /**< of the toolkit that this library was built with */
    int runtime;  /**< of the CUDA runtime that was loaded */
    int driver;   /**< the newest runtime that the installed driver serves; 0: no driver is
                       installed */
    int cublaslt; /**< of the cuBLASLt that was loaded: 130002 is 13.0.2 */
} tsr_cuda_versions;

/** Fills `*out`; works without a GPU. TSR_ERROR_ARGUMENT: `out` is NULL or its size 0. */
TSR_API tsr_status tsr_cuda_versions_get(tsr_cuda_versions *out);

/** Properties of one GPU. */
typedef struct tsr_cuda_device_info {
    size_t size; /**< sizeof(tsr_cuda_device_info), set by the caller; fields beyond it are left
                      alone */
    char name[256];
    int major, minor; /**< compute capability */
    int multiprocessors;
    int64_t memory_bytes;
} tsr_cuda_device_info;

/** Describes device `index` of `driver` without opening it. TSR_ERROR_UNAVAILABLE: there is no such
 * device. TSR_ERROR_ARGUMENT: another library made the driver, or out->size is 0. */
TSR_API tsr_status tsr_cuda_device_describe(const tsr_device_driver *driver, int index,
                                            tsr_cuda_device_info *out);

/** 1 in `*reaches` if work on device `index` may read and write memory of device `owner`, else 0;
 * always 1 for itself. TSR_ERROR_UNAVAILABLE: there is no such device. TSR_ERROR_ARGUMENT: another
 * library made the driver, or `reaches` is NULL. */
TSR_API tsr_status tsr_cuda_reaches(const tsr_device_driver *driver, int index, int owner,
                                    int *reaches);

#ifdef __cplusplus
}
#endif

#endif
