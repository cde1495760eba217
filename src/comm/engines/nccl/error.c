#include "comm/engines/nccl/error.h"

#include <string.h>

static tsr_status status_of(ncclResult_t result)
{
    switch (result) {
    case ncclInvalidArgument:
    case ncclInvalidUsage:
        return TSR_ERROR_ARGUMENT;
    case ncclRemoteError:
        return TSR_ERROR_PEER;
    default:
        return TSR_ERROR_DEVICE;
    }
}

tsr_status tsr_nccl_check(const tsr_nccl_api *api, ncclResult_t result, const char *call)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return TSR_OK;
    const char *words = api->get_error_string(result), *last = api->get_last_error(NULL);
    if (result == ncclInvalidUsage && last && strstr(last, "Duplicate GPU"))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: %s (%s): NCCL takes one rank a GPU; ranks that share a GPU are threads of one "
                              "process, with the direct "
                              "engine of tsr_comm_create_threads()",
                              call, words, last);
    return tsr_status_set(status_of(result), last && last[0] ? "%s: %s (%s)" : "%s: %s", call, words, last);
}

tsr_status tsr_nccl_check_cuda(const tsr_nccl_api *api, cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return TSR_OK;
    api->cuda_get_last_error();
    return tsr_status_set(error == cudaErrorMemoryAllocation ? TSR_ERROR_MEMORY : TSR_ERROR_DEVICE, "%s: %s (%s)", call,
                          api->cuda_get_error_name(error), api->cuda_get_error_string(error));
}
