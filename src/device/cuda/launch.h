/** Entries of the operation table that launch kernels; `self` is a tsr_cuda. */
#ifndef TSR_DEVICE_CUDA_LAUNCH_H
#define TSR_DEVICE_CUDA_LAUNCH_H

#include "device/cuda/gpu.h"
#include "device/cuda/work.h"

/** Enqueues `blocks` blocks of a kernel; its arguments are copied. The thread's device is that of
 * `stream`. */
tsr_status tsr_cuda_launch(const tsr_cuda *cuda, tsr_cuda_kernel kernel, uint32_t blocks, void **arguments,
                           tsr_stream stream);

/** The type of numbers in whose kernels a dtype is combined, and the op there. */
tsr_cuda_number tsr_cuda_number_of(tsr_dtype dtype);
tsr_cuda_op tsr_cuda_op_of(tsr_reduce_op op, tsr_dtype dtype);

tsr_status tsr_cuda_copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status tsr_cuda_fill(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);
tsr_status tsr_cuda_reduce_boxes(void *self, int index, const tsr_box_reduce *reduce, tsr_stream stream);
tsr_status tsr_cuda_convert_elements(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                                     tsr_dtype src_dtype, int64_t count, tsr_stream stream);

#endif
