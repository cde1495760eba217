/** Rotary positions on local tensors of the host. */
#ifndef TSR_OPS_KERNELS_ATTENTION_ROPE_H
#define TSR_OPS_KERNELS_ATTENTION_ROPE_H

#include "ops/kernels/call.h"

/** The attributes of the rows, by their places. */
enum { TSR_ROPE_BASE, TSR_ROPE_FACTOR, TSR_ROPE_LOW, TSR_ROPE_HIGH, TSR_ROPE_ORIGINAL };

/** The ops rope (code 0) and rope_gradient (1, by the negative angle): inputs x (.., tokens, heads,
 * dim) and positions. Angles, sines and products are f64; results are rounded once. */
tsr_status tsr_rope_run(const tsr_kernel_call *call);
int64_t tsr_rope_workspace(const tsr_kernel_call *call);

#endif
