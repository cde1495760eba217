/** Pointwise ops on local tensors of the host. */
#ifndef TSR_OPS_KERNELS_POINTWISE_H
#define TSR_OPS_KERNELS_POINTWISE_H

#include "ops/kernels/call.h"
#include "ops/kernels/pointwise_kernels.h"

#include <stdbool.h>

/** The dtype in which elements of a dtype are computed: f32 for f16 and bf16; TSR_DTYPE_NONE:
 * there are no loops for it. */
tsr_dtype tsr_pointwise_computes_in(tsr_dtype dtype);

/** The kernels named `name`, which this processor must run; the portable ones if the build lacks
 * them. */
const tsr_pointwise_kernels *tsr_pointwise_kernels_for(const char *name);

/** True if the op `code` (tsr_pointwise) has a loop for results, or of a test for operands, of
 * `dtype`. */
bool tsr_pointwise_takes(int code, tsr_dtype dtype);

/** Computes the op `call->code`: inputs are aligned at the right with the one output, and dims of
 * size 1, or that are missing, are repeated. The row's first attributes, floats or the places of
 * words, are the loop's parameters. An element depends on its operands' alone: not on strides,
 * sizes or kernels. */
tsr_status tsr_pointwise_run(const tsr_kernel_call *call);

/** The op cast: one input, converted to the output's dtype, rounding once. */
tsr_status tsr_pointwise_cast(const tsr_kernel_call *call);

#endif
