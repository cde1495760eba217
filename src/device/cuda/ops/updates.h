/** Updates of optimizers. */
#ifndef TSR_DEVICE_CUDA_OPS_UPDATES_H
#define TSR_DEVICE_CUDA_OPS_UPDATES_H

#include "device/cuda/gpu.h"

struct tsr_kernel_call;

/** True if the op of a call is an update. */
bool tsr_cuda_updates(const struct tsr_kernel_call *call);

/** Enqueues such a call. */
tsr_status tsr_cuda_update_weight(const tsr_cuda *cuda, const struct tsr_kernel_call *call, tsr_stream stream);

#endif
