/**
 * @file
 * The values of a dtensor as a whole: fill it, add to it, sum it, and look at some of its rows.
 *
 * These calls work on layouts as they are and move no elements between ranks. What reads all
 * elements (tsr_dtensor_sum(), tsr_dtensor_norm()) counts each global element once, however many
 * ranks hold it.
 */
#ifndef TESSERA_VALUES_H
#define TESSERA_VALUES_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An uninitialised dtensor with the layout and the device of `x`, in new contiguous memory. The
 * caller owns `*out`. Does not communicate. */
TSR_API tsr_status tsr_dtensor_like(const tsr_dtensor *x, tsr_dtensor **out);

/** tsr_dtensor_like() with elements of another dtype, such as f32 gradients of bf16 weights.
 * TSR_ERROR_ARGUMENT: the dtype does not have the op of a Partial of the layout. */
TSR_API tsr_status tsr_dtensor_like_as(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor **out);

/** The number of elements of the whole tensor, each counted once; 0 for NULL. Does not
 * communicate. */
TSR_API int64_t tsr_dtensor_count(const tsr_dtensor *x);

/**
 * Makes every element of the tensor `value`, in the order of `stream`. Terms of a Partial are such
 * that they reduce to it, as tsr_distribute_tensor() makes them: for sum, coordinate 0 holds
 * `value` and the others -0.0 (0 in integers); for prod the others hold 1; else all hold `value`.
 *
 * Floating dtypes round `value` once, to nearest even; complex ones get it as the real part.
 * Integers and bool need a value that they can hold exactly. Each rank fills its own shard: does
 * not communicate. TSR_ERROR_ARGUMENT: the dtype cannot hold the value; two elements of the local
 * tensor share memory.
 */
TSR_API tsr_status tsr_dtensor_fill(tsr_dtensor *x, double value, tsr_stream stream);

/**
 * y += x, element by element, in the order of `stream`: gradients of several steps accumulated, for
 * example. Both have the same global shape and placements on equal meshes, and are on one device.
 * Each rank adds its own shard: does not communicate. Terms of Partial(sum) and Partial(avg) stay
 * terms, so gradients can be accumulated first and reduced once.
 *
 * Elements are added as reductions add two terms: f16, bf16 and f8 in f32, rounded once; integers
 * wrap. x may also be of a narrower floating dtype than y (bf16 into f32): its values are widened
 * exactly first, in temporary memory of y's size. `x` may be `y`.
 *
 * TSR_ERROR_ARGUMENT: the layouts or devices differ; x's floating dtype is not the same and not
 * narrower; the local tensors are not the same elements, and overlap, each from its first element
 * to its last (so columns of one matrix are not added to others); two elements of y share memory.
 * TSR_ERROR_UNSUPPORTED: the dtype is bool, or a Partial is prod, min or max, whose terms cannot be
 * added.
 */
TSR_API tsr_status tsr_dtensor_accumulate(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream);

/**
 * Collective: the sum of all elements of the tensor, each once; replicas do not count again, and
 * share the work. The sum is exact and rounded once, to nearest even. So it has the same bits on
 * every rank, and for every layout, number of ranks, engine and device: it depends on the elements
 * alone. It takes some nanoseconds an element, for f64 several times as many. An exact 0 is +0; NaN
 * or both infinities give the positive quiet NaN.
 *
 * A rank outside the mesh gets the sum too. Elements on another device are copied to the host, in
 * pieces, and the call waits for the default stream (NULL).
 *
 * TSR_ERROR_UNSUPPORTED: a Partial, whose elements are only known once it is reduced
 * (tsr_redistribute_to()); or a complex dtype.
 */
TSR_API tsr_status tsr_dtensor_sum(const tsr_dtensor *x, double *sum);

/** Collective: the Euclidean norm, the square root of the sum of all squared magnitudes; complex
 * dtypes have one too. The sum of squares is exact and neither overflows nor underflows; it is
 * rounded to 53 bits, and so is its root. Otherwise as tsr_dtensor_sum(). */
TSR_API tsr_status tsr_dtensor_norm(const tsr_dtensor *x, double *norm);

/**
 * A view of the global rows [begin, end) of `x`, along its dim 0: a dtensor of end - begin rows
 * over x's own memory. Writing to one writes to the other. Does not communicate; all ranks make the
 * same view, if they want to move it.
 *
 * @par Layout
 * Every rank keeps the rows that it has. Where no mesh dim cuts dim 0, the placements are those of
 * x. Where one does, they give each part its number of rows: the split of x if it comes to these
 * numbers, else a plain S(0) if that does, else `S(0;sizes=..)`. So the view of the query rows of a
 * fused weight (`S(0;blocks=32,16,16)`, rows 0 to 32) is S(0).
 *
 * @par Lifetime
 * The view holds a reference to `x`: it stays valid after tsr_dtensor_destroy() of x. It does not
 * follow x when tsr_redistribute_in_place() changes x, whose elements then mean something else.
 *
 * TSR_ERROR_ARGUMENT: x is a scalar, or not 0 <= begin <= end <= rows. TSR_ERROR_UNSUPPORTED: no
 * placement describes these rows: several mesh dims cut dim 0, or parts take turns within the
 * rows (`interleave`, `blocks`).
 */
TSR_API tsr_status tsr_dtensor_rows(const tsr_dtensor *x, int64_t begin, int64_t end,
                                    tsr_dtensor **out);

#ifdef __cplusplus
}
#endif

#endif
