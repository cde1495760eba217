/** What rows of random numbers accept. */
#ifndef TSR_OPS_ROWS_GROUPS_RANDOM_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_RANDOM_CHECKS_H

#include "ops/rows/row.h"

/** The attributes of random.h, and a dtype that the row's op makes. */
tsr_status tsr_check_random(const tsr_op_case *c, tsr_dtype *results);

#endif
