#include "comm/collectives/collectives.h"

#include "base/checked.h"
#include "comm/collectives/direct.h"
#include "comm/collectives/hierarchy.h"
#include "comm/collectives/message.h"
#include "comm/core/agree.h"
#include "comm/core/arrays.h"
#include "comm/core/balance.h"
#include "comm/core/call.h"
#include "comm/core/traits.h"

/* Ranks of a direct engine all read the strides of rank 0, which stay until the call ends; so only
 * rank 0 needs the array. */
static void borrow_ones(const tsr_comm *comm, tsr_collective *call)
{
    if (call->operation->reduces && comm->rank != 0)
        call->ones = ((const tsr_collective *)tsr_call_of(comm, 0)->extra)->ones;
}

static tsr_status run_directly(tsr_comm *comm, tsr_collective *call, tsr_status local)
{
    const tsr_described described = {call, comm->size};
    tsr_call mine = {
        .fingerprint = tsr_collective_fingerprint(comm, call),
        .reaches = true,
        .src = call->send,
        .dst = call->receive,
        .extra = call,
    };
    mine.status = tsr_call_place(comm, &mine, call->device, call->stream, local);
    TSR_TRY(tsr_call_begin(comm, &mine, tsr_collective_describe, &described));
    borrow_ones(comm, call);
    if (call->operation->match) {
        const tsr_status matched = call->operation->match(comm, call);
        if (matched != TSR_OK)
            return tsr_call_end_shared(comm, matched);
    }
    local = tsr_call_follow(comm);
    if (local == TSR_OK)
        local = tsr_direct_carry_out(comm, call);
    return tsr_call_end(comm, local);
}

static tsr_status get_scratch_by_nodes(tsr_comm *comm, tsr_collective *call, size_t *bytes)
{
    (call->operation->parts ? tsr_hierarchy_divide : tsr_hierarchy_divide_by_shares)(comm, call);
    *bytes = tsr_hierarchy_scratch_bytes(comm, call);
    return *bytes ? call->ops.table->alloc(call->ops.self, call->ops.index, *bytes, call->stream, &call->scratch)
                  : TSR_OK;
}

/* Allocates call->scratch for operations that reduce: room for a part from every rank, or what
 * reducing by nodes needs. */
static tsr_status get_scratch(tsr_comm *comm, tsr_collective *call, size_t *bytes)
{
    if (call->operation->reduces && tsr_hierarchy_serves(comm, call))
        return get_scratch_by_nodes(comm, call, bytes);
    const tsr_share share = tsr_share_of(comm, call, comm->rank);
    int64_t wanted = call->operation->parts ? call->receive_total : share.end - share.begin;
    if (!call->operation->reduces || wanted == 0)
        return TSR_OK;
    if (!tsr_multiply(wanted, (int64_t)call->bytes, &wanted) || !tsr_multiply(wanted, comm->size, &wanted))
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: a part from each of %d ranks is more than memory holds",
                              call->caller, comm->size);
    *bytes = (size_t)wanted;
    return call->ops.table->alloc(call->ops.self, call->ops.index, *bytes, call->stream, &call->scratch);
}

/* Before data moves: ranks compare their calls. The counts of an all-to-all differ between ranks;
 * they match if the balance of all ranks is 0 (balance.h). */
static tsr_status agree_on_call(tsr_comm *comm, const tsr_collective *call, tsr_status local)
{
    const tsr_described described = {call, comm->size};
    const uint64_t fingerprint = tsr_collective_fingerprint(comm, call);
    if (!call->receive_counts)
        return tsr_comm_agree(comm, fingerprint, local, tsr_collective_describe, &described);
    const tsr_sizes sizes = {.caller = call->caller,
                             .unit = "elements",
                             .send_counts = call->counts,
                             .receive_counts = call->receive_counts};
    uint64_t balance = local == TSR_OK ? tsr_balance_of(comm, &sizes) : 0;
    TSR_TRY(tsr_comm_agree_balance(comm, fingerprint, local, &balance, tsr_collective_describe, &described));
    return balance == 0 ? TSR_OK : tsr_balance_explain(comm, &sizes);
}

static tsr_status run_by_messages(tsr_comm *comm, tsr_collective *call, tsr_status local)
{
    size_t bytes = 0;
    if (local == TSR_OK)
        local = get_scratch(comm, call, &bytes);
    tsr_status status = agree_on_call(comm, call, local);
    if (status == TSR_OK)
        status = tsr_message_carry_out(comm, call);
    if (call->scratch)
        call->ops.table->free(call->ops.self, call->ops.index, call->scratch, bytes, call->stream);
    return status;
}

/* Makes the arrays that a reduction needs, if they do not exist yet. A failure is the status that
 * this rank brings to the call. */
static tsr_status reserve_arrays(tsr_comm *comm, tsr_collective *call, tsr_status local)
{
    if (!call->operation->reduces || local != TSR_OK)
        return local;
    local = tsr_terms_reserve(comm, comm->rank == 0 || !tsr_comm_shares_all(comm));
    call->ones = (const int64_t(*)[TSR_MAX_DIMS])comm->ones;
    return local;
}

tsr_status tsr_collective_run(tsr_comm *comm, tsr_collective *call)
{
    const tsr_status local = reserve_arrays(comm, call, tsr_collective_check(comm, call));
    return tsr_comm_shares_all(comm) ? run_directly(comm, call, local) : run_by_messages(comm, call, local);
}

static tsr_status run_collective(tsr_comm *comm, tsr_collective *call)
{
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call->caller);
    TSR_TRY(tsr_comm_enter(comm, call->caller));
    return tsr_comm_leave(comm, tsr_collective_run(comm, call));
}

const tsr_operation tsr_all_gather_operation = {
    .kind = TSR_OPERATION_ALL_GATHER,
    .name = "all_gather",
    .parts = true,
    .extents = tsr_extents_gather_all,
    .in_place = tsr_in_place_part,
};

const tsr_operation tsr_reduce_scatter_operation = {
    .kind = TSR_OPERATION_REDUCE_SCATTER,
    .name = "reduce_scatter",
    .reduces = true,
    .parts = true,
    .extents = tsr_extents_scatter_all,
};

const tsr_operation tsr_all_reduce_operation = {
    .kind = TSR_OPERATION_ALL_REDUCE,
    .name = "all_reduce",
    .reduces = true,
    .extents = tsr_extents_same,
    .in_place = tsr_in_place_whole,
};

const tsr_operation tsr_all_to_all_operation = {
    .kind = TSR_OPERATION_ALL_TO_ALL,
    .name = "all_to_all",
    .parts = true,
    .extents = tsr_extents_exchange,
    .match = tsr_direct_match,
};

const tsr_operation tsr_broadcast_operation = {
    .kind = TSR_OPERATION_BROADCAST,
    .name = "broadcast",
    .rooted = true,
    .extents = tsr_extents_same,
    .in_place = tsr_in_place_whole,
};

tsr_status tsr_gather_bytes(tsr_comm *comm, const void *mine, void *all, size_t bytes)
{
    tsr_collective call = tsr_collective_of("tsr_comm_all_gather", &tsr_all_gather_operation, mine, all, (int64_t)bytes,
                                            TSR_U8, tsr_device_host(), NULL);
    return tsr_collective_run(comm, &call);
}

tsr_status tsr_broadcast_bytes(tsr_comm *comm, void *data, size_t bytes, int root)
{
    tsr_collective call = tsr_collective_of("tsr_comm_broadcast", &tsr_broadcast_operation, data, data, (int64_t)bytes,
                                            TSR_U8, tsr_device_host(), NULL);
    call.root = root;
    return tsr_collective_run(comm, &call);
}

tsr_status tsr_comm_all_gather(tsr_comm *comm, const void *send, void *receive, int64_t count, const int64_t *counts,
                               tsr_dtype dtype, tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_comm_all_gather", &tsr_all_gather_operation, send, receive, count,
                                            dtype, device, stream);
    call.counts = counts;
    return run_collective(comm, &call);
}

tsr_status tsr_comm_reduce_scatter(tsr_comm *comm, const void *send, void *receive, int64_t count,
                                   const int64_t *counts, tsr_dtype dtype, tsr_reduce_op op, tsr_device device,
                                   tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_comm_reduce_scatter", &tsr_reduce_scatter_operation, send, receive,
                                            count, dtype, device, stream);
    call.counts = counts;
    call.op = op;
    return run_collective(comm, &call);
}

tsr_status tsr_comm_all_reduce(tsr_comm *comm, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                               tsr_reduce_op op, tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_comm_all_reduce", &tsr_all_reduce_operation, send, receive, count,
                                            dtype, device, stream);
    call.op = op;
    return run_collective(comm, &call);
}

tsr_status tsr_comm_all_to_all(tsr_comm *comm, const void *send, void *receive, int64_t count,
                               const int64_t *send_counts, const int64_t *receive_counts, tsr_dtype dtype,
                               tsr_device device, tsr_stream stream)
{
    tsr_collective call = tsr_collective_of("tsr_comm_all_to_all", &tsr_all_to_all_operation, send, receive, count,
                                            dtype, device, stream);
    call.counts = send_counts;
    call.receive_counts = receive_counts;
    return run_collective(comm, &call);
}

tsr_status tsr_comm_broadcast(tsr_comm *comm, void *buffer, int64_t count, tsr_dtype dtype, int root, tsr_device device,
                              tsr_stream stream)
{
    tsr_collective call =
        tsr_collective_of("tsr_comm_broadcast", &tsr_broadcast_operation, buffer, buffer, count, dtype, device, stream);
    call.buffer = "buffer";
    call.root = root;
    return run_collective(comm, &call);
}

tsr_status tsr_comm_scatter(tsr_comm *comm, const void *send, void *receive, int64_t count, const int64_t *counts,
                            tsr_dtype dtype, int root, tsr_device device, tsr_stream stream)
{
    static const tsr_operation operation = {
        .kind = TSR_OPERATION_SCATTER,
        .name = "scatter",
        .rooted = true,
        .parts = true,
        .extents = tsr_extents_from_root,
    };
    tsr_collective call =
        tsr_collective_of("tsr_comm_scatter", &operation, send, receive, count, dtype, device, stream);
    call.counts = counts;
    call.root = root;
    return run_collective(comm, &call);
}

tsr_status tsr_comm_gather(tsr_comm *comm, const void *send, void *receive, int64_t count, const int64_t *counts,
                           tsr_dtype dtype, int root, tsr_device device, tsr_stream stream)
{
    static const tsr_operation operation = {
        .kind = TSR_OPERATION_GATHER,
        .name = "gather",
        .rooted = true,
        .parts = true,
        .extents = tsr_extents_to_root,
    };
    tsr_collective call = tsr_collective_of("tsr_comm_gather", &operation, send, receive, count, dtype, device, stream);
    call.counts = counts;
    call.root = root;
    return run_collective(comm, &call);
}
