/**
 * @file
 * Elements in order along a dim, and cumulative sums. What all operations have in common (layouts,
 * dtypes, the three forms of a function) is in tessera/ops.h.
 *
 * The dim `dim` (-1: the last) may be cut in any way. Where a mesh dim cuts it, the ranks along
 * that mesh dim meet once in the call.
 */
#ifndef TESSERA_ORDER_H
#define TESSERA_ORDER_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/**
 * Numbers: all elements along `dim`, from the smallest to the largest or with `descending` 1 the
 * other way, and the position (i64) where each was. Equal elements, zeros among them, stay in the
 * order of their positions; a NaN is above all numbers. Both results are cut as x is.
 *
 * Where the dim is cut, ranks exchange all elements, 16 bytes each: a rank holds whole lines while
 * it keeps its own part of them. `values` or `indices` may be NULL: it is not kept. The gradient,
 * of `values`, goes back to the positions, with another such exchange.
 */
TSR_API tsr_status tsr_sort(const tsr_dtensor *x, int dim, int descending, tsr_dtensor **values,
                            tsr_dtensor **indices);
TSR_API tsr_status tsr_sort_into(const tsr_dtensor *x, int dim, int descending, tsr_dtensor *values,
                                 tsr_dtensor *indices);
TSR_API tsr_status tsr_sort_backward(const tsr_dtensor *x, int dim, int descending,
                                     const tsr_dtensor *dvalues, tsr_dtensor **dx);
/** @} */

/** The positions of tsr_sort() alone. */
TSR_API tsr_status tsr_argsort(const tsr_dtensor *x, int dim, int descending,
                               tsr_dtensor **indices);

/** @{ */
/**
 * Numbers: the `k` largest elements along `dim`, the largest first, and their positions (i64). Of
 * equal elements, zeros among them, those of the lowest positions come first; a NaN is above all
 * numbers. The results have k elements along the dim and are whole there.
 *
 * Where the dim is cut, ranks exchange their k largest, 16 bytes each; k may be larger than a
 * shard. `values` or `indices` may be NULL: it is not kept. The gradient, of `values`, goes back to
 * the positions without another exchange than that of the positions, which are computed again.
 * TSR_ERROR_ARGUMENT: k is negative, or larger than the dim.
 */
TSR_API tsr_status tsr_topk(const tsr_dtensor *x, int64_t k, int dim, tsr_dtensor **values,
                            tsr_dtensor **indices);
TSR_API tsr_status tsr_topk_into(const tsr_dtensor *x, int64_t k, int dim, tsr_dtensor *values,
                                 tsr_dtensor *indices);
TSR_API tsr_status tsr_topk_backward(const tsr_dtensor *x, int64_t k, int dim,
                                     const tsr_dtensor *dvalues, tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * Numbers: the sum of each element and all before it along `dim`. Sums are f64, in the order of
 * positions, and each is rounded once; integers wrap. A Partial sum passes.
 *
 * Where the dim is cut, ranks exchange a sum for each interval of positions that they have; sums of
 * intervals are then added in order, so results differ between layouts by the rounding of f64
 * alone. The gradient sums from the end.
 */
TSR_API tsr_status tsr_cumsum(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_cumsum_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_cumsum_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                       tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
