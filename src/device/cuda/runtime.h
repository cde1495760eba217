/** Errors of the CUDA runtime as statuses. */
#ifndef TSR_DEVICE_CUDA_RUNTIME_H
#define TSR_DEVICE_CUDA_RUNTIME_H

#include <tessera/sys/status.h>

#include <cuda_runtime_api.h>

/**
 * TSR_OK for cudaSuccess; else the error's status, with a sentence that names the call, the error
 * and what the library was doing (`doing`: "copying 12 bytes"), and says if the CUDA context is
 * lost. Clears the runtime's last error of the thread.
 */
tsr_status tsr_cuda_status(cudaError_t error, const char *call, const char *doing);

/** Returns from the enclosing function unless `call`, a call of the runtime, succeeds. */
#define TSR_CUDA_TRY(call, doing) TSR_TRY(tsr_cuda_status(call, #call, doing))

/** 1 if no later call of this process can succeed on the device: the context is lost. */
int tsr_cuda_is_sticky(cudaError_t error);

#endif
