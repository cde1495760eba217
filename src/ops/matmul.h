/** Products of strided matrices on a device, and tensors with batch dims as lists of matrices. */
#ifndef TSR_OPS_MATMUL_H
#define TSR_OPS_MATMUL_H

#include "ops/gemm.h"

#include <stdbool.h>

/** A matrix; strides in elements, of any sign. */
typedef struct tsr_matrix {
    void *data;
    int64_t rows, cols, row_stride, col_stride;
    tsr_dtype dtype;
} tsr_matrix;

/** Bytes that products need: `packing` to pack operands in, `gemm` as workspace of the device's
 * gemm. */
typedef struct tsr_matmul_needs {
    size_t packing, gemm;
} tsr_matmul_needs;

/**
 * Where a product is computed. `packing` may be NULL if a gemm can take all operands unpacked;
 * `workspace` is the gemm's, of any size. With `needs` the site measures: calls compute nothing and
 * read no data, but raise the needs to what they would need, and with `any_strides` to what they
 * would need with any other strides of the operands.
 */
typedef struct tsr_matmul_site {
    tsr_device device;
    tsr_stream stream;
    const tsr_choice *choice; /**< computes the host's products; NULL on other devices, and with `needs` */
    void *packing, *workspace;
    size_t workspace_bytes;
    tsr_matmul_needs *needs;
    bool any_strides;
} tsr_matmul_site;

/** The same data seen as the transposed matrix. */
tsr_matrix tsr_matrix_transpose(tsr_matrix m);

/** c = a b, or with `accumulate` c += a b: a is (m, k), b is (k, n), c is (m, n). c does not
 * overlap a or b. An operand whose strides a gemm cannot take is packed, tile by tile. */
tsr_status tsr_matrix_multiply(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate);

/** Raises the needs of a host site that measures to the most of tsr_matrix_multiply() of these
 * matrices, and of those with fewer rows or columns. */
tsr_status tsr_matrix_measure(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate);

/** A copy of `site` whose packing begins `front` bytes later; if `site` measures, the copy raises
 * `needs`, which comes as all 0. */
tsr_matmul_site tsr_matmul_site_behind(const tsr_matmul_site *site, size_t front, tsr_matmul_needs *needs);

/** If `site` measures, raises its needs to `needs`, which a site of tsr_matmul_site_behind()
 * measured, and `front` bytes of packing. */
void tsr_matmul_site_raise(const tsr_matmul_site *site, size_t front, const tsr_matmul_needs *needs);

/** c = a b + `bias`, which is (1, n) and added to every row: by the gemm itself if the strides
 * allow it. */
tsr_status tsr_matrix_multiply_biased(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix bias,
                                      tsr_matrix c);

/** Copies a matrix to another of the same shape and dtype. `from` may have row stride 0: one row is
 * then repeated. */
tsr_status tsr_matrix_copy(const tsr_matmul_site *site, tsr_matrix from, tsr_matrix to);

/** Sets every element to `value`, 0 or 1. TSR_ERROR_UNSUPPORTED: the value is 1, and the dtype is
 * not f64, f32, f16 or bf16. */
tsr_status tsr_matrix_fill(const tsr_matmul_site *site, tsr_matrix to, int value);

/** Two tensors (.., p) and (.., q) with equal leading dims, as a list of pairs of matrices (rows,
 * p) and (rows, q). */
typedef struct tsr_row_blocks {
    int64_t count; /**< how many pairs; 0 if there are no rows */
    tsr_matrix first, second;
    int outer_ndim;
    int64_t outer_shape[TSR_MAX_DIMS], first_strides[TSR_MAX_DIMS], second_strides[TSR_MAX_DIMS];
} tsr_row_blocks;

/** Makes the list. As many leading dims as the strides of both tensors allow are merged into the
 * rows: all if both are contiguous. */
tsr_row_blocks tsr_row_blocks_of(const tsr_tensor *first, const tsr_tensor *second);

/** How many pairs a product goes through: at most one if `site` measures, because all pairs have
 * the same shape. */
static inline int64_t tsr_row_blocks_visited(const tsr_row_blocks *blocks, const tsr_matmul_site *site)
{
    return site->needs && blocks->count > 1 ? 1 : blocks->count;
}

/** Pair `index` of `blocks`. */
void tsr_row_blocks_get(const tsr_row_blocks *blocks, int64_t index, tsr_matrix *first, tsr_matrix *second);

/** A tensor of two dims as a matrix; a tensor of one dim as a matrix of one row. */
tsr_matrix tsr_matrix_of(const tsr_tensor *tensor);

#endif
