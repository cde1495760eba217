#include "comm/engines/nccl/split.h"

#include "comm/engines/nccl/family.h"
#include "comm/engines/nccl/kernel.h"
#include "comm/engines/nccl/life.h"
#include "comm/engines/nccl/wait.h"

#include <string.h>

/* Non-blocking, so that the wait for a peer that does not come can end. */
static ncclConfig_t config_of_ours(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
}

/* Asks NCCL for the rank and size of the handle's communicator, which must be ready. */
static tsr_status ask_seat(tsr_nccl_handle *handle)
{
    const tsr_nccl_api *api = handle->family->api;
    int previous;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    tsr_status status = tsr_nccl_check(api, api->comm_user_rank(handle->comm, &handle->rank), "ncclCommUserRank");
    if (status == TSR_OK)
        status = tsr_nccl_check(api, api->comm_count(handle->comm, &handle->ranks), "ncclCommCount");
    tsr_nccl_close(handle, previous);
    return status;
}

tsr_status tsr_nccl_adopt(tsr_nccl_handle *handle, ncclComm_t comm)
{
    handle->comm = comm;
    return ask_seat(handle);
}

/* Ends a call that makes a communicator: waits until NCCL has made it. A failure breaks the
 * handle. */
static tsr_status conclude_comm(tsr_nccl_handle *handle, ncclResult_t result, const char *call)
{
    const tsr_status status = tsr_nccl_check(handle->family->api, result, call);
    if (status != TSR_OK)
        return tsr_nccl_break(handle, status);
    return result == ncclInProgress ? tsr_nccl_settle(handle) : TSR_OK;
}

tsr_status tsr_nccl_init(tsr_nccl_handle *handle, int ranks, int rank, const tsr_nccl_id *id)
{
    const tsr_nccl_api *api = handle->family->api;
    ncclConfig_t config = config_of_ours();
    ncclUniqueId theirs;
    int previous;
    memcpy(&theirs, id, sizeof theirs);
    handle->rank = rank;
    handle->ranks = ranks;
    TSR_TRY(tsr_nccl_open(handle, &previous));
    handle->owned = true;
    const ncclResult_t result = api->comm_init_rank_config(&handle->comm, ranks, theirs, rank, &config);
    tsr_nccl_close(handle, previous);
    return conclude_comm(handle, result, "ncclCommInitRankConfig");
}

/* NCCL splits only a communicator without work in progress: the family's stream is ordered behind
 * its kernels and drained. */
static tsr_status quiesce(tsr_nccl_handle *parent)
{
    int previous;
    TSR_TRY(tsr_nccl_open_kernel(parent, parent->family->stream, &previous));
    tsr_nccl_close(parent, previous);
    return tsr_nccl_drain(parent, parent->family->stream, parent->family->timeout_ms);
}

/* Makes parent->made for this rank's color. */
static tsr_status split_comm(tsr_nccl_handle *parent, int color, int key)
{
    const tsr_nccl_api *api = parent->family->api;
    ncclConfig_t config = config_of_ours();
    int previous;
    TSR_TRY(tsr_nccl_open(parent, &previous));
    const ncclResult_t result = api->comm_split(parent->comm, color, key, &parent->made, &config);
    tsr_nccl_close(parent, previous);
    const tsr_status status = conclude_comm(parent, result, "ncclCommSplit");
    parent->stuck = status != TSR_OK && !parent->owned;
    return status;
}

/* Moves parent->made to the child, and waits until the child is ready too, which may take longer
 * than the parent. */
static tsr_status take_child(tsr_nccl_handle *parent, tsr_nccl_handle *child)
{
    tsr_nccl_lock(parent->family);
    child->comm = parent->made;
    child->owned = child->comm;
    parent->made = NULL;
    tsr_nccl_unlock(parent->family);
    TSR_TRY(tsr_nccl_settle(child));
    return ask_seat(child);
}

/* A rank that cannot make a handle takes part without a color, since the others wait for it. */
tsr_status tsr_nccl_split(void *self, int color, int key, void **out)
{
    tsr_nccl_handle *parent = self, *child = NULL;
    const tsr_status local = color < 0 ? TSR_OK : tsr_nccl_handle_create(parent->family, parent->ranks, &child);
    tsr_status status = quiesce(parent);
    if (status == TSR_OK)
        status = split_comm(parent, child ? color : -1, key);
    if (status == TSR_OK && child)
        status = take_child(parent, child);
    if (status != TSR_OK && child)
        tsr_nccl_handle_destroy(child);
    if (status != TSR_OK || local != TSR_OK)
        return status != TSR_OK ? status : local;
    *out = child;
    return TSR_OK;
}
