/**
 * @file
 * Views of dtensors, and what moves elements without computing: other shapes and orders of dims,
 * parts, and tensors put together. What all operations have in common (layouts, the three forms of
 * a function) is in tessera/ops.h.
 *
 * @par Memory
 * tsr_reshape() where strides can say it, tsr_transpose(), tsr_permute(), tsr_expand(),
 * tsr_squeeze(), tsr_unsqueeze(), tsr_slice(), tsr_narrow() and tsr_split() copy nothing: the
 * result is a view of x's memory (tsr_dtensor_view()). It keeps that memory alive, and what is
 * written to one is seen in the other. A slice with a step of a shard that is not one interval is
 * copied. The others make new memory, and so does tsr_X_into(), which always copies; there the
 * result may overlap x. A gradient may be a view of `dout`.
 *
 * @par Layouts
 * Nothing is moved between ranks. Each rank keeps the elements that it has, and the result's
 * placements say so; each function tells how. Where no placement can say it, all ranks get
 * TSR_ERROR_ARGUMENT, with the layout to which x would have to be redistributed. Partial operands
 * pass, and so does Partial of max and min, but for Partial of prod.
 *
 * @par Dtypes
 * All, and every bit is kept. Gradients are those of floats. A dim of -1 is the last one, where one
 * dim is named; in lists dims are 0 or more.
 */
#ifndef TESSERA_VIEWS_H
#define TESSERA_VIEWS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/**
 * The same elements in row-major order under another shape of `ndim` dims; one size may be -1,
 * which stands for what is left. Flattening and unflattening are reshapes.
 *
 * A dim that is split or joined keeps its cuts where ranks then have the same elements: (4,6) as
 * S(1) flattened is S(0;interleave=4), and back. Dims that are neither, such as those of 4x6 as
 * 6x4, must be whole.
 */
TSR_API tsr_status tsr_reshape(const tsr_dtensor *x, int ndim, const int64_t *shape,
                               tsr_dtensor **out);
TSR_API tsr_status tsr_reshape_into(const tsr_dtensor *x, int ndim, const int64_t *shape,
                                    tsr_dtensor *out);
TSR_API tsr_status tsr_reshape_backward(const tsr_dtensor *x, int ndim, const int64_t *shape,
                                        const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Two dims change places, and so do their cuts. */
TSR_API tsr_status tsr_transpose(const tsr_dtensor *x, int dim0, int dim1, tsr_dtensor **out);
TSR_API tsr_status tsr_transpose_into(const tsr_dtensor *x, int dim0, int dim1, tsr_dtensor *out);
TSR_API tsr_status tsr_transpose_backward(const tsr_dtensor *x, int dim0, int dim1,
                                          const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Dims in another order: dim i of the result is dim dims[i] of x; `dims` has each of the `count`
 * dims of x once. */
TSR_API tsr_status tsr_permute(const tsr_dtensor *x, int count, const int64_t *dims,
                               tsr_dtensor **out);
TSR_API tsr_status tsr_permute_into(const tsr_dtensor *x, int count, const int64_t *dims,
                                    tsr_dtensor *out);
TSR_API tsr_status tsr_permute_backward(const tsr_dtensor *x, int count, const int64_t *dims,
                                        const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** x repeated along dims of size 1 and along new leading dims, to a shape of `ndim` dims. The
 * result has strides of 0, so it can only be read. Repeated dims are not cut. The gradient is
 * summed along them. */
TSR_API tsr_status tsr_expand(const tsr_dtensor *x, int ndim, const int64_t *shape,
                              tsr_dtensor **out);
TSR_API tsr_status tsr_expand_into(const tsr_dtensor *x, int ndim, const int64_t *shape,
                                   tsr_dtensor *out);
TSR_API tsr_status tsr_expand_backward(const tsr_dtensor *x, int ndim, const int64_t *shape,
                                       const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Without the `count` dims in `dims`, all of size 1; without all dims of size 1 if count is 0.
 * They must not be cut. */
TSR_API tsr_status tsr_squeeze(const tsr_dtensor *x, int count, const int64_t *dims,
                               tsr_dtensor **out);
TSR_API tsr_status tsr_squeeze_into(const tsr_dtensor *x, int count, const int64_t *dims,
                                    tsr_dtensor *out);
TSR_API tsr_status tsr_squeeze_backward(const tsr_dtensor *x, int count, const int64_t *dims,
                                        const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** With a new dim of size 1, which is dim `dim` of the result. */
TSR_API tsr_status tsr_unsqueeze(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_unsqueeze_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_unsqueeze_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                          tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * Elements start, start + step, .. below `end` of dim `dim`; step is 1 or more, and an `end` of
 * INT64_MAX is that of the dim. Where mesh dims cut the dim, each rank keeps the elements that it
 * has, in the plainest placement that says so: a slice of S(0) is often S(0;sizes=..). The gradient
 * is 0 outside of the slice, and has the layout of x.
 */
TSR_API tsr_status tsr_slice(const tsr_dtensor *x, int dim, int64_t start, int64_t end,
                             int64_t step, tsr_dtensor **out);
TSR_API tsr_status tsr_slice_into(const tsr_dtensor *x, int dim, int64_t start, int64_t end,
                                  int64_t step, tsr_dtensor *out);
TSR_API tsr_status tsr_slice_backward(const tsr_dtensor *x, int dim, int64_t start, int64_t end,
                                      int64_t step, const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** tsr_slice() of the elements from `start` to below start + length. */
TSR_API tsr_status tsr_narrow(const tsr_dtensor *x, int dim, int64_t start, int64_t length,
                              tsr_dtensor **out);
TSR_API tsr_status tsr_narrow_into(const tsr_dtensor *x, int dim, int64_t start, int64_t length,
                                   tsr_dtensor *out);
TSR_API tsr_status tsr_narrow_backward(const tsr_dtensor *x, int dim, int64_t start, int64_t length,
                                       const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * `count` parts of x along a dim, one behind the other, of the sizes in `sizes`, which sum to that
 * of the dim: tsr_narrow() of each. `out` has room for count dtensors, which the caller owns. In
 * the backward dout[i] is the gradient of part i in its gradient layout, or NULL for 0; the caller
 * owns `*dx`, which is new memory in the gradient layout of x. The backward does not communicate:
 * a part that no placement can say is refused under every policy.
 */
TSR_API tsr_status tsr_split(const tsr_dtensor *x, int dim, int count, const int64_t *sizes,
                             tsr_dtensor **out);
TSR_API tsr_status tsr_split_backward(const tsr_dtensor *x, int dim, int count,
                                      const int64_t *sizes, const tsr_dtensor *const *dout,
                                      tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * `count` tensors (1 to 8) of one dtype, one behind the other along `dim`; other dims are equal.
 * Where one is cut along `dim`, all are, by the same mesh dims, and each rank puts its parts behind
 * each other: S(0) of 4 rows and S(0) of 2 give S(0;blocks=4,2), a fused weight. All are Partial or
 * none. `dx` has room for count gradients, which the caller owns.
 */
TSR_API tsr_status tsr_concat(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_concat_into(int count, const tsr_dtensor *const *x, int dim,
                                   tsr_dtensor *out);
TSR_API tsr_status tsr_concat_backward(int count, const tsr_dtensor *const *x, int dim,
                                       const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** tsr_concat() of tensors of one shape along a new dim, which is dim `dim` of the result and is
 * not cut: tsr_unsqueeze() of each before. */
TSR_API tsr_status tsr_stack(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_stack_into(int count, const tsr_dtensor *const *x, int dim,
                                  tsr_dtensor *out);
TSR_API tsr_status tsr_stack_backward(int count, const tsr_dtensor *const *x, int dim,
                                      const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/**
 * x with `before` elements of `value` before it along a dim, and `after` behind it. Integers and
 * bool need a value that they can hold. Where the dim is cut, the ranks keep their elements, and
 * the new ones go to the ranks that the plainest placement says, often the first and the last. A
 * Partial sum needs a value of 0.
 */
TSR_API tsr_status tsr_pad(const tsr_dtensor *x, int dim, int64_t before, int64_t after,
                           double value, tsr_dtensor **out);
TSR_API tsr_status tsr_pad_into(const tsr_dtensor *x, int dim, int64_t before, int64_t after,
                                double value, tsr_dtensor *out);
TSR_API tsr_status tsr_pad_backward(const tsr_dtensor *x, int dim, int64_t before, int64_t after,
                                    double value, const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** The elements in descending order along the `count` dims in `dims`, all dims if count is 0. These
 * dims must be whole: a rank's elements would be another rank's. */
TSR_API tsr_status tsr_flip(const tsr_dtensor *x, int count, const int64_t *dims,
                            tsr_dtensor **out);
TSR_API tsr_status tsr_flip_into(const tsr_dtensor *x, int count, const int64_t *dims,
                                 tsr_dtensor *out);
TSR_API tsr_status tsr_flip_backward(const tsr_dtensor *x, int count, const int64_t *dims,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Each element `shift` places further along a dim, which may be negative; those that leave it come
 * in at the other end. The dim must be whole. */
TSR_API tsr_status tsr_roll(const tsr_dtensor *x, int dim, int64_t shift, tsr_dtensor **out);
TSR_API tsr_status tsr_roll_into(const tsr_dtensor *x, int dim, int64_t shift, tsr_dtensor *out);
TSR_API tsr_status tsr_roll_backward(const tsr_dtensor *x, int dim, int64_t shift,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** The lower triangle of matrices, the last two dims: 0 where column > row + diagonal. Any dim may
 * be cut, because each rank knows the places of its elements. */
TSR_API tsr_status tsr_tril(const tsr_dtensor *x, int64_t diagonal, tsr_dtensor **out);
TSR_API tsr_status tsr_tril_into(const tsr_dtensor *x, int64_t diagonal, tsr_dtensor *out);
TSR_API tsr_status tsr_tril_backward(const tsr_dtensor *x, int64_t diagonal,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** The upper triangle: 0 where column < row + diagonal. */
TSR_API tsr_status tsr_triu(const tsr_dtensor *x, int64_t diagonal, tsr_dtensor **out);
TSR_API tsr_status tsr_triu_into(const tsr_dtensor *x, int64_t diagonal, tsr_dtensor *out);
TSR_API tsr_status tsr_triu_backward(const tsr_dtensor *x, int64_t diagonal,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
