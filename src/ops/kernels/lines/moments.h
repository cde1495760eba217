/** Variances and standard deviations over dims, and their gradients. */
#ifndef TSR_OPS_KERNELS_LINES_MOMENTS_H
#define TSR_OPS_KERNELS_LINES_MOMENTS_H

#include "ops/kernels/call.h"

/** Which op of the kernel a row is. */
enum {
    TSR_MOMENTS_VAR,
    TSR_MOMENTS_STD,
    TSR_MOMENTS_VAR_GRADIENT, /**< inputs: the result's gradient, x */
    TSR_MOMENTS_STD_GRADIENT  /**< inputs: the result's gradient, x */
};

/** Attributes dim (INTS), keep (INT) and correction (FLOAT), which is taken off the number of
 * elements. Computed in f64 from deviations, and rounded once. The one exchange tells ranks each
 * other's numbers, means and sums of squared deviations, which are merged in their order (Chan,
 * Golub and LeVeque). The gradient of a deviation of 0 is 0. */
tsr_status tsr_moments_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the workspace. */
int64_t tsr_moments_record_bytes(const tsr_kernel_call *call);
int64_t tsr_moments_workspace_bytes(const tsr_kernel_call *call);

#endif
