/** What rows of elements in order accept. */
#ifndef TSR_OPS_ROWS_GROUPS_ORDER_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_ORDER_CHECKS_H

#include "ops/rows/row.h"

/** sort and topk: numbers; the results are of their dtype and i64. The attribute k, if there is
 * one, is at most the dim's size. */
tsr_status tsr_check_sorted(const tsr_op_case *c, tsr_dtype *results);

/** Numbers, of which the result is one. */
tsr_status tsr_check_cumulative(const tsr_op_case *c, tsr_dtype *results);

/** Numbers and, of the same shape, their positions in i64. */
tsr_status tsr_check_placed(const tsr_op_case *c, tsr_dtype *results);

/** The results of topk have k elements along the dim. */
tsr_status tsr_shape_of_topk(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);

#endif
