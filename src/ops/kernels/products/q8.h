/** Products with weights of 8 bits, w (o, k), and a scale for each 32 of them along k, (o, k / 32).
 */
#ifndef TSR_OPS_KERNELS_PRODUCTS_Q8_H
#define TSR_OPS_KERNELS_PRODUCTS_Q8_H

#include "ops/kernels/call.h"
#include "ops/kernels/products/contract.h"

/** Computes x w^T + b of a call with the inputs x, w, scales and, if `biased`, b. Up to 7 rows of x
 * read the weights from memory once and have the bits of tsr_linear() with their values in f32;
 * more rows multiply panels of these values. */
tsr_status tsr_q8_multiply(const tsr_kernel_call *call, const tsr_matmul_site *site, tsr_arena *arena, bool biased,
                           const tsr_tensor *out);

/** True if tsr_q8_multiply() makes such a result with few rows of x, for which it needs no BLAS. */
bool tsr_q8_is_few(const tsr_kernel_call *call, const tsr_tensor *out);

/** Computes dx = dout w of a call with the inputs dout, w and scales. */
tsr_status tsr_q8_multiply_back(const tsr_kernel_call *call, const tsr_matmul_site *site, tsr_arena *arena,
                                const tsr_tensor *out);

#endif
