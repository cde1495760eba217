#include "comm/engines/nccl/handle.h"

#include "comm/engines/nccl/family.h"

#include <tessera/sys/log.h>

static tsr_status check_whole(const tsr_nccl_handle *handle)
{
    if (handle->broken)
        return tsr_status_set(TSR_ERROR_PEER, "an earlier call has broken this communicator: %s", handle->why.text);
    if (atomic_load(&handle->family->aborted))
        return tsr_status_set(TSR_ERROR_PEER, "rank %d of %d has aborted", handle->rank, handle->ranks);
    return TSR_OK;
}

/* Under the lock: keeps the sentence, tells the log, and aborts the communicator. */
static tsr_status break_handle(tsr_nccl_handle *handle, tsr_status status)
{
    tsr_status_keep(&handle->why);
    handle->broken = true;
    tsr_log(handle->family->context, TSR_LOG_ERROR, "rank %d of %d: %s", handle->rank, handle->ranks, handle->why.text);
    tsr_nccl_handle_abort(handle);
    return status;
}

/* If the device cannot be made current this rank cannot take part any more, so the handle
 * breaks. */
tsr_status tsr_nccl_open(tsr_nccl_handle *handle, int *previous_device)
{
    tsr_nccl_lock(handle->family);
    tsr_status status = check_whole(handle);
    if (status == TSR_OK) {
        status = tsr_nccl_switch(handle->family, previous_device);
        status = status == TSR_OK ? TSR_OK : break_handle(handle, status);
    }
    if (status != TSR_OK)
        tsr_nccl_unlock(handle->family);
    return status;
}

void tsr_nccl_close(tsr_nccl_handle *handle, int previous_device)
{
    if (previous_device != handle->family->device)
        handle->family->api->cuda_set_device(previous_device);
    tsr_nccl_unlock(handle->family);
}

tsr_status tsr_nccl_break(tsr_nccl_handle *handle, tsr_status status)
{
    if (handle->broken || atomic_load(&handle->family->aborted))
        return status;
    tsr_nccl_lock(handle->family);
    break_handle(handle, status);
    tsr_nccl_unlock(handle->family);
    return status;
}
