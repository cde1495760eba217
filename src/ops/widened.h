/** Products of many rows on the host whose operands or result are narrower than f32: operands are widened by panels, exactly, and an f32
 * product multiplies them, whose sums are rounded once. */
#ifndef TSR_OPS_WIDENED_H
#define TSR_OPS_WIDENED_H

#include <stdbool.h>
#include <tessera/sys/device.h>

/** An f32 product without a bias, by what `self` is. */
typedef tsr_status tsr_f32_product(const void *self, const tsr_gemm *gemm);

/** True if the dtypes are f32, f16 and bf16, not all f32. */
bool tsr_widened_takes(const tsr_gemm *gemm);

/** Bytes of workspace, aligned to 64, that tsr_widened_run() wants: panels, whose size depends on the shape and dtypes alone. */
size_t tsr_widened_workspace(const tsr_gemm *gemm);

/** The product by `multiply` of `self`, in panels of whole rows and columns: k is not divided. `gemm` has a workspace. */
tsr_status tsr_widened_run(tsr_f32_product *multiply, const void *self, const tsr_gemm *gemm);

#endif
