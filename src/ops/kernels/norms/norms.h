/** Softmax and norms along dims of local tensors of the host. */
#ifndef TSR_OPS_KERNELS_NORMS_H
#define TSR_OPS_KERNELS_NORMS_H

#include "ops/kernels/call.h"
#include "ops/kernels/norms/norm_kernels.h"

/** The dim that an attribute names in a tensor of `ndim` dims, where -1 is the last; -1: there is
 * none. */
int tsr_softmax_dim(const tsr_attribute *dim, int ndim);

/** The place of a power among those that norms have, 1, 2 and infinity; -1: it is another one. */
int tsr_norm_power(double power);

/**
 * Runs the op `call->code`, a tsr_norm_code; TSR_NORM_ONE and TSR_NORM_ONE_GRADIENT stand for norms
 * of all powers. Attributes: dim of softmax; dim and keep of logsumexp, and power behind them of
 * norms; epsilon and dims of rms_norm and layer_norm.
 *
 * Where dims are cut, stage 0 records each row's statistics, and stage 1 merges those of all ranks
 * in the order of their coordinates. An element depends neither on strides nor on kernels.
 */
tsr_status tsr_norm_run(const tsr_kernel_call *call);

/** Bytes of the statistics of this rank's rows. */
int64_t tsr_norm_record_bytes(const tsr_kernel_call *call);

/** Bytes for rows that are not in memory as they are computed, and for sums over rows. */
int64_t tsr_norm_workspace_bytes(const tsr_kernel_call *call);

#endif
