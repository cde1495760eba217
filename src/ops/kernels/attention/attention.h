/** Attention and its gradients on local tensors of the host. */
#ifndef TSR_OPS_KERNELS_ATTENTION_H
#define TSR_OPS_KERNELS_ATTENTION_H

#include "ops/kernels/call.h"

/** The attributes of the rows, by their places. */
enum { TSR_ATTENTION_CAUSAL, TSR_ATTENTION_SCALE, TSR_ATTENTION_WINDOW };

/**
 * The op attention: inputs q, k, v of one dtype, f64, f32, f16 or bf16; one output. Computed in
 * f64 for f64, else in f32, with scores, largest scores and sums kept for a block of queries while
 * chunks of keys go by. Memory beyond the tensors does not grow with queries times keys.
 *
 * With the keys cut there is one exchange, of each query's largest score, sum of weights and sum of
 * weighted values.
 */
tsr_status tsr_attention_run(const tsr_kernel_call *call);
int64_t tsr_attention_workspace(const tsr_kernel_call *call);
int64_t tsr_attention_record(const tsr_kernel_call *call);

/** The op attention_gradient: inputs dout, q, k, v; outputs dq, dk, dv. Weights are computed again.
 * With the keys cut there is one exchange, of each query's largest score, sum of weights, and sum
 * of weights times their gradients. */
tsr_status tsr_attention_gradient_run(const tsr_kernel_call *call);
int64_t tsr_attention_gradient_workspace(const tsr_kernel_call *call);
int64_t tsr_attention_gradient_record(const tsr_kernel_call *call);

#endif
