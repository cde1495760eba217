/*
 * Collectives on an engine that has only messages: exchanges with one message per pair of ranks,
 * and our own kernels, in rank order, where values are reduced. An engine's own collective is used
 * instead where its result is exact: for moves, and for reductions of integers.
 */
#include "comm/collectives/message.h"

#include "base/hash.h"
#include "comm/collectives/hierarchy.h"
#include "comm/collectives/native.h"
#include "comm/core/agree.h"

/* Ends a reduction: ranks tell one another whether their kernels have succeeded. */
static tsr_status conclude_reduction(tsr_comm *comm, const tsr_collective *call, tsr_status local)
{
    const tsr_described described = {call, comm->size};
    return tsr_comm_agree(comm, tsr_hash_text(TSR_HASH_SEED, call->operation->name), local, tsr_collective_describe,
                          &described);
}

/* True if the engine has this reduction itself and it gives the same bits as ours. */
static bool has_exact(const tsr_comm *comm, tsr_native kind, const tsr_collective *call)
{
    return tsr_native_is_exact(call->dtype) && tsr_comm_has_native(comm, kind, call->dtype, call->op) &&
           !tsr_native_goes_by_nodes(comm, kind);
}

static tsr_status message_all_gather(tsr_comm *comm, const tsr_collective *call)
{
    if (comm->engine.collectives.all_gather && !call->counts)
        return comm->engine.collectives.all_gather(comm->self, call->send, call->receive, call->count, call->dtype,
                                                   call->device, call->stream);
    if (tsr_hierarchy_serves(comm, call)) {
        tsr_hierarchy_divide(comm, call);
        return tsr_hierarchy_all_gather(comm, call, call->send);
    }
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    int64_t offset = 0;
    for (int r = 0; r < comm->size; r++) {
        const int64_t count = tsr_part_count(call, r);
        tsr_traffic_send(&moves, r, call->send, 0, call->send_total);
        tsr_traffic_receive(&moves, r, call->receive, offset, count);
        offset += count;
    }
    TSR_TRY(tsr_traffic_deliver(&moves));
    void *own = tsr_element(call, call->receive, tsr_part_offset(call, comm->rank));
    return tsr_collective_copy(call, own, call->send, call->send_total);
}

/* Reduces `count` elements into `receive`: this rank's terms are at `send`, those of other ranks in
 * the scratch. */
static tsr_status reduce_scratch(tsr_comm *comm, const tsr_collective *call, const void *send, void *receive,
                                 int64_t count)
{
    for (int r = 0; r < comm->size; r++)
        comm->sources[r] = r == comm->rank ? send : tsr_element(call, call->scratch, count * r);
    comm->destinations[0] = receive;
    return tsr_collective_reduce(comm, call, count, 1);
}

static tsr_status reduce_scatter_by_nodes(tsr_comm *comm, const tsr_collective *call)
{
    tsr_status local = TSR_OK;
    TSR_TRY(tsr_hierarchy_reduce_scatter(comm, call, call->receive, &local));
    return conclude_reduction(comm, call, local);
}

static tsr_status message_reduce_scatter(tsr_comm *comm, const tsr_collective *call)
{
    if (!call->counts && has_exact(comm, TSR_NATIVE_REDUCE_SCATTER, call))
        return comm->engine.collectives.reduce_scatter(comm->self, call->send, call->receive, call->count, call->dtype,
                                                       call->op, call->device, call->stream);
    if (tsr_hierarchy_serves(comm, call))
        return reduce_scatter_by_nodes(comm, call);
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    int64_t offset = 0, own = 0;
    for (int r = 0; r < comm->size; r++) {
        const int64_t count = tsr_part_count(call, r);
        tsr_traffic_send(&moves, r, call->send, offset, count);
        tsr_traffic_receive(&moves, r, call->scratch, call->receive_total * r, call->receive_total);
        own = r == comm->rank ? offset : own;
        offset += count;
    }
    TSR_TRY(tsr_traffic_deliver(&moves));
    const tsr_status local =
        reduce_scratch(comm, call, tsr_element(call, call->send, own), call->receive, call->receive_total);
    return conclude_reduction(comm, call, local);
}

/* Sends each share of `send` to the rank that reduces it. */
static tsr_status spread_shares(tsr_comm *comm, const tsr_collective *call, tsr_share mine)
{
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    const int64_t count = mine.end - mine.begin;
    for (int r = 0; r < comm->size; r++) {
        const tsr_share share = tsr_share_of(comm, call, r);
        tsr_traffic_send(&moves, r, call->send, share.begin, share.end - share.begin);
        tsr_traffic_receive(&moves, r, call->scratch, count * r, count);
    }
    return tsr_traffic_deliver(&moves);
}

static tsr_status collect_shares(tsr_comm *comm, const tsr_collective *call, tsr_share mine)
{
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    for (int r = 0; r < comm->size; r++) {
        const tsr_share share = tsr_share_of(comm, call, r);
        tsr_traffic_send(&moves, r, call->receive, mine.begin, mine.end - mine.begin);
        tsr_traffic_receive(&moves, r, call->receive, share.begin, share.end - share.begin);
    }
    return tsr_traffic_deliver(&moves);
}

static tsr_status all_reduce_by_nodes(tsr_comm *comm, const tsr_collective *call)
{
    void *const part = tsr_element(call, call->receive, tsr_share_of(comm, call, comm->rank).begin);
    tsr_status local = TSR_OK;
    TSR_TRY(tsr_hierarchy_reduce_scatter(comm, call, part, &local));
    TSR_TRY(tsr_hierarchy_all_gather(comm, call, part));
    return conclude_reduction(comm, call, local);
}

static tsr_status message_all_reduce(tsr_comm *comm, const tsr_collective *call)
{
    if (has_exact(comm, TSR_NATIVE_ALL_REDUCE, call))
        return comm->engine.collectives.all_reduce(comm->self, call->send, call->receive, call->count, call->dtype,
                                                   call->op, call->device, call->stream);
    if (tsr_hierarchy_serves(comm, call))
        return all_reduce_by_nodes(comm, call);
    const tsr_share mine = tsr_share_of(comm, call, comm->rank);
    TSR_TRY(spread_shares(comm, call, mine));
    const tsr_status local = reduce_scratch(comm, call, tsr_element(call, call->send, mine.begin),
                                            tsr_element(call, call->receive, mine.begin), mine.end - mine.begin);
    TSR_TRY(collect_shares(comm, call, mine));
    return conclude_reduction(comm, call, local);
}

static tsr_status message_all_to_all(tsr_comm *comm, const tsr_collective *call)
{
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    int64_t sent = 0, received = 0, own_sent = 0, own_received = 0, own = 0;
    for (int r = 0; r < comm->size; r++) {
        const int64_t send_count = tsr_part_count(call, r);
        const int64_t receive_count = call->receive_counts ? call->receive_counts[r] : call->count;
        tsr_traffic_send(&moves, r, call->send, sent, send_count);
        tsr_traffic_receive(&moves, r, call->receive, received, receive_count);
        if (r == comm->rank) {
            own_sent = sent;
            own_received = received;
            own = send_count;
        }
        sent += send_count;
        received += receive_count;
    }
    TSR_TRY(tsr_traffic_deliver(&moves));
    return tsr_collective_copy(call, tsr_element(call, call->receive, own_received),
                               tsr_element(call, call->send, own_sent), own);
}

static tsr_status message_broadcast(tsr_comm *comm, const tsr_collective *call)
{
    if (comm->engine.collectives.broadcast)
        return comm->engine.collectives.broadcast(comm->self, call->receive, call->count, call->dtype, call->root,
                                                  call->device, call->stream);
    if (tsr_hierarchy_serves(comm, call))
        return tsr_hierarchy_broadcast(comm, call);
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    if (comm->rank != call->root)
        tsr_traffic_receive(&moves, call->root, call->receive, 0, call->count);
    else
        for (int r = 0; r < comm->size; r++)
            tsr_traffic_send(&moves, r, call->send, 0, call->count);
    return tsr_traffic_deliver(&moves);
}

static tsr_status message_scatter(tsr_comm *comm, const tsr_collective *call)
{
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    if (comm->rank != call->root) {
        tsr_traffic_receive(&moves, call->root, call->receive, 0, call->receive_total);
        return tsr_traffic_deliver(&moves);
    }
    for (int r = 0; r < comm->size; r++)
        tsr_traffic_send(&moves, r, call->send, tsr_part_offset(call, r), tsr_part_count(call, r));
    TSR_TRY(tsr_traffic_deliver(&moves));
    const void *own = tsr_element(call, call->send, tsr_part_offset(call, comm->rank));
    return tsr_collective_copy(call, call->receive, own, call->receive_total);
}

static tsr_status message_gather(tsr_comm *comm, const tsr_collective *call)
{
    tsr_traffic moves = tsr_traffic_begin(comm, call, comm->messages, (size_t)comm->size);
    if (comm->rank != call->root) {
        tsr_traffic_send(&moves, call->root, call->send, 0, call->send_total);
        return tsr_traffic_deliver(&moves);
    }
    for (int r = 0; r < comm->size; r++)
        tsr_traffic_receive(&moves, r, call->receive, tsr_part_offset(call, r), tsr_part_count(call, r));
    TSR_TRY(tsr_traffic_deliver(&moves));
    void *own = tsr_element(call, call->receive, tsr_part_offset(call, comm->rank));
    return tsr_collective_copy(call, own, call->send, call->send_total);
}

tsr_status tsr_message_carry_out(tsr_comm *comm, const tsr_collective *call)
{
    static tsr_status (*const by_kind[TSR_OPERATIONS])(tsr_comm *, const tsr_collective *) = {
        [TSR_OPERATION_ALL_GATHER] = message_all_gather, [TSR_OPERATION_REDUCE_SCATTER] = message_reduce_scatter,
        [TSR_OPERATION_ALL_REDUCE] = message_all_reduce, [TSR_OPERATION_ALL_TO_ALL] = message_all_to_all,
        [TSR_OPERATION_BROADCAST] = message_broadcast,   [TSR_OPERATION_SCATTER] = message_scatter,
        [TSR_OPERATION_GATHER] = message_gather,
    };
    return by_kind[call->operation->kind](comm, call);
}
