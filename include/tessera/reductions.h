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

/** @{ */
/** Numbers: the largest and the smallest element over the `count` dims in `dims` (all if count is
 * 0), where NaN passes and -0 is below +0; of no elements -infinity or the lowest integer, or the
 * opposite. Along a mesh dim that cuts one of the dims the result is Partial(max) or Partial(min),
 * and dout is Replicate there. The gradient is shared evenly by equal elements, wherever they are:
 * where a mesh dim cuts the dims, ranks exchange their extremes and how many elements have them. */
TSR_API tsr_status tsr_max(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           tsr_dtensor **out);
TSR_API tsr_status tsr_max_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                tsr_dtensor *out);
TSR_API tsr_status tsr_max_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                    const tsr_dtensor *dout, tsr_dtensor **dx);
TSR_API tsr_status tsr_min(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           tsr_dtensor **out);
TSR_API tsr_status tsr_min_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                tsr_dtensor *out);
TSR_API tsr_status tsr_min_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                    const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Numbers: the product over the same dims, computed in f64 and rounded once; integers wrap. Along
 * a mesh dim that cuts one of the dims the result is Partial(prod), and dout is Replicate there.
 * Each element's gradient is dout times the product of the others, which is right beside zeros,
 * too; where a mesh dim cuts the dims, ranks exchange their products and their numbers of zeros. */
TSR_API tsr_status tsr_prod(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                            tsr_dtensor **out);
TSR_API tsr_status tsr_prod_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                 tsr_dtensor *out);
TSR_API tsr_status tsr_prod_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: the variance over the same dims, the sum of squared deviations from the mean divided by
 * the number of elements less `correction` (1 of a sample, 0 of all that there is), and its root,
 * the standard deviation. Where a mesh dim cuts the dims, ranks exchange how many elements they
 * have, means and sums of squares, and the result is whole; the gradients, too, need one exchange.
 * Computed in f64, and rounded once; layouts change the rounding of f64 alone. Where there are not
 * more elements than `correction`, results are NaN or infinite. A deviation of 0 has the gradient
 * 0. */
TSR_API tsr_status tsr_var(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           double correction, tsr_dtensor **out);
TSR_API tsr_status tsr_var_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                double correction, tsr_dtensor *out);
TSR_API tsr_status tsr_var_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                    double correction, const tsr_dtensor *dout, tsr_dtensor **dx);
TSR_API tsr_status tsr_std(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           double correction, tsr_dtensor **out);
TSR_API tsr_status tsr_std_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                double correction, tsr_dtensor *out);
TSR_API tsr_status tsr_std_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                    double correction, const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Bools: 1 if any, or all, of the elements over the same dims are 1; of none 0 and 1. Along a mesh
 * dim that cuts one of the dims the result is Partial(max), or Partial(min). No gradients. */
TSR_API tsr_status tsr_any(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           tsr_dtensor **out);
TSR_API tsr_status tsr_any_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                tsr_dtensor *out);
TSR_API tsr_status tsr_all(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           tsr_dtensor **out);
TSR_API tsr_status tsr_all_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                tsr_dtensor *out);
/** @} */

/** @{ */
/** Numbers: the position (i64) of the largest, or smallest, element along `dim` (-1: the last),
 * which the result lacks. Of equal elements, zeros among them, the lowest position is taken, and
 * the first NaN, if there is one. The dim may be cut in any way: ranks then exchange an element and
 * a position for each element of the result, which is whole. TSR_ERROR_ARGUMENT: the dim is empty.
 * No gradients. */
TSR_API tsr_status tsr_argmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_argmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_argmin(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_argmin_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
