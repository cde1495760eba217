/** The entry `launch` of the operation table; `self` is a tsr_cuda. */
#ifndef TSR_DEVICE_CUDA_OPS_OPS_H
#define TSR_DEVICE_CUDA_OPS_OPS_H

#include <tessera/sys/device.h>

/** Enqueues the kernels of an op, or answers what it wants (sys/device.h). */
tsr_status tsr_cuda_run_op(void *self, int index, const struct tsr_kernel_call *call, tsr_stream stream);

#endif
