/** The cross-entropy of x w', whose logits are never whole: they are made, used and dropped for
 * some rows at a time. */
#ifndef TSR_OPS_KERNELS_LOSSES_LINEAR_LOSSES_H
#define TSR_OPS_KERNELS_LOSSES_LINEAR_LOSSES_H

#include "ops/kernels/losses/losses.h"

/** The most bytes of logits that are there at a time, unless fewer than 16 rows fit. */
#define TSR_LINEAR_LOSS_BYTES ((int64_t)32 << 20)

/** The ops linear_cross_entropy and linear_cross_entropy_gradient. Logits are f64 or f32; those of
 * f16 and bf16 are not rounded. */
tsr_status tsr_linear_cross_entropy_run(const tsr_kernel_call *call);
tsr_status tsr_linear_cross_entropy_gradient_run(const tsr_kernel_call *call);

int64_t tsr_linear_loss_workspace_bytes(const tsr_kernel_call *call);

#endif
