/** Cumulative sums along a dim: cumsum, and its gradient, which sums from the end. */
#ifndef TSR_OPS_KERNELS_LINES_CUMULATE_H
#define TSR_OPS_KERNELS_LINES_CUMULATE_H

#include "ops/kernels/call.h"

/** Attribute dim (INT); code 1: from the end. Sums are f64, rounded once for each element, or i64.
 * The one exchange tells ranks the sums of all intervals of indices that a rank has, which are
 * added in the order of their indices. */
tsr_status tsr_cumulate_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the workspace. */
int64_t tsr_cumulate_record_bytes(const tsr_kernel_call *call);
int64_t tsr_cumulate_workspace_bytes(const tsr_kernel_call *call);

#endif
