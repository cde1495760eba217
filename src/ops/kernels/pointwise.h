/** Pointwise ops on local tensors of the host. */
#ifndef TSR_OPS_KERNELS_POINTWISE_H
#define TSR_OPS_KERNELS_POINTWISE_H

#include "ops/kernels/call.h"
#include "ops/kernels/pointwise_kernels.h"

#include <tessera/sys/device.h>

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

/** Computes a part of a large result by `host`, one of the two above; the part goes past the cache
 * if its rows have no gaps. */
void tsr_pointwise_stream(tsr_host_kernel *host, const tsr_kernel_call *call);

/** True if a result of `bytes` bytes, in rows of `run` bytes, goes past the cache: where a copy
 * does. */
bool tsr_pointwise_is_streamed(const tsr_kernel_choices *choices, int64_t run, int64_t bytes);

#endif
