/** Elements in order along a dim, and their positions: sort and topk. */
#ifndef TSR_OPS_KERNELS_LINES_ORDER_H
#define TSR_OPS_KERNELS_LINES_ORDER_H

#include "ops/kernels/call.h"

/** Which op of the kernel a row is. */
enum {
    TSR_ORDER_SORT, /**< attributes dim and descending (INT) */
    TSR_ORDER_TOP   /**< attributes dim and k (INT) */
};

/**
 * Outputs: values, and global positions (i64). Equal elements, zeros among them, are in the order
 * of their positions; a NaN is above all numbers.
 *
 * The one exchange gathers, sorted by each rank, all elements of a sort, or the first k of each
 * rank, and their positions. Each rank merges them; it keeps what it owns of a sort, and all of the
 * first k.
 */
tsr_status tsr_order_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the workspace. */
int64_t tsr_order_record_bytes(const tsr_kernel_call *call);
int64_t tsr_order_workspace_bytes(const tsr_kernel_call *call);

#endif
