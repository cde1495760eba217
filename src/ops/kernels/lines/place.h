/** Gradients of sort and topk: elements go back to the positions that they came from. */
#ifndef TSR_OPS_KERNELS_LINES_PLACE_H
#define TSR_OPS_KERNELS_LINES_PLACE_H

#include "ops/kernels/call.h"

/** Inputs: elements, and along the dim that the attribute dim (INT) names the global position of
 * each (i64); the output has them there, and 0 elsewhere. Positions outside of it are dropped.
 * Where a mesh dim cuts the dim of the inputs,
 * the one exchange gathers all elements and positions. */
tsr_status tsr_place_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the workspace. */
int64_t tsr_place_record_bytes(const tsr_kernel_call *call);
int64_t tsr_place_workspace_bytes(const tsr_kernel_call *call);

#endif
