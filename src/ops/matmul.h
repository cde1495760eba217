/** Products of strided matrices on a device, and the matrices that a tensor with batch dims is made of. */
#ifndef TSR_OPS_MATMUL_H
#define TSR_OPS_MATMUL_H

#include "ops/gemm.h"
#include <stdbool.h>

/** Strides in elements, any sign. */
typedef struct tsr_matrix {
    void *data;
    int64_t rows, cols, row_stride, col_stride;
    tsr_dtype dtype;
} tsr_matrix;

/** What products want: bytes to pack operands in, and of workspace for the device's gemm. */
typedef struct tsr_matmul_needs {
    size_t packing, gemm;
} tsr_matmul_needs;

/**
 * Where a product is computed. `packing` may be NULL where every product is direct; `workspace` is the gemm's, of any size. With `needs`,
 * nothing is computed: the needs are raised to what the same calls would want, whose data is not looked at; `any_strides`: also to what
 * they would want if the operands' strides were others.
 */
typedef struct tsr_matmul_site {
    tsr_device device;
    tsr_stream stream;
    const tsr_choice *choice; /**< by which the host multiplies; NULL on other devices, and with needs */
    void *packing, *workspace;
    size_t workspace_bytes;
    tsr_matmul_needs *needs;
    bool any_strides;
} tsr_matmul_site;

tsr_matrix tsr_matrix_transpose(tsr_matrix m);

/** c = a b, or c += a b: a is (m, k), b is (k, n), c is (m, n). c does not overlap a or b. Where the strides are such that a gemm can't
 * take an operand, it is packed, tile by tile. */
tsr_status tsr_matmul(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate);

/** A site whose packing lies behind `front` bytes of that of `site`, or, for a measurement, which raises `needs`, all 0. */
tsr_matmul_site tsr_matmul_site_behind(const tsr_matmul_site *site, size_t front, tsr_matmul_needs *needs);

/** Adds what a site behind `front` bytes has measured, if `site` measures. */
void tsr_matmul_site_raise(const tsr_matmul_site *site, size_t front, const tsr_matmul_needs *needs);

/** c = a b, and `bias`, which is (1, n), added to every row: by the gemm itself where the strides allow it. */
tsr_status tsr_matmul_biased(const tsr_matmul_site *site, tsr_matrix a, tsr_matrix b, tsr_matrix bias, tsr_matrix c);

/** Copies; both are of one dtype. `from` may have stride 0: its row is then repeated. */
tsr_status tsr_matrix_copy(const tsr_matmul_site *site, tsr_matrix from, tsr_matrix to);

/** Sets every element to 0 or 1. TSR_ERROR_UNSUPPORTED: to 1, where the dtype is none of f64, f32, f16 and bf16. */
tsr_status tsr_matrix_fill(const tsr_matmul_site *site, tsr_matrix to, int value);

/** Two tensors (.., p) and (.., q) with equal leading dims, as a list of pairs of matrices (rows, p) and (rows, q). */
typedef struct tsr_row_blocks {
    int64_t count; /**< of pairs; 0 if there are no rows */
    tsr_matrix first, second;
    int outer_ndim;
    int64_t outer_shape[TSR_MAX_DIMS], first_strides[TSR_MAX_DIMS], second_strides[TSR_MAX_DIMS];
} tsr_row_blocks;

/** Merges as many leading dims into the rows as the strides of both tensors allow: all of them where both are contiguous. */
tsr_row_blocks tsr_row_blocks_of(const tsr_tensor *first, const tsr_tensor *second);

/** How many of them a product goes through: one for a measurement, as all have one shape. */
static inline int64_t tsr_row_blocks_visited(const tsr_row_blocks *blocks, const tsr_matmul_site *site)
{
    return site->needs && blocks->count > 1 ? 1 : blocks->count;
}

/** Pair `index` of `blocks`. */
void tsr_row_blocks_get(const tsr_row_blocks *blocks, int64_t index, tsr_matrix *first, tsr_matrix *second);

/** A tensor of two dims as a matrix; one of one dim as a single row. */
tsr_matrix tsr_matrix_of(const tsr_tensor *tensor);

#endif
