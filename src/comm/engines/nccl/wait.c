/* Waits for NCCL to enqueue and for streams to be done, with a timeout; each poll also looks for
 * asynchronous errors. */
#include "comm/engines/nccl/wait.h"

#include "comm/core/clock.h"

#include <stdint.h>

/* The result of one poll: what NCCL says of the communicator, and CUDA of the stream. */
typedef struct glance {
    ncclResult_t asked, state;
    cudaError_t stream;
} glance;

static tsr_status look_at(tsr_nccl_handle *handle, bool at_stream, cudaStream_t stream, glance *seen)
{
    const tsr_nccl_api *api = handle->family->api;
    int previous;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    *seen = (glance){ncclSuccess, ncclSuccess, cudaSuccess};
    seen->asked = api->comm_get_async_error(handle->comm, &seen->state);
    /* Before NCCL is ready the awaited work may not be in the stream yet. */
    if (at_stream && seen->state == ncclSuccess)
        seen->stream = api->cuda_stream_query(stream);
    tsr_nccl_close(handle, previous);
    return TSR_OK;
}

/* Errors that NCCL reports after the call come from peers or the network, unless CUDA has failed
 * here. */
static tsr_status check_state(const tsr_nccl_handle *handle, const glance *seen)
{
    const tsr_nccl_api *api = handle->family->api;
    TSR_TRY(tsr_nccl_check(api, seen->asked, "ncclCommGetAsyncError"));
    const tsr_status status = tsr_nccl_check(api, seen->state, "NCCL");
    return status == TSR_ERROR_DEVICE && seen->state != ncclUnhandledCudaError ? TSR_ERROR_PEER : status;
}

static tsr_status say_late(const tsr_nccl_handle *handle, int64_t timeout_ms)
{
    return tsr_status_set(
        TSR_ERROR_PEER,
        "rank %d of %d has waited %lld ms for its peers: one of them did not come, is lost, or calls something "
        "else (NCCL does not tell which)",
        handle->rank, handle->ranks, (long long)timeout_ms);
}

static bool is_pending(const glance *seen)
{
    return seen->state == ncclInProgress || seen->stream == cudaErrorNotReady;
}

static tsr_status await_work(tsr_nccl_handle *handle, bool at_stream, cudaStream_t stream, int64_t timeout_ms)
{
    const tsr_deadline deadline = tsr_deadline_in(timeout_ms);
    tsr_lateness late = tsr_lateness_begin();
    for (int look = 0;; look++) {
        glance seen;
        TSR_TRY(look_at(handle, at_stream, stream, &seen));
        TSR_TRY(check_state(handle, &seen));
        if (seen.stream != cudaErrorNotReady)
            TSR_TRY(tsr_nccl_check_cuda(handle->family->api, seen.stream, "cudaStreamQuery"));
        if (!is_pending(&seen))
            return TSR_OK;
        if (tsr_deadline_passed(deadline))
            return say_late(handle, timeout_ms);
        if (tsr_lateness_is_due(&late))
            tsr_lateness_tell(&late, &handle->late,
                              at_stream ? "its stream or its peers (NCCL does not tell which)" : "its peers");
        tsr_pause(look);
    }
}

tsr_status tsr_nccl_settle(tsr_nccl_handle *handle)
{
    const tsr_status status = await_work(handle, false, NULL, handle->family->timeout_ms);
    return status == TSR_OK ? TSR_OK : tsr_nccl_break(handle, status);
}

tsr_status tsr_nccl_drain(tsr_nccl_handle *handle, cudaStream_t stream, int64_t timeout_ms)
{
    const tsr_status status = await_work(handle, true, stream, timeout_ms);
    return status == TSR_OK ? TSR_OK : tsr_nccl_break(handle, status);
}
