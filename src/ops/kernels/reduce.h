/** Sums over dims of local tensors of the host, and results that are spread over dims. */
#ifndef TSR_OPS_KERNELS_REDUCE_H
#define TSR_OPS_KERNELS_REDUCE_H

#include "ops/kernels/call.h"

#include <stdbool.h>

/** Which op of the kernel a row is. */
enum {
    TSR_REDUCE_SUM,
    TSR_REDUCE_MEAN,
    TSR_REDUCE_MAX,  /**< NaN passes, -0 is below +0 */
    TSR_REDUCE_MIN,  /**< NaN passes, -0 is below +0 */
    TSR_REDUCE_PROD, /**< in f64 or i64, rounded once */
    TSR_REDUCE_ANY,
    TSR_REDUCE_ALL,
    TSR_REDUCE_SQUARES, /**< the sum of squares, an f64; a second input multiplies elements first */
    TSR_REDUCE_FINITE   /**< whether all elements are finite, a bool */
};

/** Marks the dims of a tensor of `ndim` dims that a list of dims names; an empty list names all.
 * False: a dim is out of range or named twice. */
bool tsr_reduce_mark(int count, const int64_t *dims, int ndim, bool marked[TSR_MAX_DIMS]);

/** A reduction: attributes dims (INTS) and keep (INT). Terms are added in f64 or i64: along a last
 * dim that is reduced to 16 sums, term i to sum i mod 16, which are then added in order; else one
 * after the other. The mean divides by the number of terms in the whole tensor. Of no terms the
 * largest is -infinity or the lowest integer, the smallest the opposite, and the product 1. */
tsr_status tsr_reduce_run(const tsr_kernel_call *call);

/** The op sum_to: attribute shape (INTS). Sums so that the shape becomes this one, which is aligned
 * at the right and has dims of size 1, or none, where terms are added. */
tsr_status tsr_reduce_sum_to(const tsr_kernel_call *call);

/** The op spread: the inverse of a sum's shape. Repeats the first input along the dims that sum,
 * with the same attributes, would reduce; with code 1 divided by the number of repetitions in the
 * whole tensor. */
tsr_status tsr_reduce_spread(const tsr_kernel_call *call);

#endif
