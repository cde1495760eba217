/** Positions of the largest and smallest elements along a dim: argmax and argmin. */
#ifndef TSR_OPS_KERNELS_LINES_EXTREME_H
#define TSR_OPS_KERNELS_LINES_EXTREME_H

#include "ops/kernels/call.h"

/** Which op of the kernel a row is. */
enum { TSR_EXTREME_LARGEST, TSR_EXTREME_SMALLEST };

/** Attribute dim (INT); the output is i64, without the dim, and has global positions. Of equal
 * elements, zeros among them, the lowest position is taken; a NaN is more extreme than any number.
 * The one exchange tells ranks each other's elements and positions. */
tsr_status tsr_extreme_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the workspace. */
int64_t tsr_extreme_record_bytes(const tsr_kernel_call *call);
int64_t tsr_extreme_workspace_bytes(const tsr_kernel_call *call);

#endif
