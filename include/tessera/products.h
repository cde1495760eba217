/**
 * @file
 * Products of dtensors: matmul, einsum, and linear layers as an op. What all operations have in
 * common (layouts, dtypes, the three forms of a function) is in tessera/ops.h.
 *
 * @par Dtypes
 * Operands are f64, or any mixture of f32, f16 and bf16; the result has their dtype, or f32 if they
 * differ. Narrow operands are widened exactly, sums are f32, and the result is rounded once; where
 * einsum has three operands or more, each product but the last is f32. A gradient has the dtype of
 * its operand.
 *
 * @par Products
 * No call communicates: each rank multiplies by the first BLAS of its context (sys/blas.h), as
 * tsr_linear() without placements does. Replicas have the same bits where contexts, processors and
 * shapes are the same. Up to 7 rows of f32, f16 and bf16 are multiplied in one order of sums on
 * every processor. Transposed, permuted and batched operands are multiplied where they lie; those
 * whose summed dims cannot be read as one dim of a matrix are first copied. A result may have the
 * memory of an operand; it is then computed beside it.
 *
 * TSR_ERROR_UNSUPPORTED: no BLAS of the context multiplies the dtype, or a size is beyond its
 * integers.
 */
#ifndef TESSERA_PRODUCTS_H
#define TESSERA_PRODUCTS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @{ */
/** a (.., m, k) times b (.., k, n), which is (.., m, n): leading dims are repeated along one
 * another. An operand of one dim is a row on the left and a column on the right, and the result
 * lacks this dim (PyTorch: matmul). Along a mesh dim that cuts k of both the result is
 * Partial(sum). A gradient is summed over the leading dims along which its operand was repeated, as
 * part of the product. */
TSR_API tsr_status tsr_matmul(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor **out);
TSR_API tsr_status tsr_matmul_into(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor *out);
TSR_API tsr_status tsr_matmul_backward(const tsr_dtensor *a, const tsr_dtensor *b,
                                       const tsr_dtensor *dout, tsr_dtensor **da, tsr_dtensor **db);
/** @} */

/** @{ */
/**
 * The sum of products that `equation` says, "bik,bkj->bij", of `count` operands, 1 to 4: dims with
 * one letter are one, and letters that the result lacks are summed over. "..." is any leading dims,
 * repeated along one another. Without "->" the result has "..." and, in alphabetical order, the
 * letters that appear once. At most 12 different letters, each once in a term. Operands are
 * multiplied from left to right. (PyTorch, NumPy, JAX: einsum.) `equation` is borrowed for the
 * call.
 *
 * `wanted` has `count` pointers; NULL: that gradient is not made.
 */
TSR_API tsr_status tsr_einsum(const char *equation, int count, const tsr_dtensor *const *operands,
                              tsr_dtensor **out);
TSR_API tsr_status tsr_einsum_into(const char *equation, int count,
                                   const tsr_dtensor *const *operands, tsr_dtensor *out);
TSR_API tsr_status tsr_einsum_backward(const char *equation, int count,
                                       const tsr_dtensor *const *operands, const tsr_dtensor *dout,
                                       tsr_dtensor **const *wanted);
/** @} */

/** tsr_linear() (tessera/linear.h) without placements, into `y`, which has the rule's own layout:
 * on the host, with the same bits. The op is called linear; by it tsr_op_backward() gives gradients
 * in the layouts of their rules, unreduced. */
TSR_API tsr_status tsr_linear_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b,
                                   tsr_dtensor *y);

/** @{ */
/**
 * Rows of x (t, k) in groups, each times a matrix of its own: `sizes` (e), i64, are the numbers of
 * rows of the groups, one after the other, and w is (e, k, n). The result is (t, n); rows behind
 * the last group are 0. (PyTorch: grouped_mm; JAX: ragged_dot.) t, k and n may be cut; sizes are of
 * the whole x, so that each rank multiplies its own rows of each group. e must be whole, and sizes
 * Replicate.
 *
 * TSR_ERROR_ARGUMENT, on ranks whose sizes are so: a size is negative, or all are more than t.
 */
TSR_API tsr_status tsr_grouped_matmul(const tsr_dtensor *x, const tsr_dtensor *w,
                                      const tsr_dtensor *sizes, tsr_dtensor **out);
TSR_API tsr_status tsr_grouped_matmul_into(const tsr_dtensor *x, const tsr_dtensor *w,
                                           const tsr_dtensor *sizes, tsr_dtensor *out);
TSR_API tsr_status tsr_grouped_matmul_backward(const tsr_dtensor *x, const tsr_dtensor *w,
                                               const tsr_dtensor *sizes, const tsr_dtensor *dout,
                                               tsr_dtensor **dx, tsr_dtensor **dw);
/** @} */

/** @{ */
/**
 * tsr_grouped_matmul() of local tensors of the host, without a mesh: x (t, k) by `sizes` (e), i64,
 * times w (e, k, n), into out (t, n), with any strides. For rows that experts got of
 * tsr_experts_dispatch() (tessera/experts.h). Rows of `out` behind the last group become 0, so give
 * views of the rows that came. The backward writes dx (t, k) and dw (e, k, n), of any float dtype;
 * either may be NULL, and groups without rows get a dw of 0. Results may have the memory of an
 * operand; a gradient must not have that of one which the other gradient reads.
 *
 * Memory and the BLAS are those of `context`; NULL: the default one. Does not communicate; any
 * thread. TSR_ERROR_ARGUMENT: as above; a tensor is NULL, has negative strides or another shape or
 * dtype. TSR_ERROR_UNSUPPORTED: a tensor is on a device.
 */
TSR_API tsr_status tsr_grouped_matmul_local(tsr_context *context, const tsr_tensor *x,
                                            const tsr_tensor *w, const tsr_tensor *sizes,
                                            const tsr_tensor *out);
TSR_API tsr_status tsr_grouped_matmul_local_backward(tsr_context *context, const tsr_tensor *x,
                                                     const tsr_tensor *w, const tsr_tensor *sizes,
                                                     const tsr_tensor *dout, const tsr_tensor *dx,
                                                     const tsr_tensor *dw);
/** @} */

/** Weights along the last dim that have one scale. */
#define TSR_Q8_SCALED 32

/**
 * Weights of 8 bits: the caller owns `*data`, i8 of w's shape and layout, and `*scales`, f32, one
 * for each 32 weights along the last dim, cut as they are. w is of floats on the host. The value of
 * a weight is its integer times the scale: the scale is the largest size of the 32 weights, in f32,
 * divided by 127, and each value differs from the weight by at most half a scale, 0.4% of the
 * largest. Communicates with nobody.
 *
 * TSR_ERROR_ARGUMENT: the last dim, or a rank's part of it, is not a multiple of 32 (under
 * "S(1;unit=32)" every part is one); w is Partial, or has infinities, NaNs or numbers beyond f32
 * (on ranks that hold one).
 */
TSR_API tsr_status tsr_quantize_q8(const tsr_dtensor *w, tsr_dtensor **data, tsr_dtensor **scales);

/** @{ */
/**
 * tsr_linear_into() with weights of tsr_quantize_q8(): x (.., k) times w (o, k) transposed, i8,
 * with scales (o, k / 32), plus b (o), which may be NULL. x and b are f32, f16 or bf16 in any
 * mixture; the result has x's dtype, or f32 if they differ. Weights and scales are cut alike,
 * weights along k on multiples of 32 ("S(1;unit=32)", scales "S(1)"), as x is; the result is then
 * Partial(sum).
 *
 * Up to 7 rows of x read the weights from memory once, as they are, and the result has the bits of
 * tsr_linear() with their values in f32; for more rows values are made in panels. Weights and
 * scales have no gradient.
 */
TSR_API tsr_status tsr_linear_q8(const tsr_dtensor *x, const tsr_dtensor *w,
                                 const tsr_dtensor *scales, const tsr_dtensor *b,
                                 tsr_dtensor **out);
TSR_API tsr_status tsr_linear_q8_into(const tsr_dtensor *x, const tsr_dtensor *w,
                                      const tsr_dtensor *scales, const tsr_dtensor *b,
                                      tsr_dtensor *out);
TSR_API tsr_status tsr_linear_q8_backward(const tsr_dtensor *x, const tsr_dtensor *w,
                                          const tsr_dtensor *scales, const tsr_dtensor *b,
                                          const tsr_dtensor *dout, tsr_dtensor **dx,
                                          tsr_dtensor **db);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
