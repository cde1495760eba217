/** Turns failures of NCCL and CUDA calls into sentences. */
#ifndef TSR_COMM_ENGINES_NCCL_ERROR_H
#define TSR_COMM_ENGINES_NCCL_ERROR_H

#include "comm/engines/nccl/api.h"

#include <tessera/sys/status.h>

/** TSR_OK for ncclSuccess and ncclInProgress, else a failure with a sentence such as "ncclSend:
 * unhandled cuda error (Cuda failure ..)", and the status that fits `result`. */
tsr_status tsr_nccl_check(const tsr_nccl_api *api, ncclResult_t result, const char *call);

/** TSR_OK for cudaSuccess, else a failure with a sentence such as "cudaMallocHost:
 * cudaErrorMemoryAllocation (out of memory)"; then the thread's last CUDA error is cleared. */
tsr_status tsr_nccl_check_cuda(const tsr_nccl_api *api, cudaError_t error, const char *call);

#endif
