#include "comm/engines/nccl/life.h"

#include "comm/core/clock.h"
#include "comm/engines/nccl/family.h"
#include "comm/engines/nccl/kernel.h"
#include "comm/engines/nccl/staging.h"
#include "comm/engines/nccl/wait.h"

#include <tessera/sys/memory.h>

static void link_handle(tsr_nccl_handle *handle)
{
    tsr_nccl_family *family = handle->family;
    tsr_nccl_lock(family);
    handle->next = family->handles;
    family->handles = handle;
    family->living++;
    tsr_nccl_unlock(family);
}

static void unlink_handle(tsr_nccl_handle *handle)
{
    tsr_nccl_handle **at = &handle->family->handles;
    while (*at != handle)
        at = &(*at)->next;
    *at = handle->next;
}

/* Under the lock, for a finalizing handle without holders: frees it if NCCL is done with its
 * communicator. `at_once`: aborts the communicator if NCCL is not. */
static void bury_handle(tsr_nccl_handle *handle, bool at_once)
{
    const tsr_nccl_api *api = handle->family->api;
    ncclResult_t state = ncclSuccess;
    if (handle->owned && handle->comm) {
        const bool known = api->comm_get_async_error(handle->comm, &state) == ncclSuccess;
        if (known && state == ncclInProgress && !at_once)
            return;
        if (known && state == ncclSuccess) {
            api->comm_destroy(handle->comm);
            handle->comm = NULL;
        }
        tsr_nccl_handle_abort(handle);
    }
    unlink_handle(handle);
    tsr_nccl_give_back(handle);
    if (!handle->stuck)
        tsr_release(handle->family->context, handle);
}

/* Frees the finalizing handles that NCCL is done with (`at_once`: all of them). True if the family
 * has no handles left. */
static bool sweep_handles(tsr_nccl_family *family, bool at_once)
{
    tsr_nccl_lock(family);
    for (tsr_nccl_handle *handle = family->handles, *next; handle; handle = next) {
        next = handle->next;
        if (handle->finalizing && handle->holders == 0)
            bury_handle(handle, at_once);
    }
    const bool empty = !family->handles;
    tsr_nccl_unlock(family);
    return empty;
}

static void destroy_family(tsr_nccl_family *family)
{
    const tsr_deadline deadline = tsr_deadline_in(family->timeout_ms);
    for (int look = 0; !sweep_handles(family, tsr_deadline_passed(deadline)); look++)
        tsr_pause(look);
    tsr_nccl_family_free(family);
}

static void finalize(tsr_nccl_handle *handle)
{
    const tsr_nccl_api *api = handle->family->api;
    int previous;
    if (tsr_nccl_settle(handle) != TSR_OK || tsr_nccl_open(handle, &previous) != TSR_OK)
        return;
    const ncclResult_t result = api->comm_finalize(handle->comm);
    tsr_nccl_close(handle, previous);
    if (tsr_nccl_check(api, result, "ncclCommFinalize") != TSR_OK)
        tsr_nccl_break(handle, TSR_ERROR_PEER);
}

/* Under the lock: true if the family's stream still has work, here that of a borrowed communicator
 * that hangs. */
static bool is_busy(tsr_nccl_family *family)
{
    int previous = family->device;
    const bool busy = tsr_nccl_switch(family, &previous) == TSR_OK &&
                      family->api->cuda_stream_query(family->stream) == cudaErrorNotReady;
    family->api->cuda_set_device(previous);
    return busy;
}

/* Work that the handle has started on the family's stream must end before its memory is given back.
 * A communicator made here is finalized, which ends after that work. */
static void begin_to_go(tsr_nccl_handle *handle)
{
    tsr_nccl_family *family = handle->family;
    tsr_nccl_conclude_own(handle);
    if (handle->owned)
        finalize(handle);
    else if (handle->exchange.started && handle->exchange.staged)
        tsr_nccl_drain(handle, family->stream, family->timeout_ms);
    tsr_nccl_lock(family);
    if (!handle->owned && (handle->broken || atomic_load(&family->aborted)))
        family->leaks = is_busy(family);
    handle->finalizing = true;
    tsr_nccl_unlock(family);
}

/* The thread's sentence stays: a handle that is destroyed because it failed must not replace the
 * reason. */
void tsr_nccl_handle_destroy(tsr_nccl_handle *handle)
{
    tsr_nccl_family *family = handle->family;
    tsr_kept_sentence sentence;
    tsr_status_keep(&sentence);
    begin_to_go(handle);
    tsr_nccl_lock(family);
    const bool last = --family->living == 0;
    tsr_nccl_unlock(family);
    if (last)
        destroy_family(family);
    else
        sweep_handles(family, false);
    tsr_status_restore(&sentence, TSR_OK);
}

tsr_status tsr_nccl_handle_create(tsr_nccl_family *family, int ranks, tsr_nccl_handle **out)
{
    tsr_nccl_handle *handle;
    const tsr_status allocated = tsr_allocate(family->context, sizeof *handle, (void **)&handle);
    if (allocated != TSR_OK) {
        if (family->living == 0)
            tsr_nccl_family_free(family);
        return allocated;
    }
    *handle = (tsr_nccl_handle){.family = family, .ranks = ranks};
    link_handle(handle);
    const tsr_status status = tsr_nccl_reserve(handle, tsr_nccl_staging_bytes(ranks));
    if (status != TSR_OK) {
        tsr_nccl_handle_destroy(handle);
        return status;
    }
    *out = handle;
    return TSR_OK;
}
