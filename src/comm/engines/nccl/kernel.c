#include "comm/engines/nccl/kernel.h"

#include "comm/engines/nccl/family.h"
#include "comm/engines/nccl/wait.h"

/* Captured kernels are not ordered here: the program that launches the graph orders them. */
static tsr_status is_captured(const tsr_nccl_family *family, cudaStream_t stream, bool *captured)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TSR_TRY(tsr_nccl_check_cuda(family->api, family->api->cuda_stream_is_capturing(stream, &capture),
                                "cudaStreamIsCapturing"));
    *captured = capture != cudaStreamCaptureStatusNone;
    return TSR_OK;
}

/* Makes the stream wait for the last kernel; also if it is the same stream, since that may have
 * been destroyed and its handle value reused. */
static tsr_status follow_last(const tsr_nccl_family *family, cudaStream_t stream)
{
    const tsr_nccl_api *api = family->api;
    bool captured = false;
    if (!family->marked)
        return TSR_OK;
    TSR_TRY(is_captured(family, stream, &captured));
    return captured
               ? TSR_OK
               : tsr_nccl_check_cuda(api, api->cuda_stream_wait_event(stream, family->last, 0), "cudaStreamWaitEvent");
}

static tsr_status mark_last(tsr_nccl_family *family, cudaStream_t stream)
{
    const tsr_nccl_api *api = family->api;
    bool captured = false;
    TSR_TRY(is_captured(family, stream, &captured));
    if (captured)
        return TSR_OK;
    TSR_TRY(tsr_nccl_check_cuda(api, api->cuda_event_record(family->last, stream), "cudaEventRecord"));
    family->marked = true;
    return TSR_OK;
}

static tsr_status mark(tsr_nccl_handle *handle, cudaStream_t stream)
{
    int previous;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    const tsr_status status = mark_last(handle->family, stream);
    tsr_nccl_close(handle, previous);
    return status == TSR_OK ? TSR_OK : tsr_nccl_break(handle, status);
}

tsr_status tsr_nccl_open_kernel(tsr_nccl_handle *handle, cudaStream_t stream, int *previous_device)
{
    tsr_nccl_conclude_now(handle->family);
    TSR_TRY(tsr_nccl_open(handle, previous_device));
    const tsr_status status = follow_last(handle->family, stream);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_nccl_close(handle, *previous_device);
    return tsr_nccl_break(handle, status);
}

tsr_status tsr_nccl_conclude(tsr_nccl_handle *handle, ncclResult_t result, const char *call, cudaStream_t stream)
{
    const tsr_status status = tsr_nccl_check(handle->family->api, result, call);
    if (status != TSR_OK)
        return tsr_nccl_break(handle, status);
    if (result == ncclInProgress)
        TSR_TRY(tsr_nccl_settle(handle));
    return mark(handle, stream);
}

/* The unsettled handle, with a holder more, or NULL. `only` not NULL: that handle alone is wanted.
 * `*number`: family->started. */
static tsr_nccl_handle *hold_unsettled(tsr_nccl_family *family, const tsr_nccl_handle *only, uint64_t *number)
{
    tsr_nccl_lock(family);
    tsr_nccl_handle *handle = !only || family->unsettled == only ? family->unsettled : NULL;
    *number = family->started;
    if (handle)
        handle->holders++;
    tsr_nccl_unlock(family);
    return handle;
}

/* Drops the holder, and clears `unsettled`, unless another thread has settled the handle too and
 * set another one. */
static void let_go(tsr_nccl_handle *handle, uint64_t number)
{
    tsr_nccl_family *family = handle->family;
    tsr_nccl_lock(family);
    handle->holders--;
    if (family->started == number)
        family->unsettled = NULL;
    tsr_nccl_unlock(family);
}

/* Waits until the unsettled handle's kernel is in the stream. Until then the handle stays
 * `unsettled`, so that no other thread goes on before. If it breaks here, its own next call returns
 * the error too. */
static tsr_status conclude_unsettled(tsr_nccl_family *family, const tsr_nccl_handle *only)
{
    uint64_t number;
    tsr_nccl_handle *handle = hold_unsettled(family, only, &number);
    if (!handle)
        return TSR_OK;
    tsr_status status = tsr_nccl_settle(handle);
    if (status == TSR_OK)
        status = mark(handle, family->stream);
    let_go(handle, number);
    return status;
}

static bool note_unsettled(tsr_nccl_handle *handle)
{
    tsr_nccl_family *family = handle->family;
    tsr_nccl_lock(family);
    const bool vacant = !family->unsettled;
    if (vacant) {
        family->unsettled = handle;
        family->started++;
    }
    tsr_nccl_unlock(family);
    return vacant;
}

/* Another thread may have set `unsettled` since this thread's call began: that handle is concluded
 * first. */
void tsr_nccl_conclude_later(tsr_nccl_handle *handle)
{
    while (!note_unsettled(handle))
        conclude_unsettled(handle->family, NULL);
}

tsr_status tsr_nccl_conclude_now(tsr_nccl_family *family)
{
    return conclude_unsettled(family, NULL);
}

tsr_status tsr_nccl_conclude_own(tsr_nccl_handle *handle)
{
    return conclude_unsettled(handle->family, handle);
}
