/** How a rank that fails goes on through a call of several ops: on layouts, to the meetings of the
 * ops that its peers go on to. Each rank that fails goes to all of them, so that those that failed
 * early meet those that failed late. */
#ifndef TSR_OPS_EAGER_REPLAY_H
#define TSR_OPS_EAGER_REPLAY_H

#include "ops/eager/steps.h"

/**
 * For a rank that failed in the gradients of a case, when `begun` rows of the formulas had begun:
 * goes on through the formulas by a shadow, as failed, to the meetings of the rows that its peers
 * begin afterwards. `gradient` is that of the result; `wanted` says of which operands gradients are
 * made. Returns `failed`, with its sentence.
 */
tsr_status tsr_eager_attend_gradients(const tsr_op_case *c, const tsr_dtensor *gradient, const bool *wanted, int begun,
                                      tsr_status failed);

/** For a rank that failed in a call of several ops, when `begun` of its steps had begun. Returns
 * `failed`, with its sentence. */
tsr_status tsr_eager_attend_steps(const tsr_steps *steps, int begun, tsr_status failed);

#endif
