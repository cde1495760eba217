/** How kernels of ops are told of dtypes. */
#ifndef TSR_DEVICE_CUDA_OPS_STORAGE_H
#define TSR_DEVICE_CUDA_OPS_STORAGE_H

#include "device/cuda/ops/work.h"

#include <tessera/dtype.h>

/** The tsr_cuda_storage of a dtype; -1: ops do not compute in it. */
static inline int tsr_cuda_storage_of(tsr_dtype dtype)
{
    static const signed char storages[TSR_DTYPE_END] = {
        [TSR_F64] = 1 + TSR_CUDA_AS_F64,   [TSR_F32] = 1 + TSR_CUDA_AS_F32, [TSR_F16] = 1 + TSR_CUDA_AS_F16,
        [TSR_BF16] = 1 + TSR_CUDA_AS_BF16, [TSR_I64] = 1 + TSR_CUDA_AS_I64, [TSR_I32] = 1 + TSR_CUDA_AS_I32,
        [TSR_BOOL] = 1 + TSR_CUDA_AS_BOOL};
    return storages[dtype] - 1;
}

#endif
