/** Lists of rows that are copied or combined: the calls of `launch` that are not ops
 * (sys/device.h). */
#ifndef TSR_DEVICE_CUDA_OPS_ROWS_H
#define TSR_DEVICE_CUDA_OPS_ROWS_H

#include "device/cuda/gpu.h"

struct tsr_kernel_call;

/** True if a call is of a list of rows. */
bool tsr_cuda_lists_rows(const struct tsr_kernel_call *call);

/** True if there is a kernel for such a call. */
bool tsr_cuda_takes_rows(const struct tsr_kernel_call *call);

/** Enqueues such a call. */
tsr_status tsr_cuda_combine_rows(const tsr_cuda *cuda, const struct tsr_kernel_call *call, tsr_stream stream);

#endif
