#include "comm/native.h"

#include "comm/object.h"

static bool reduces(const tsr_comm *comm, tsr_dtype dtype, tsr_reduce_op op)
{
    return !comm->table.reduces || comm->table.reduces(comm->self, dtype, op);
}

bool tsr_comm_has_native(const tsr_comm *comm, tsr_native kind, tsr_dtype dtype, tsr_reduce_op op)
{
    if (tsr_comm_is_direct(comm))
        return false;
    switch (kind) {
    case TSR_NATIVE_ALL_GATHER:
        return comm->table.all_gather;
    case TSR_NATIVE_REDUCE_SCATTER:
        return comm->table.reduce_scatter && reduces(comm, dtype, op);
    case TSR_NATIVE_ALL_REDUCE:
        return comm->table.all_reduce && reduces(comm, dtype, op);
    case TSR_NATIVE_BROADCAST:
        return comm->table.broadcast;
    default:
        return false;
    }
}

bool tsr_comm_has_natives(const tsr_comm *comm)
{
    const tsr_comm_table *table = &comm->table;
    return !tsr_comm_is_direct(comm) && (table->all_gather || table->reduce_scatter || table->all_reduce || table->broadcast);
}

tsr_status tsr_native_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able, tsr_call_describe *describe,
                            const void *arg)
{
    return tsr_message_agree(comm, fingerprint, local, able, describe, arg);
}

tsr_status tsr_comm_call_native(tsr_comm *comm, const tsr_native_call *c)
{
    const tsr_comm_table *table = &comm->table;
    TSR_TRY(tsr_comm_check_idle(comm));
    switch (c->kind) {
    case TSR_NATIVE_ALL_GATHER:
        return table->all_gather(comm->self, c->send, c->receive, c->count, c->dtype, c->device, c->stream);
    case TSR_NATIVE_REDUCE_SCATTER:
        return table->reduce_scatter(comm->self, c->send, c->receive, c->count, c->dtype, c->op, c->device, c->stream);
    case TSR_NATIVE_ALL_REDUCE:
        return table->all_reduce(comm->self, c->send, c->receive, c->count, c->dtype, c->op, c->device, c->stream);
    case TSR_NATIVE_BROADCAST:
        return table->broadcast(comm->self, c->receive, c->count, c->dtype, c->root, c->device, c->stream);
    default:
        return tsr_status_set(TSR_ERROR_INTERNAL, "collective %d is none", (int)c->kind);
    }
}

bool tsr_native_is_exact(tsr_dtype dtype)
{
    const tsr_dtype_class kind = tsr_dtype_get(dtype)->kind;
    return kind == TSR_CLASS_SIGNED || kind == TSR_CLASS_UNSIGNED || kind == TSR_CLASS_BOOL;
}
