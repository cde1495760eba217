/** Runs the kernel of a call on this rank, with the meetings that its rule wants. */
#ifndef TSR_OPS_EAGER_COMPUTE_H
#define TSR_OPS_EAGER_COMPUTE_H

#include "ops/rows/row.h"

/**
 * Computes `results`, which have the layouts of `inferred`, from `operands` (NULL: left out). Where
 * mesh dims cut exchanged factors it is collective along them, and the first such call over the
 * mesh's communicator. A failure there, `local` too, is told to all ranks that meet: they get
 * TSR_ERROR_PEER.
 */
tsr_status tsr_eager_compute(const tsr_op_case *c, const tsr_op_inferred *inferred, const tsr_dtensor *const *operands,
                             tsr_dtensor *const *results, tsr_status local);

/** Any operand that is not left out. */
const tsr_layout *tsr_eager_some_operand(const tsr_op_case *c);

#endif
