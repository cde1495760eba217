/** Rows that take a range of a dim, or fill it: what they accept, their shapes and placements. */
#ifndef TSR_OPS_ROWS_GROUPS_RANGES_H
#define TSR_OPS_ROWS_GROUPS_RANGES_H

#include "ops/rows/row.h"

/** A range of a dim, by attributes or by the shape of a second operand. */
tsr_status tsr_check_range(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_shape_of_range(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);
void tsr_place_of_range(const tsr_op_case *c, tsr_op_placing *out);

#endif
