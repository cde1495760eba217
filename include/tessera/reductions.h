/**
 * @file
 * Reductions of dtensors over dims. What all operations have in common (layouts, dtypes, the three
 * forms of a function) is in tessera/ops.h.
 */
#ifndef TESSERA_REDUCTIONS_H
#define TESSERA_REDUCTIONS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Numbers: sums over the `count` dims in `dims` (all if count is 0), which stay as dims of size 1
 * if `keep` is 1. Along a mesh dim that cuts one of them the result is Partial. Each rank adds its
 * terms in f64, in an order that its shard's shape alone decides, and rounds once; integers wrap.
 */
TSR_API tsr_status tsr_sum(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           tsr_dtensor **out);
TSR_API tsr_status tsr_sum_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                tsr_dtensor *out);
TSR_API tsr_status tsr_sum_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                    const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: sum over the same dims divided by the number of elements in the whole tensor. */
TSR_API tsr_status tsr_mean(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                            tsr_dtensor **out);
TSR_API tsr_status tsr_mean_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                 tsr_dtensor *out);
TSR_API tsr_status tsr_mean_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
