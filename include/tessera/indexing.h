/**
 * @file
 * Operations on dtensors that read or add elements of a table at positions that ids name: PyTorch's
 * embedding, index_select, gather, scatter_add, one_hot and bincount. What all operations have in
 * common (layouts, dtypes, the three forms of a function) is in tessera/ops.h.
 *
 * @par Layouts
 * The dim of a table that ids index may be cut, in any way. Then a rank reads what it has, and -0
 * (of integers 0) in place of the rest, so the result is Partial(sum), and the sum is exact; no
 * rank is met. A rank adds what is its own, so sums are cut as the table is. Ids may be cut along
 * mesh dims that do not cut the table: what is read is cut as they are, and a gradient is Partial.
 * A table of a dtype without Partial(sum), such as bool, is whole along the dim.
 *
 * @par Ids
 * Ids are i64 or i32. One that is negative, or not below the size of the whole dim, is
 * TSR_ERROR_ARGUMENT on the ranks that have it; the sentence names the id, the rank and the index.
 * Then results of _into have unspecified values, but sums are as they were. On a device other than
 * the host the call succeeds, without these ids; the next op on the device's default stream, or the
 * next wait of the library for it, is TSR_ERROR_STATE with the same sentence.
 *
 * @par Sums
 * Terms are added in ascending order of their positions in the ids, in the table's dtype, those of
 * f16 and bf16 in f32 and rounded once. Integers wrap.
 */
#ifndef TESSERA_INDEXING_H
#define TESSERA_INDEXING_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** Numbers: row `ids[..]` of `weight` (rows, features) for each id; ids are (..), the result (..,
 * features). dweight has the weight's layout; dout is added to the row of each id. */
TSR_API tsr_status tsr_embedding(const tsr_dtensor *weight, const tsr_dtensor *ids,
                                 tsr_dtensor **out);
TSR_API tsr_status tsr_embedding_into(const tsr_dtensor *weight, const tsr_dtensor *ids,
                                      tsr_dtensor *out);
TSR_API tsr_status tsr_embedding_backward(const tsr_dtensor *weight, const tsr_dtensor *ids,
                                          const tsr_dtensor *dout, tsr_dtensor **dweight);
/** @} */

/** @{ */
/** Any dtype: the slices of x along `dim` (-1: the last) that `index`, of one dim, names. Gradients
 * are those of numbers. */
TSR_API tsr_status tsr_index_select(const tsr_dtensor *x, const tsr_dtensor *index, int dim,
                                    tsr_dtensor **out);
TSR_API tsr_status tsr_index_select_into(const tsr_dtensor *x, const tsr_dtensor *index, int dim,
                                         tsr_dtensor *out);
TSR_API tsr_status tsr_index_select_backward(const tsr_dtensor *x, const tsr_dtensor *index,
                                             int dim, const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * Any dtype: an element of x for each element of `index`, which has as many dims as x: with `dim` 1
 * (-1: the last) of 3, out[i][j][k] = x[i][index[i][j][k]][k]. The result has the index's shape. In
 * other dims the index is as long as x, and then cut alike; or shorter, and then x must be whole
 * there. Gradients are those of numbers.
 */
TSR_API tsr_status tsr_gather(const tsr_dtensor *x, const tsr_dtensor *index, int dim,
                              tsr_dtensor **out);
TSR_API tsr_status tsr_gather_into(const tsr_dtensor *x, const tsr_dtensor *index, int dim,
                                   tsr_dtensor *out);
TSR_API tsr_status tsr_gather_backward(const tsr_dtensor *x, const tsr_dtensor *index, int dim,
                                       const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * Numbers: x, to which each element of `source` is added where `index`, of the same shape, says:
 * with `dim` 1 (-1: the last) of 3, out[i][index[i][j][k]][k] += source[i][j][k]. Sizes are those
 * of tsr_gather(). Along `dim`, index and source must be whole. x and source may be
 * Partial(sum) together. The result may be x.
 */
TSR_API tsr_status tsr_scatter_add(const tsr_dtensor *x, const tsr_dtensor *index,
                                   const tsr_dtensor *source, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_scatter_add_into(const tsr_dtensor *x, const tsr_dtensor *index,
                                        const tsr_dtensor *source, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_scatter_add_backward(const tsr_dtensor *x, const tsr_dtensor *index,
                                            const tsr_dtensor *source, int dim,
                                            const tsr_dtensor *dout, tsr_dtensor **dx,
                                            tsr_dtensor **dsource);
/** @} */

/** @{ */
/** For ids (..) below `classes`: i64 (.., classes), 1 where the id is and 0 elsewhere. The result
 * is cut as ids are, and has no gradient. */
TSR_API tsr_status tsr_one_hot(const tsr_dtensor *ids, int64_t classes, tsr_dtensor **out);
TSR_API tsr_status tsr_one_hot_into(const tsr_dtensor *ids, int64_t classes, tsr_dtensor *out);
/** @} */

/** @{ */
/** For ids (..) below `length`: i64 (length), how often each is there. Where ids are cut, the
 * result is Partial(sum). It has no gradient. */
TSR_API tsr_status tsr_bincount(const tsr_dtensor *ids, int64_t length, tsr_dtensor **out);
TSR_API tsr_status tsr_bincount_into(const tsr_dtensor *ids, int64_t length, tsr_dtensor *out);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
