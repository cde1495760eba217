/** Entries of the operation table that launch kernels; `self` is a tsr_cuda. */
#ifndef TSR_DEVICE_CUDA_LAUNCH_H
#define TSR_DEVICE_CUDA_LAUNCH_H

#include <tessera/sys/device.h>

tsr_status tsr_cuda_copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status tsr_cuda_fill(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);
tsr_status tsr_cuda_reduce_boxes(void *self, int index, const tsr_box_reduce *reduce, tsr_stream stream);
tsr_status tsr_cuda_convert_elements(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                                     tsr_dtype src_dtype, int64_t count, tsr_stream stream);

#endif
