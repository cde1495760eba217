/** Cuts a reduction into launches. Integers only: nothing here calls CUDA. */
#ifndef TSR_DEVICE_CUDA_REDUCTION_H
#define TSR_DEVICE_CUDA_REDUCTION_H

#include "device/cuda/work.h"

#include <tessera/sys/device.h>

#include <stdbool.h>

/** Launches `given` with the kernel for units of 16 bytes (`wide`) or of one element. */
typedef tsr_status tsr_cuda_reduce_launch(void *to, const tsr_cuda_reduce *given, bool wide);

/** Calls `launch` with `to` for each part of `reduce`, which has been checked and is not empty.
 * TSR_ERROR_UNSUPPORTED: more operands than a launch takes. */
tsr_status tsr_cuda_plan_reduction(const tsr_box_reduce *reduce, tsr_cuda_op op, tsr_cuda_reduce_launch *launch,
                                   void *to);

#endif
