/** Which layouts the gradient of a result may have. */
#ifndef TSR_OPS_ROWS_GRADIENT_CHECK_H
#define TSR_OPS_ROWS_GRADIENT_CHECK_H

#include "ops/rows/row.h"

/** Checks that a gradient's layout `own` is one of those that the gradient of a result of layout
 * `result` may have: its gradient layout, invariant or varying. */
tsr_status tsr_op_check_gradient(const tsr_op_case *c, const tsr_layout *result, const tsr_layout *own);

#endif
