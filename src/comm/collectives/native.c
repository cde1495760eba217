#include "comm/collectives/native.h"

#include "comm/collectives/hierarchy.h"
#include "comm/core/agree.h"
#include "comm/core/call.h"

/* Upper bound of the scratch that a call by nodes needs. */
static size_t scratch_bytes(const tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype)
{
    /* Shares of an all-reduce are whole cache lines, of at most 64 elements, and differ by one
     * line. */
    const int64_t longest = kind == TSR_NATIVE_ALL_REDUCE ? count / comm->size + 128 : count;
    return count > 0 ? tsr_hierarchy_most_scratch_bytes(comm->size, longest, tsr_dtype_bytes(dtype)) : 0;
}

tsr_status tsr_native_reserve(tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype)
{
    if (!tsr_native_goes_by_nodes(comm, kind))
        return TSR_OK;
    return tsr_hierarchy_reserve(comm->context, comm->hierarchy, scratch_bytes(comm, kind, count, dtype));
}

bool tsr_native_is_reserved(const tsr_comm *comm, tsr_native kind, int64_t count, tsr_dtype dtype)
{
    return !tsr_native_goes_by_nodes(comm, kind) ||
           comm->hierarchy->scratch_bytes >= scratch_bytes(comm, kind, count, dtype);
}

static tsr_status reduce_by_nodes(tsr_comm *comm, const tsr_native_call *c)
{
    static const tsr_operation scatters = {
        .kind = TSR_OPERATION_REDUCE_SCATTER, .name = "reduce_scatter", .reduces = true, .parts = true};
    static const tsr_operation reduces_all = {.kind = TSR_OPERATION_ALL_REDUCE, .name = "all_reduce", .reduces = true};
    const bool all = c->kind == TSR_NATIVE_ALL_REDUCE;
    const tsr_collective call = {.operation = all ? &reduces_all : &scatters,
                                 .send = c->send,
                                 .receive = c->receive,
                                 .count = c->count,
                                 .dtype = c->dtype,
                                 .op = c->op,
                                 .device = c->device,
                                 .stream = c->stream,
                                 .ops = tsr_comm_device_ops(comm, c->device),
                                 .bytes = tsr_dtype_bytes(c->dtype),
                                 .ones = (const int64_t(*)[TSR_MAX_DIMS])comm->ones,
                                 .scratch = comm->hierarchy->scratch};
    tsr_status local = TSR_OK;
    if (!all) {
        tsr_hierarchy_divide(comm, &call);
        TSR_TRY(tsr_hierarchy_reduce_scatter(comm, &call, call.receive, &local));
        return local;
    }
    void *const part = tsr_element(&call, call.receive, tsr_share_of(comm, &call, comm->rank).begin);
    tsr_hierarchy_divide_by_shares(comm, &call);
    TSR_TRY(tsr_hierarchy_reduce_scatter(comm, &call, part, &local));
    TSR_TRY(tsr_hierarchy_all_gather(comm, &call, part));
    return local;
}

tsr_status tsr_comm_call_native(tsr_comm *comm, const tsr_native_call *c)
{
    const tsr_comm_collectives *own = &comm->engine.collectives;
    TSR_TRY(tsr_comm_check_idle(comm));
    if (tsr_native_goes_by_nodes(comm, c->kind))
        return reduce_by_nodes(comm, c);
    switch (c->kind) {
    case TSR_NATIVE_ALL_GATHER:
        return own->all_gather(comm->self, c->send, c->receive, c->count, c->dtype, c->device, c->stream);
    case TSR_NATIVE_REDUCE_SCATTER:
        return own->reduce_scatter(comm->self, c->send, c->receive, c->count, c->dtype, c->op, c->device, c->stream);
    case TSR_NATIVE_ALL_REDUCE:
        return own->all_reduce(comm->self, c->send, c->receive, c->count, c->dtype, c->op, c->device, c->stream);
    case TSR_NATIVE_BROADCAST:
        return own->broadcast(comm->self, c->receive, c->count, c->dtype, c->root, c->device, c->stream);
    default:
        return tsr_status_set(TSR_ERROR_INTERNAL, "%d is not a collective", (int)c->kind);
    }
}
