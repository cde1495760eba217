/** How a rank that fails goes to the meetings of a call all the same, where its peers wait. */
#ifndef TSR_OPS_EAGER_ATTEND_H
#define TSR_OPS_EAGER_ATTEND_H

#include "ops/rows/row.h"

/** For a rank that failed before it knew what the call does: finds that out by a shadow, and goes
 * as failed to the meetings of its peers, if there are any. `failed` is this rank's status; returns
 * it, with its sentence. */
tsr_status tsr_eager_attend(const tsr_op_case *c, const tsr_dtensor *const *operands, tsr_status failed);

/**
 * For a rank that failed in the gradients of a case, when `begun` rows of the formulas had begun:
 * goes on through the formulas by a shadow, as failed, to the meetings of the rows that its peers
 * begin afterwards. `gradient` is that of the result; `wanted` says of which operands gradients are
 * made. Returns `failed`, with its sentence.
 */
tsr_status tsr_eager_attend_gradients(const tsr_op_case *c, const tsr_dtensor *gradient, const bool *wanted, int begun,
                                      tsr_status failed);

#endif
