#include "comm/nccl/staging.h"

#include <string.h>
#include <tessera/sys/device.h>

/* The stream is idle: calls on host memory are done on return, and none is in flight. */
static tsr_status grow(tsr_nccl_handle *handle, size_t bytes)
{
    const tsr_nccl_api *api = handle->family->api;
    void *memory = NULL;
    int previous;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    const tsr_status status = tsr_nccl_check_cuda(api, api->cuda_malloc_host(&memory, bytes), "cudaMallocHost");
    if (status == TSR_OK && handle->staging)
        api->cuda_free_host(handle->staging);
    tsr_nccl_close(handle, previous);
    TSR_TRY(status);
    handle->staging = memory;
    handle->staging_bytes = bytes;
    return TSR_OK;
}

tsr_status tsr_nccl_reserve(tsr_nccl_handle *handle, size_t bytes)
{
    return bytes <= handle->staging_bytes ? TSR_OK : grow(handle, bytes);
}

tsr_status tsr_nccl_place(const tsr_nccl_handle *handle, tsr_device device, bool *staged)
{
    const tsr_nccl_family *family = handle->family;
    *staged = !device.driver;
    if (!device.driver)
        return TSR_OK;
    const char *name = tsr_device_driver_table(device.driver, NULL)->name;
    const bool known = family->driver ? device.driver == family->driver : strcmp(name, "cuda") == 0;
    if (known && device.index == family->device)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "the memory is on %s:%d, but this communicator of NCCL's sends that of %s:%d and of the host", name, device.index,
                          family->driver ? tsr_device_driver_table(family->driver, NULL)->name : "cuda", family->device);
}
