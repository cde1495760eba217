/** Products with few rows on the host, as in decoding: weights of any dtype are read from memory
 * once, at memory's speed. */
#ifndef TSR_OPS_ROWS_H
#define TSR_OPS_ROWS_H

#include "ops/rows_kernels.h"

#include <tessera/sys/device.h>

#include <stdbool.h>

/** The most rows of c that tsr_rows_run() takes. */
#define TSR_ROWS_MOST 7

/** The kernels named `name` ("portable", "avx2" or "avx512"), which this processor must run; the
 * portable ones if the build lacks them. */
const tsr_rows_kernels *tsr_rows_kernels_for(const char *name);

/** True if tsr_rows_run() takes the product: it has 1 to TSR_ROWS_MOST rows, and its dtypes are
 * f32, f16 and bf16 in any mixture. */
bool tsr_rows_takes(const tsr_gemm *gemm);

/** Bytes of workspace, aligned to 64, that tsr_rows_run() needs to pack a as rows of f32; 0 if a
 * needs no packing. */
size_t tsr_rows_workspace(const tsr_gemm *gemm);

/** Computes the product, with sums in the order that rows_kernels.h says, then alpha, beta and bias
 * in f32, rounded once. A row's result has the same bits with any other rows, any strides and any
 * kernels. `gemm` has the workspace. */
tsr_status tsr_rows_run(const tsr_rows_kernels *kernels, const tsr_gemm *gemm);

#endif
