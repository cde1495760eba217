#include "comm/nccl/handle.h"

#include "comm/nccl/clock.h"
#include "comm/nccl/staging.h"
#include <stdio.h>
#include <string.h>
#include <tessera/sys/memory.h>

/* Enough for what a few dozen ranks agree on. */
#define FIRST_STAGING 16384

/* The lock is held. Errors of what is given up anyway are nobody's. */
static void abort_comm(tsr_nccl_handle *handle)
{
    if (!handle->owned)
        return;
    if (handle->comm)
        handle->family->api->comm_abort(handle->comm);
    if (handle->made)
        handle->family->api->comm_abort(handle->made);
    handle->comm = handle->made = NULL;
}

static void abort_all(tsr_nccl_family *family)
{
    for (tsr_nccl_handle *handle = family->handles; handle; handle = handle->next)
        abort_comm(handle);
}

/* Whoever is in a call of NCCL's aborts when it comes out: see unlock(). */
static void try_abort(tsr_nccl_family *family)
{
    if (pthread_mutex_trylock(&family->lock) != 0)
        return;
    abort_all(family);
    pthread_mutex_unlock(&family->lock);
}

void tsr_nccl_abort(tsr_nccl_family *family)
{
    atomic_store(&family->aborted, true);
    try_abort(family);
}

static void unlock(tsr_nccl_family *family)
{
    pthread_mutex_unlock(&family->lock);
    if (atomic_load(&family->aborted))
        try_abort(family);
}

static tsr_status check_whole(const tsr_nccl_handle *handle)
{
    if (handle->broken)
        return tsr_status_set(TSR_ERROR_PEER, "an earlier call has broken this communicator: %s", handle->why);
    if (atomic_load(&handle->family->aborted))
        return tsr_status_set(TSR_ERROR_PEER, "rank %d of %d has aborted", handle->rank, handle->ranks);
    return TSR_OK;
}

static tsr_status switch_device(const tsr_nccl_family *family, int *previous)
{
    const tsr_nccl_api *api = family->api;
    TSR_TRY(tsr_nccl_check_cuda(api, api->cuda_get_device(previous), "cudaGetDevice"));
    if (*previous == family->device)
        return TSR_OK;
    return tsr_nccl_check_cuda(api, api->cuda_set_device(family->device), "cudaSetDevice");
}

tsr_status tsr_nccl_open(tsr_nccl_handle *handle, int *previous_device)
{
    pthread_mutex_lock(&handle->family->lock);
    tsr_status status = check_whole(handle);
    if (status == TSR_OK)
        status = switch_device(handle->family, previous_device);
    if (status != TSR_OK)
        unlock(handle->family);
    return status;
}

void tsr_nccl_close(tsr_nccl_handle *handle, int previous_device)
{
    if (previous_device != handle->family->device)
        handle->family->api->cuda_set_device(previous_device);
    unlock(handle->family);
}

tsr_status tsr_nccl_break(tsr_nccl_handle *handle, tsr_status status)
{
    if (handle->broken || atomic_load(&handle->family->aborted))
        return status;
    snprintf(handle->why, sizeof handle->why, "%s", tsr_status_message());
    handle->broken = true;
    pthread_mutex_lock(&handle->family->lock);
    abort_comm(handle);
    unlock(handle->family);
    return status;
}

static tsr_status make_resources(tsr_nccl_handle *handle)
{
    const tsr_nccl_api *api = handle->family->api;
    int previous;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    const tsr_status status =
        tsr_nccl_check_cuda(api, api->cuda_stream_create_with_flags(&handle->stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    tsr_nccl_close(handle, previous);
    TSR_TRY(status);
    return tsr_nccl_reserve(handle, FIRST_STAGING);
}

/* Memory that the GPU may still write to, for a borrowed communicator that hangs, is left alone: freeing it would wait for that. */
static void free_resources(tsr_nccl_handle *handle)
{
    const tsr_nccl_api *api = handle->family->api;
    int previous = handle->family->device;
    api->cuda_get_device(&previous);
    api->cuda_set_device(handle->family->device);
    if (handle->stream && (handle->owned || api->cuda_stream_query(handle->stream) != cudaErrorNotReady)) {
        api->cuda_stream_destroy(handle->stream);
        if (handle->staging)
            api->cuda_free_host(handle->staging);
    }
    api->cuda_get_last_error();
    api->cuda_set_device(previous);
}

static void link_handle(tsr_nccl_handle *handle)
{
    tsr_nccl_family *family = handle->family;
    pthread_mutex_lock(&family->lock);
    handle->next = family->handles;
    family->handles = handle;
    family->living++;
    unlock(family);
}

static void unlink_handle(tsr_nccl_handle *handle)
{
    tsr_nccl_handle **at = &handle->family->handles;
    while (*at != handle)
        at = &(*at)->next;
    *at = handle->next;
}

/* The lock is held, and no communicator left that is ours. */
static void free_handle(tsr_nccl_handle *handle)
{
    unlink_handle(handle);
    free_resources(handle);
    if (!handle->stuck)
        tsr_release(handle->family->context, handle);
}

/* The lock is held. Frees the handle if NCCL is done with it, or if it is not to be waited for any longer. */
static bool bury(tsr_nccl_handle *handle, bool at_once)
{
    const tsr_nccl_api *api = handle->family->api;
    ncclResult_t state = ncclSuccess;
    if (handle->owned && handle->comm) {
        const bool known = api->comm_get_async_error(handle->comm, &state) == ncclSuccess;
        if (known && state == ncclInProgress && !at_once)
            return false;
        if (known && state == ncclSuccess && handle->finalizing)
            api->comm_destroy(handle->comm);
        else
            abort_comm(handle);
    }
    free_handle(handle);
    return true;
}

/* Frees what NCCL has finished; true: nothing is left. */
static bool sweep(tsr_nccl_family *family, bool at_once)
{
    pthread_mutex_lock(&family->lock);
    for (tsr_nccl_handle *handle = family->handles, *next; handle; handle = next) {
        next = handle->next;
        if (handle->finalizing)
            bury(handle, at_once);
    }
    const bool empty = !family->handles;
    unlock(family);
    return empty;
}

static void destroy_family(tsr_nccl_family *family)
{
    const tsr_deadline deadline = tsr_deadline_in(family->timeout_ms);
    for (int look = 0; !sweep(family, tsr_deadline_passed(deadline)); look++)
        tsr_pause(look);
    pthread_mutex_destroy(&family->lock);
    tsr_context *context = family->context;
    tsr_release(context, family);
    tsr_context_destroy(context);
}

/* A handle without a communicator of ours has nothing to finalize, but what it has started on its own stream is to be over. */
static void begin_to_go(tsr_nccl_handle *handle)
{
    int previous;
    if (handle->exchange.started && handle->comm && tsr_nccl_settle(handle) == TSR_OK && !handle->owned)
        tsr_nccl_drain(handle, handle->stream, handle->family->timeout_ms);
    if (handle->owned && handle->comm && tsr_nccl_settle(handle) == TSR_OK && tsr_nccl_open(handle, &previous) == TSR_OK) {
        const tsr_nccl_api *api = handle->family->api;
        const ncclResult_t result = api->comm_finalize(handle->comm);
        tsr_nccl_close(handle, previous);
        if (tsr_nccl_check(api, handle->comm, result, "ncclCommFinalize") != TSR_OK)
            tsr_nccl_break(handle, TSR_ERROR_PEER);
    }
    handle->finalizing = true;
}

void tsr_nccl_handle_destroy(tsr_nccl_handle *handle)
{
    tsr_nccl_family *family = handle->family;
    begin_to_go(handle);
    pthread_mutex_lock(&family->lock);
    const bool last = --family->living == 0;
    unlock(family);
    if (last)
        destroy_family(family);
    else
        sweep(family, false);
}

tsr_status tsr_nccl_handle_create(tsr_nccl_family *family, tsr_nccl_handle **out)
{
    tsr_nccl_handle *handle;
    const tsr_status allocated = tsr_allocate(family->context, sizeof *handle, (void **)&handle);
    if (allocated != TSR_OK) {
        if (family->living == 0)
            destroy_family(family);
        return allocated;
    }
    *handle = (tsr_nccl_handle){.family = family, .ranks = 1};
    link_handle(handle);
    const tsr_status status = make_resources(handle);
    if (status != TSR_OK) {
        tsr_nccl_handle_destroy(handle);
        return status;
    }
    *out = handle;
    return TSR_OK;
}
