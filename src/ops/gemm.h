/** One matrix product on a device: through the device's table, on the host by kernels for few rows (rows.h) and by a provider. */
#ifndef TSR_OPS_GEMM_H
#define TSR_OPS_GEMM_H

#include "ops/blas/choice.h"
#include <tessera/sys/device.h>

/** `beta` is 0 where there is a bias. TSR_ERROR_UNSUPPORTED: the device has no gemm, or not for these dtypes; or on the host a size that
 * BLAS' 32-bit integers do not hold. On the host the product is made by the `choice`, which the caller holds, and the workspace has what
 * tsr_gemm_workspace() says. */
tsr_status tsr_gemm_run(tsr_device device, const tsr_choice *choice, const tsr_gemm *gemm, tsr_stream stream);

/** How many bytes of workspace the device's gemm wants for such a product, whose data is not looked at: 0 where the table does not say. */
tsr_status tsr_gemm_workspace(tsr_device device, const tsr_gemm *gemm, size_t *bytes);

/** What tsr_gemm_run() would say of the device and of the dtypes of a product of nothing, before there is anything to compute.
 * TSR_ERROR_ARGUMENT: a host with an index other than 0. */
tsr_status tsr_gemm_supported(const char *caller, tsr_device device, const tsr_gemm *dtypes);

#endif
