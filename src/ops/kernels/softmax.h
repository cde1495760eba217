/** Softmax along one dim of local tensors of the host. */
#ifndef TSR_OPS_KERNELS_SOFTMAX_H
#define TSR_OPS_KERNELS_SOFTMAX_H

#include "ops/kernels/call.h"

/** Which op of the kernel a row is. */
enum {
    TSR_SOFTMAX,
    TSR_LOG_SOFTMAX,
    TSR_SOFTMAX_GRADIENT,    /**< inputs: the result's gradient, the result */
    TSR_LOG_SOFTMAX_GRADIENT /**< inputs: the result's gradient, the result */
};

/** The dim that an attribute names in a tensor of `ndim` dims, where -1 is the last; -1: there is
 * none. */
int tsr_softmax_dim(const tsr_attribute *dim, int ndim);

/** Runs an op along its attribute dim. All is computed in f64 and rounded once; sums go to 16 sums,
 * term i to sum i mod 16, which are then added in order. Inputs have the output's shape. */
tsr_status tsr_softmax_run(const tsr_kernel_call *call);

#endif
