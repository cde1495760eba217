/** Updates of optimizers on local tensors of the host. */
#ifndef TSR_OPS_KERNELS_UPDATES_H
#define TSR_OPS_KERNELS_UPDATES_H

#include "ops/kernels/call.h"
#include "ops/kernels/updates/updates_kernels.h"

/** The operands of a row, by place: the weight, its gradient, states, then tensors without dims. */
typedef struct tsr_update_operands {
    int states; /**< how many; the results are the weight and the states */
    int kept, rate, root;
    int first;  /**< a bool, which may be left out */
    int finite; /**< a bool, which may be left out: where it is 0 the results are the operands */
} tsr_update_operands;

/** The operands of the row `code` (tsr_update_code); -1: the row has no such operand. */
const tsr_update_operands *tsr_update_operands_of(int code);

/** Computes the update `call->code`. An element depends on its operands' alone: not on strides,
 * sizes or kernels. A result may lie over the operand that it takes the place of. */
tsr_status tsr_update_run(const tsr_kernel_call *call);

#endif
