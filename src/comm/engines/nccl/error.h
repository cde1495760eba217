/** Failures of NCCL and CUDA calls in words. */
#ifndef TSR_COMM_ENGINES_NCCL_ERROR_H
#define TSR_COMM_ENGINES_NCCL_ERROR_H

#include "comm/engines/nccl/api.h"
#include <tessera/sys/status.h>

/** "ncclSend: unhandled cuda error (Cuda failure ..)", with the status that says whose fault `result` is; ncclSuccess and ncclInProgress
 * are none. */
tsr_status tsr_nccl_check(const tsr_nccl_api *api, ncclResult_t result, const char *call);

/** "cudaMallocHost: cudaErrorMemoryAllocation (out of memory)". The thread's last CUDA error is cleared. */
tsr_status tsr_nccl_check_cuda(const tsr_nccl_api *api, cudaError_t error, const char *call);

#endif
