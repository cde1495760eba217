/** Calls of cuBLASLt, and what becomes of their errors. */
#ifndef TSR_DEVICE_CUDA_BLAS_H
#define TSR_DEVICE_CUDA_BLAS_H

#include <cublasLt.h>
#include <tessera/status.h>

/** As tsr_cuda_status() does for the runtime. */
tsr_status tsr_cuda_blas_status(cublasStatus_t status, const char *call, const char *doing);

/** Returns from the enclosing function unless `call`, a call of cuBLASLt, succeeds. */
#define TSR_BLAS_TRY(call, doing) TSR_TRY(tsr_cuda_blas_status(call, #call, doing))

#endif
