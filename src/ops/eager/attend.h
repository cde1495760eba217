/** How a rank that fails goes to the meetings of a call all the same, where its peers wait. */
#ifndef TSR_OPS_EAGER_ATTEND_H
#define TSR_OPS_EAGER_ATTEND_H

#include "ops/rows/shadow.h"

/** For a rank that failed before it knew what the call does: finds that out by a shadow, and goes
 * as failed to the meetings of its peers, if there are any. `failed` is this rank's status; returns
 * it, with its sentence. */
tsr_status tsr_eager_attend(const tsr_op_case *c, const tsr_dtensor *const *operands, tsr_status failed);

/** Goes as failed to the meetings of a call whose outlook is known. `x` is any tensor of the call;
 * `is_first`: it is operand 0. Returns `failed`, with its sentence. */
tsr_status tsr_eager_attend_outlook(const tsr_op_case *c, const tsr_op_outlook *outlook, const tsr_dtensor *x,
                                    bool is_first, tsr_status failed);

#endif
