#include "comm/engines/nccl/staging.h"

#include <string.h>
#include <tessera/sys/memory.h>

static tsr_status make_queue(tsr_nccl_family *family)
{
    const tsr_nccl_api *api = family->api;
    TSR_TRY(
        tsr_nccl_check_cuda(api, api->cuda_stream_create_with_flags(&family->stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
    return tsr_nccl_check_cuda(api, api->cuda_event_create_with_flags(&family->last, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

static void free_queue(tsr_nccl_family *family)
{
    const tsr_nccl_api *api = family->api;
    int previous = family->device;
    tsr_nccl_switch(family, &previous);
    tsr_nccl_free_spare(family);
    if (family->last)
        api->cuda_event_destroy(family->last);
    if (family->stream)
        api->cuda_stream_destroy(family->stream);
    api->cuda_get_last_error();
    api->cuda_set_device(previous);
}

tsr_status tsr_nccl_family_create(const tsr_nccl_api *api, tsr_context *context, const tsr_device_driver *driver, int device,
                                  int64_t timeout_ms, tsr_nccl_family **out)
{
    tsr_nccl_family *family;
    int previous = device;
    TSR_TRY(tsr_allocate(context, sizeof *family, (void **)&family));
    memset(family, 0, sizeof *family);
    family->api = api;
    family->context = tsr_context_retain(context);
    family->driver = driver;
    family->device = device;
    family->timeout_ms = timeout_ms;
    atomic_init(&family->aborted, false);
    pthread_mutex_init(&family->lock, NULL);
    tsr_status status = tsr_nccl_switch(family, &previous);
    if (status == TSR_OK)
        status = make_queue(family);
    api->cuda_set_device(previous);
    if (status != TSR_OK) {
        tsr_nccl_family_free(family);
        return status;
    }
    *out = family;
    return TSR_OK;
}

void tsr_nccl_family_free(tsr_nccl_family *family)
{
    tsr_context *context = family->context;
    free_queue(family);
    pthread_mutex_destroy(&family->lock);
    tsr_release(context, family);
    tsr_context_destroy(context);
}

/* Whoever is in a call of NCCL's aborts when it comes out. */
static void try_abort(tsr_nccl_family *family)
{
    if (pthread_mutex_trylock(&family->lock) != 0)
        return;
    for (tsr_nccl_handle *handle = family->handles; handle; handle = handle->next)
        tsr_nccl_handle_abort(handle);
    pthread_mutex_unlock(&family->lock);
}

void tsr_nccl_family_abort(tsr_nccl_family *family)
{
    atomic_store(&family->aborted, true);
    try_abort(family);
}

void tsr_nccl_lock(tsr_nccl_family *family)
{
    pthread_mutex_lock(&family->lock);
}

void tsr_nccl_unlock(tsr_nccl_family *family)
{
    pthread_mutex_unlock(&family->lock);
    if (atomic_load(&family->aborted))
        try_abort(family);
}

tsr_status tsr_nccl_switch(const tsr_nccl_family *family, int *previous_device)
{
    const tsr_nccl_api *api = family->api;
    TSR_TRY(tsr_nccl_check_cuda(api, api->cuda_get_device(previous_device), "cudaGetDevice"));
    if (*previous_device == family->device)
        return TSR_OK;
    return tsr_nccl_check_cuda(api, api->cuda_set_device(family->device), "cudaSetDevice");
}

/* What a graph captures is ordered by whoever launches the graph. */
static tsr_status is_captured(const tsr_nccl_family *family, cudaStream_t stream, bool *captured)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TSR_TRY(tsr_nccl_check_cuda(family->api, family->api->cuda_stream_is_capturing(stream, &capture), "cudaStreamIsCapturing"));
    *captured = capture != cudaStreamCaptureStatusNone;
    return TSR_OK;
}

/* On the stream of the last kernel too: that one may be gone, and its handle another's. */
static tsr_status follow_last(const tsr_nccl_family *family, cudaStream_t stream)
{
    const tsr_nccl_api *api = family->api;
    bool captured = false;
    if (!family->marked)
        return TSR_OK;
    TSR_TRY(is_captured(family, stream, &captured));
    return captured ? TSR_OK : tsr_nccl_check_cuda(api, api->cuda_stream_wait_event(stream, family->last, 0), "cudaStreamWaitEvent");
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

/* The handle that is unsettled, held, or NULL. `only` that one, or NULL: any. */
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

/* Another thread may have settled it too, and started something else. */
static void let_go(tsr_nccl_handle *handle, uint64_t number)
{
    tsr_nccl_family *family = handle->family;
    tsr_nccl_lock(family);
    handle->holders--;
    if (family->started == number)
        family->unsettled = NULL;
    tsr_nccl_unlock(family);
}

/* It stays unsettled until it is not, so that no other thread goes on before. A handle that breaks here says so in its own next call too.
 */
static tsr_status conclude(tsr_nccl_family *family, const tsr_nccl_handle *only)
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

/* Another thread may have left one of its own since this one's call began. */
void tsr_nccl_conclude_later(tsr_nccl_handle *handle)
{
    while (!note_unsettled(handle))
        conclude(handle->family, NULL);
}

tsr_status tsr_nccl_conclude_now(tsr_nccl_family *family)
{
    return conclude(family, NULL);
}

tsr_status tsr_nccl_conclude_own(tsr_nccl_handle *handle)
{
    return conclude(handle->family, handle);
}
