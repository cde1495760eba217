/** Counts of ids. */
#ifndef TSR_OPS_KERNELS_INDEXING_COUNTING_H
#define TSR_OPS_KERNELS_INDEXING_COUNTING_H

#include "ops/kernels/call.h"

/** The op one_hot: 1 at each id, 0 elsewhere, along a last dim. */
tsr_status tsr_counting_mark(const tsr_kernel_call *call);

/** The op bincount: the number of each id. */
tsr_status tsr_counting_count(const tsr_kernel_call *call);

#endif
