/** Products: entries of the operation table; `self` is a tsr_cuda. */
#ifndef TSR_DEVICE_CUDA_PRODUCT_H
#define TSR_DEVICE_CUDA_PRODUCT_H

#include <tessera/sys/device.h>

tsr_status tsr_cuda_gemm(void *self, int index, const tsr_gemm *gemm, tsr_stream stream);
tsr_status tsr_cuda_gemm_workspace(void *self, int index, const tsr_gemm *gemm, size_t *bytes);

#endif
