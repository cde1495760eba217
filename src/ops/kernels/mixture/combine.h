/** The op combine: slots of a token, times their weights, become one; and its gradients. */
#ifndef TSR_OPS_KERNELS_MIXTURE_COMBINE_H
#define TSR_OPS_KERNELS_MIXTURE_COMBINE_H

#include "ops/kernels/call.h"

/** Codes of the rows. */
enum {
    TSR_COMBINE,        /**< out (t, h) of y (t, s, h) and weights (t, s) */
    TSR_COMBINE_Y,      /**< dy of dout (t, h) and weights */
    TSR_COMBINE_WEIGHTS /**< dweights of dout and y */
};

/** Adds in the order of slots, in f32, of f64 in f64, and rounds once. */
tsr_status tsr_combine_run(const tsr_kernel_call *call);

/** The workspace of tsr_combine_run(). */
int64_t tsr_combine_bytes(const tsr_kernel_call *call);

#endif
