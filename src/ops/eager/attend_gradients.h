/** How a rank that fails in a backward goes to the meetings of the rows that follow. */
#ifndef TSR_OPS_EAGER_ATTEND_GRADIENTS_H
#define TSR_OPS_EAGER_ATTEND_GRADIENTS_H

#include "ops/rows/row.h"

/**
 * For a rank that failed in the gradients of a case, when `begun` rows of the formulas had begun:
 * goes on through the formulas by a shadow, as failed, to the meetings of the rows that its peers
 * begin afterwards. `gradient` is that of the result; `wanted` says of which operands gradients are
 * made. Returns `failed`, with its sentence.
 */
tsr_status tsr_eager_attend_gradients(const tsr_op_case *c, const tsr_dtensor *gradient, const bool *wanted, int begun,
                                      tsr_status failed);

#endif
