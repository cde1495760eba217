#include "device/cuda/runtime.h"

#include <string.h>

/* Errors after which, by the runtime's reference, the process must be terminated and relaunched to
 * use CUDA again. */
static const cudaError_t sticky[] = {
    cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,     cudaErrorAssert,           cudaErrorHardwareStackError,
    cudaErrorIllegalInstruction,  cudaErrorMisalignedAddress, cudaErrorInvalidPc,        cudaErrorInvalidAddressSpace,
    cudaErrorLaunchFailure,       cudaErrorECCUncorrectable,  cudaErrorTensorMemoryLeak, cudaErrorNvlinkUncorrectable,
    cudaErrorMpsClientTerminated, cudaErrorExternalDevice,    cudaErrorContained,        cudaErrorCudartUnloading,
};

/* Errors that say what the machine lacks, not what went wrong on it. */
static const cudaError_t unavailable[] = {
    cudaErrorInsufficientDriver,    cudaErrorNoDevice,
    cudaErrorStubLibrary,           cudaErrorSystemNotReady,
    cudaErrorSystemDriverMismatch,  cudaErrorDevicesUnavailable,
    cudaErrorInitializationError,   cudaErrorNoKernelImageForDevice,
    cudaErrorUnsupportedPtxVersion, cudaErrorCompatNotSupportedOnDevice,
    cudaErrorOperatingSystem,       cudaErrorInvalidDevice,
};

#define LENGTH(list) (sizeof list / sizeof list[0])

static int contains(const cudaError_t *list, size_t count, cudaError_t error)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == error)
            return 1;
    return 0;
}

int tsr_cuda_is_sticky(cudaError_t error)
{
    return contains(sticky, LENGTH(sticky), error);
}

static tsr_status status_of(cudaError_t error)
{
    if (error == cudaErrorMemoryAllocation)
        return TSR_ERROR_MEMORY;
    return contains(unavailable, LENGTH(unavailable), error) ? TSR_ERROR_UNAVAILABLE : TSR_ERROR_DEVICE;
}

tsr_status tsr_cuda_status(cudaError_t error, const char *call, const char *doing)
{
    if (error == cudaSuccess)
        return TSR_OK;
    (void)cudaGetLastError();
    const char *const lost =
        tsr_cuda_is_sticky(error)
            ? "; the CUDA context is lost, and nothing works on its devices until the process is started again"
            : "";
    return tsr_status_set(status_of(error), "cuda device: %.*s, %s, failed: %s (%s)%s", (int)strcspn(call, "("), call,
                          doing, cudaGetErrorName(error), cudaGetErrorString(error), lost);
}
