#include "comm/engines/nccl/family.h"

#include <tessera/sys/memory.h>

#include <string.h>

static tsr_status make_queue(tsr_nccl_family *family)
{
    const tsr_nccl_api *api = family->api;
    TSR_TRY(tsr_nccl_check_cuda(api, api->cuda_stream_create_with_flags(&family->stream, cudaStreamNonBlocking),
                                "cudaStreamCreateWithFlags"));
    return tsr_nccl_check_cuda(api, api->cuda_event_create_with_flags(&family->last, cudaEventDisableTiming),
                               "cudaEventCreateWithFlags");
}

static void free_spare(tsr_nccl_family *family)
{
    while (family->spare) {
        tsr_nccl_block *block = family->spare;
        family->spare = block->next;
        if (!family->leaks)
            family->api->cuda_free_host(block->at);
        tsr_release(family->context, block);
    }
}

static void free_queue(tsr_nccl_family *family)
{
    const tsr_nccl_api *api = family->api;
    int previous = family->device;
    tsr_nccl_switch(family, &previous);
    free_spare(family);
    if (family->last)
        api->cuda_event_destroy(family->last);
    if (family->stream)
        api->cuda_stream_destroy(family->stream);
    api->cuda_get_last_error();
    api->cuda_set_device(previous);
}

tsr_status tsr_nccl_family_create(const tsr_nccl_api *api, tsr_context *context, const tsr_device_driver *driver,
                                  int device, int64_t timeout_ms, tsr_nccl_family **out)
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

/* NCCL's errors are ignored: the communicators are given up anyway. */
void tsr_nccl_handle_abort(tsr_nccl_handle *handle)
{
    if (!handle->owned)
        return;
    if (handle->comm)
        handle->family->api->comm_abort(handle->comm);
    if (handle->made)
        handle->family->api->comm_abort(handle->made);
    handle->comm = handle->made = NULL;
}

/* Aborts all handles, unless a thread holds the lock: that one does it in tsr_nccl_unlock(). */
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
