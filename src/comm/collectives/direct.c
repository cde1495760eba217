/*
 * Collectives where peers' memory can be read in place: between begin and end every rank reads what
 * it needs from its peers' memory. Each byte is read once and written once; reductions read all
 * sources in one pass.
 */
#include "comm/collectives/direct.h"

#include <stdint.h>

static const void *send_of(const tsr_comm *comm, int rank)
{
    return tsr_call_of(comm, rank)->src;
}

static tsr_status direct_all_gather(tsr_comm *comm, const tsr_collective *call)
{
    int64_t offset = 0;
    for (int r = 0; r < comm->size; r++) {
        const int64_t count = tsr_part_count(call, r);
        TSR_TRY(tsr_collective_copy(call, tsr_element(call, call->receive, offset), send_of(comm, r), count));
        offset += count;
    }
    return TSR_OK;
}

static tsr_status direct_reduce_scatter(tsr_comm *comm, const tsr_collective *call)
{
    const int64_t offset = tsr_part_offset(call, comm->rank);
    for (int r = 0; r < comm->size; r++)
        comm->sources[r] = tsr_element(call, send_of(comm, r), offset);
    comm->destinations[0] = call->receive;
    return tsr_collective_reduce(comm, call, call->receive_total, 1);
}

/* Each rank reduces its share and writes it to all: an element is read and written by one rank
 * only, so in place is safe in one phase. */
static tsr_status direct_all_reduce(tsr_comm *comm, const tsr_collective *call)
{
    const tsr_share share = tsr_share_of(comm, call, comm->rank);
    for (int r = 0; r < comm->size; r++) {
        const tsr_call *theirs = tsr_call_of(comm, r);
        comm->sources[r] = tsr_element(call, theirs->src, share.begin);
        comm->destinations[r] = tsr_element(call, theirs->dst, share.begin);
    }
    return tsr_collective_reduce(comm, call, share.end - share.begin, comm->size);
}

static const tsr_collective *collective_of(const tsr_comm *comm, int rank)
{
    return tsr_call_of(comm, rank)->extra;
}

tsr_status tsr_direct_match(tsr_comm *comm, const tsr_collective *call)
{
    for (int r = 0; call->counts && r < comm->size; r++) {
        const int64_t sent = collective_of(comm, r)->counts[comm->rank];
        if (sent != call->receive_counts[r])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank %d sends %lld elements to rank %d, which expects %lld",
                                  call->caller, tsr_comm_name(comm, r), (long long)sent,
                                  tsr_comm_name(comm, comm->rank), (long long)call->receive_counts[r]);
    }
    return TSR_OK;
}

static tsr_status direct_all_to_all(tsr_comm *comm, const tsr_collective *call)
{
    int64_t offset = 0;
    for (int r = 0; r < comm->size; r++) {
        const tsr_collective *theirs = collective_of(comm, r);
        const int64_t count = call->receive_counts ? call->receive_counts[r] : call->count;
        const void *part = tsr_element(call, theirs->send, tsr_part_offset(theirs, comm->rank));
        TSR_TRY(tsr_collective_copy(call, tsr_element(call, call->receive, offset), part, count));
        offset += count;
    }
    return TSR_OK;
}

static tsr_status direct_broadcast(tsr_comm *comm, const tsr_collective *call)
{
    return tsr_collective_copy(call, call->receive, send_of(comm, call->root), call->count);
}

static tsr_status direct_scatter(tsr_comm *comm, const tsr_collective *call)
{
    const void *part = tsr_element(call, send_of(comm, call->root), tsr_part_offset(call, comm->rank));
    return tsr_collective_copy(call, call->receive, part, call->receive_total);
}

static tsr_status direct_gather(tsr_comm *comm, const tsr_collective *call)
{
    return comm->rank == call->root ? direct_all_gather(comm, call) : TSR_OK;
}

tsr_status tsr_direct_carry_out(tsr_comm *comm, const tsr_collective *call)
{
    static tsr_status (*const by_kind[TSR_OPERATIONS])(tsr_comm *, const tsr_collective *) = {
        [TSR_OPERATION_ALL_GATHER] = direct_all_gather, [TSR_OPERATION_REDUCE_SCATTER] = direct_reduce_scatter,
        [TSR_OPERATION_ALL_REDUCE] = direct_all_reduce, [TSR_OPERATION_ALL_TO_ALL] = direct_all_to_all,
        [TSR_OPERATION_BROADCAST] = direct_broadcast,   [TSR_OPERATION_SCATTER] = direct_scatter,
        [TSR_OPERATION_GATHER] = direct_gather,
    };
    return by_kind[call->operation->kind](comm, call);
}
