/** Layouts in which ops take their operands. Pure. */
#ifndef TSR_OPS_ROWS_SETTLE_H
#define TSR_OPS_ROWS_SETTLE_H

#include "ops/rows/row.h"

/** tsr_op_settle() for a case that has begun. */
tsr_status tsr_op_settle_case(const tsr_op_case *c, tsr_policy policy, int64_t bytes, tsr_layout **out);

#endif
