/** What a CUDA driver keeps: its devices, which are opened when they are first used, and the kernels. */
#ifndef TSR_DEVICE_CUDA_CUDA_H
#define TSR_DEVICE_CUDA_CUDA_H

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

/** Enqueues `blocks` blocks of a kernel, whose arguments are copied. The device of `stream` is the thread's. */
tsr_status tsr_cuda_launch(const tsr_cuda *cuda, tsr_cuda_kernel kernel, uint32_t blocks, void **arguments, tsr_stream stream);

/** Entries of the table: `self` is a tsr_cuda. */
tsr_status tsr_cuda_alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out);
void tsr_cuda_free(void *self, int index, void *memory, size_t bytes, tsr_stream stream);
tsr_status tsr_cuda_copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind, tsr_stream stream);
tsr_status tsr_cuda_copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status tsr_cuda_fill(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);
tsr_status tsr_cuda_reduce_boxes(void *self, int index, const tsr_box_reduce *reduce, tsr_stream stream);
tsr_status tsr_cuda_convert_elements(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype,
                                     int64_t count, tsr_stream stream);
tsr_status tsr_cuda_gemm(void *self, int index, const tsr_gemm *gemm, tsr_stream stream);
tsr_status tsr_cuda_gemm_workspace(void *self, int index, const tsr_gemm *gemm, size_t *bytes);
tsr_status tsr_cuda_stream_create(void *self, int index, tsr_stream *out);
void tsr_cuda_stream_destroy(void *self, int index, tsr_stream stream);
tsr_status tsr_cuda_stream_synchronize(void *self, int index, tsr_stream stream);
tsr_status tsr_cuda_event_create(void *self, int index, void **out);
void tsr_cuda_event_destroy(void *self, int index, void *event);
tsr_status tsr_cuda_event_record(void *self, int index, void *event, tsr_stream stream);
tsr_status tsr_cuda_event_wait(void *self, int index, void *event, tsr_stream stream);
tsr_status tsr_cuda_capture(void *self, int index, tsr_stream stream, uint64_t *id);
tsr_status tsr_cuda_reach(void *self, int index, int owner, int *out);

/** What GEMMs keep: made with the driver, gone before its devices close. */
tsr_status tsr_cuda_gemms_create(tsr_context *context, int devices, tsr_cuda_gemms **out);
void tsr_cuda_gemms_destroy(tsr_cuda *cuda);

#endif
