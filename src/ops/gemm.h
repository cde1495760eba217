/** One matrix product on a device: through the device's table, on the host by OpenBLAS. */
#ifndef TSR_OPS_GEMM_H
#define TSR_OPS_GEMM_H

#include <tessera/sys/device.h>

/** TSR_ERROR_UNSUPPORTED: the device has no gemm, or not for this dtype; or on the host a size that OpenBLAS' 32-bit integers do not hold.
 * On the host the caller holds the guard (blas_guard.h). */
tsr_status tsr_gemm_run(tsr_device device, const tsr_gemm *gemm, tsr_stream stream);

/** What tsr_gemm_run() would say of the device and dtype, before there is anything to compute. */
tsr_status tsr_gemm_supported(const char *caller, tsr_device device, tsr_dtype dtype);

#endif
