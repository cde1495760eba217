/** Products of rows in groups, each with a matrix of its own. */
#ifndef TSR_OPS_KERNELS_PRODUCTS_GROUPED_H
#define TSR_OPS_KERNELS_PRODUCTS_GROUPED_H

#include "ops/kernels/call.h"
#include "ops/kernels/products/contract.h"

/** What is computed: out = x w, dx = dout w^T, or dw = x^T dout. */
typedef enum tsr_grouped_kind { TSR_GROUPED_OUT, TSR_GROUPED_DX, TSR_GROUPED_DW } tsr_grouped_kind;

/**
 * Computes a product of a call whose inputs are x or dout, then w or, for dw, dout, then sizes: the
 * number of rows of each group in the whole tensor, one group after the other. Each rank multiplies
 * its own rows of each group. Rows behind the last group are zeros in the result. If the site
 * measures, sizes are not read. TSR_ERROR_ARGUMENT: a size is negative, or all are more than there
 * are rows.
 */
tsr_status tsr_grouped_multiply(const tsr_kernel_call *call, tsr_grouped_kind kind, const tsr_matmul_site *site,
                                tsr_arena *arena, const tsr_tensor *out);

#endif
