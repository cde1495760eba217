/** Products with many rows on the host whose operands or result are narrower than f32: operands are
 * widened exactly to panels of f32, an f32 product multiplies these, and its sums are rounded
 * once. */
#ifndef TSR_OPS_WIDENED_H
#define TSR_OPS_WIDENED_H

#include <tessera/sys/device.h>

#include <stdbool.h>

/** Computes an f32 product without a bias; `self` is what tsr_widened_run() was given. */
typedef tsr_status tsr_f32_product(const void *self, const tsr_gemm *gemm);

/** True if a, b and c are of f32, f16 or bf16, and at least one of a, b, c and bias is not f32. */
bool tsr_widened_takes(const tsr_gemm *gemm);

/** Bytes of workspace, aligned to 64, that tsr_widened_run() needs for panels; depends on shape and
 * dtypes alone. */
size_t tsr_widened_workspace(const tsr_gemm *gemm);

/** The most that tsr_widened_workspace() gives for this product, and for those whose sizes are
 * smaller. */
size_t tsr_widened_most_workspace(const tsr_gemm *gemm);

/** Computes the product by calls of `multiply`, in parts of whole rows of a and columns of b: k is
 * not divided. `gemm` has the workspace. */
tsr_status tsr_widened_run(tsr_f32_product *multiply, const void *self, const tsr_gemm *gemm);

#endif
