/** What rows of losses accept, and their rules. */
#ifndef TSR_OPS_ROWS_GROUPS_LOSSES_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_LOSSES_CHECKS_H

#include "ops/rows/row.h"

/** All operands but targets are floats of one dtype, which the results get; targets are i64 or
 * i32. */
tsr_status tsr_check_loss(const tsr_op_case *c, tsr_dtype *results);

/** A loss of each row is whole, a reduced one Partial along all that is cut, or whole where the
 * mean divides by a number that data decides. */
tsr_status tsr_rule_of_loss(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** Scans meet along the mesh dims that cut classes. Then the sums of all ranks meet, or the numbers
 * of rows along the mesh dims that cut rows, if the mean needs them. */
unsigned tsr_loss_meets(const tsr_op_case *c, int stage, unsigned exchanged);

#endif
