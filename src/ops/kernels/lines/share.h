/** Gradients of reductions that choose or multiply: max, min and prod. */
#ifndef TSR_OPS_KERNELS_LINES_SHARE_H
#define TSR_OPS_KERNELS_LINES_SHARE_H

#include "ops/kernels/call.h"

/**
 * The gradient of a reduction by its code (reduce.h: max, min or prod), with its attributes.
 * Inputs: the result's gradient d, and x; the output has the shape of x.
 *
 * Elements that are the largest or smallest share d evenly; where that is NaN, all NaNs do. An
 * element of a product gets d times the product of the others, exactly 0 where one of them is 0.
 * The one exchange tells ranks what a result is and how many elements share it, or how many are 0.
 */
tsr_status tsr_share_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the workspace. */
int64_t tsr_share_record_bytes(const tsr_kernel_call *call);
int64_t tsr_share_workspace_bytes(const tsr_kernel_call *call);

#endif
