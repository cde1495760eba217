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

#ifdef __cplusplus
}
#endif

#endif
