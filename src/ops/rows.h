/** Products of few rows on the host, such as decoding's: weights come from memory once, at its speed, whatever their dtype. */
#ifndef TSR_OPS_ROWS_H
#define TSR_OPS_ROWS_H

#include "ops/rows_kernels.h"
#include <stdbool.h>
#include <tessera/sys/device.h>

/** Rows of c up to which a product is taken. */
#define TSR_ROWS_MOST 7

/** The kernels of that name ("portable", "avx2", "avx512"), which this processor runs; the portable ones where the build has no others. */
const tsr_rows_kernels *tsr_rows_kernels_for(const char *name);

/** True if the shape is one for tsr_rows_run(), and the dtypes are f32, f16 and bf16, in any mixture. */
bool tsr_rows_takes(const tsr_gemm *gemm);

/** Bytes of workspace, aligned to 64, that tsr_rows_run() wants: x in rows of f32, where it is not. */
size_t tsr_rows_workspace(const tsr_gemm *gemm);

/** The product, in the order of sums that rows_kernels.h says, then alpha, beta and bias in f32, rounded once. The result of a row has the
 * same bits beside any other rows, with any strides, and on any processor. `gemm` has a workspace. */
tsr_status tsr_rows_run(const tsr_rows_kernels *kernels, const tsr_gemm *gemm);

#endif
