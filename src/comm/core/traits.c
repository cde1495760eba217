#include "comm/core/traits.h"

#include "comm/core/object.h"

bool tsr_comm_is_direct(const tsr_comm *comm)
{
    return comm->slots != NULL;
}

bool tsr_comm_shares_all(const tsr_comm *comm)
{
    return tsr_comm_is_direct(comm) && !comm->engine.memory.shares;
}

bool tsr_comm_shares_some(const tsr_comm *comm)
{
    return comm->engine.memory.shares != NULL;
}

bool tsr_comm_shares(const tsr_comm *comm, const void *memory, size_t bytes)
{
    return !comm->engine.memory.shares || comm->engine.memory.shares(comm->self, memory, bytes);
}

bool tsr_comm_can_split(const tsr_comm *comm)
{
    return comm->engine.table.split;
}

bool tsr_comm_is_checked(const tsr_comm *comm)
{
    return !(comm->engine.table.flags & TSR_COMM_UNCHECKED);
}

bool tsr_comm_has_direct_nodes(const tsr_comm *comm)
{
    return !tsr_comm_is_direct(comm) && tsr_comm_can_split(comm) && comm->engine.nodes.direct;
}

bool tsr_comm_overlaps(const tsr_comm *comm)
{
    return !tsr_comm_is_direct(comm) && comm->engine.messages.start;
}

bool tsr_comm_has_streams(const tsr_comm *comm)
{
    return comm->engine.table.wait;
}

static bool engine_reduces(const tsr_comm *comm, tsr_dtype dtype, tsr_reduce_op op)
{
    return !comm->engine.collectives.reduces || comm->engine.collectives.reduces(comm->self, dtype, op);
}

/* The sum of a node is stored in the dtype until it is added to those of other nodes. Narrow floats
 * would round, and overflow, at that point; a reduction in one go sums in wide accumulators. */
static bool reduces_by_nodes(const tsr_comm *comm, tsr_dtype dtype, tsr_reduce_op op)
{
    const bool is_narrow = tsr_dtype_get(dtype)->kind == TSR_CLASS_FLOAT && tsr_dtype_bytes(dtype) < sizeof(float);
    return comm->hierarchy && (!is_narrow || op == TSR_MIN || op == TSR_MAX);
}

bool tsr_comm_has_native(const tsr_comm *comm, tsr_native kind, tsr_dtype dtype, tsr_reduce_op op)
{
    const tsr_comm_collectives *own = &comm->engine.collectives;
    if (tsr_comm_is_direct(comm))
        return false;
    switch (kind) {
    case TSR_NATIVE_ALL_GATHER:
        return own->all_gather;
    case TSR_NATIVE_REDUCE_SCATTER:
        return own->reduce_scatter ? engine_reduces(comm, dtype, op) : reduces_by_nodes(comm, dtype, op);
    case TSR_NATIVE_ALL_REDUCE:
        return own->all_reduce ? engine_reduces(comm, dtype, op) : reduces_by_nodes(comm, dtype, op);
    case TSR_NATIVE_BROADCAST:
        return own->broadcast;
    default:
        return false;
    }
}

bool tsr_comm_has_natives(const tsr_comm *comm)
{
    const tsr_comm_collectives *own = &comm->engine.collectives;
    return !tsr_comm_is_direct(comm) &&
           (own->all_gather || own->reduce_scatter || own->all_reduce || own->broadcast || comm->hierarchy);
}

bool tsr_native_goes_by_nodes(const tsr_comm *comm, tsr_native kind)
{
    return comm->hierarchy && ((kind == TSR_NATIVE_REDUCE_SCATTER && !comm->engine.collectives.reduce_scatter) ||
                               (kind == TSR_NATIVE_ALL_REDUCE && !comm->engine.collectives.all_reduce));
}
