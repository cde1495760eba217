/** What rows of optimizers' updates accept. */
#ifndef TSR_OPS_ROWS_GROUPS_UPDATES_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_UPDATES_CHECKS_H

#include "ops/rows/row.h"

/** The weight, its gradient and the states have one shape, numbers and flags have no dims. States
 * and numbers are f64 with a weight of f64, and else f32; gradients are f64 with that of f64. */
tsr_status tsr_check_update(const tsr_op_case *c, tsr_dtype *results);

#endif
