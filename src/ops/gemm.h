/** One matrix product on a device: by the device's table, or on the host by kernels for few rows
 * (rows.h) or by a provider. */
#ifndef TSR_OPS_GEMM_H
#define TSR_OPS_GEMM_H

#include "ops/blas/choice.h"

#include <tessera/sys/device.h>

/** Computes or enqueues a product; with a bias, `beta` is 0. On the host it is computed by
 * `choice`, which the caller holds, and the workspace has the bytes that tsr_gemm_workspace()
 * returns. TSR_ERROR_UNSUPPORTED: the device has no gemm for these dtypes, or on the host a size
 * does not fit BLAS' 32-bit integers. */
tsr_status tsr_gemm_run(tsr_device device, const tsr_choice *choice, const tsr_gemm *gemm, tsr_stream stream);

/** How many bytes of workspace the device's gemm wants for this product, whose data is not read; 0
 * if the device's table does not tell. */
tsr_status tsr_gemm_workspace(tsr_device device, const tsr_gemm *gemm, size_t *bytes);

/** Checks, before anything is computed, that a device multiplies the dtypes of `dtypes`, a product
 * with sizes 0. `caller` begins the sentence. TSR_ERROR_UNSUPPORTED as tsr_gemm_run();
 * TSR_ERROR_ARGUMENT: the host with an index other than 0. */
tsr_status tsr_gemm_supported(const char *caller, tsr_device device, const tsr_gemm *dtypes);

#endif
