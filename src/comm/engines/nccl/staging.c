#include "comm/engines/nccl/staging.h"

#include "base/checked.h"

#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>

#include <string.h>

/* Bytes of staging memory: large enough to keep the bus busy, small enough to pin. */
#define STAGING_BYTES ((size_t)2 << 20)
#define SHORTEST_PART ((size_t)4096)

size_t tsr_nccl_part_bytes(int ranks)
{
    const size_t messages = ranks > 1 ? 2 * ((size_t)ranks - 1) : 1;
    const size_t share = tsr_round_down(STAGING_BYTES / messages, TSR_LINE);
    return share > SHORTEST_PART ? share : SHORTEST_PART;
}

size_t tsr_nccl_staging_bytes(int ranks)
{
    const size_t messages = ranks > 1 ? 2 * ((size_t)ranks - 1) : 1, wanted = messages * tsr_nccl_part_bytes(ranks);
    return wanted > STAGING_BYTES ? wanted : STAGING_BYTES;
}

void tsr_nccl_give_back(tsr_nccl_handle *handle)
{
    tsr_nccl_block *block = handle->staging;
    if (!block)
        return;
    block->next = handle->family->spare;
    handle->family->spare = block;
    handle->staging = NULL;
}

/* Under the lock: the first spare block of at least `bytes` bytes; NULL: none. */
static tsr_nccl_block *take_spare(tsr_nccl_family *family, size_t bytes)
{
    tsr_nccl_block **at = &family->spare;
    while (*at && (*at)->bytes < bytes)
        at = &(*at)->next;
    tsr_nccl_block *block = *at;
    if (block)
        *at = block->next;
    return block;
}

/* Under the lock: allocates a block of pinned memory. */
static tsr_status make_block(const tsr_nccl_family *family, size_t bytes, tsr_nccl_block **out)
{
    tsr_nccl_block *block;
    TSR_TRY(tsr_allocate(family->context, sizeof *block, (void **)&block));
    *block = (tsr_nccl_block){.bytes = bytes};
    const tsr_status status =
        tsr_nccl_check_cuda(family->api, family->api->cuda_malloc_host((void **)&block->at, bytes), "cudaMallocHost");
    if (status != TSR_OK) {
        tsr_release(family->context, block);
        return status;
    }
    *out = block;
    return TSR_OK;
}

/* A new block has at least twice the size of the old one, since outgrown blocks are kept. */
static tsr_status grow_staging(tsr_nccl_handle *handle, size_t bytes)
{
    tsr_nccl_block *block = take_spare(handle->family, bytes);
    const size_t doubled = handle->staging ? 2 * handle->staging->bytes : 0;
    if (!block)
        TSR_TRY(make_block(handle->family, bytes > doubled ? bytes : doubled, &block));
    tsr_nccl_give_back(handle);
    handle->staging = block;
    return TSR_OK;
}

tsr_status tsr_nccl_reserve(tsr_nccl_handle *handle, size_t bytes)
{
    int previous;
    if (handle->staging && bytes <= handle->staging->bytes)
        return TSR_OK;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    const tsr_status status = grow_staging(handle, bytes);
    tsr_nccl_close(handle, previous);
    return status;
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
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED,
        "the memory is on %s:%d, but this communicator of NCCL's sends that of %s:%d and of the host", name,
        device.index, family->driver ? tsr_device_driver_table(family->driver, NULL)->name : "cuda", family->device);
}
