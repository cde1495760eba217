#include "base/context.h"
#include "base/hash.h"
#include "base/memory/memory.h"
#include "comm/core/arrays.h"
#include "comm/core/hierarchy.h"
#include "comm/core/late.h"
#include "comm/core/lineage.h"
#include "comm/core/traits.h"
#include <string.h>

static tsr_status ask_rank(tsr_comm *comm, void *self)
{
    const tsr_comm_table *table = &comm->engine.table;
    comm->self = self;
    comm->rank = table->rank(self);
    comm->size = table->ranks(self);
    comm->whole.group = (tsr_group){.comm = comm, .count = comm->size, .shelf_bytes = comm->engine.memory.shares ? 0 : SIZE_MAX};
    if (comm->size < 1 || comm->rank < 0 || comm->rank >= comm->size)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_create_from_table: \"%s\" says that it is rank %d of %d", table->name,
                              comm->rank, comm->size);
    return TSR_OK;
}

static tsr_status make(tsr_context *context, const tsr_comm_table *table, void *self, tsr_comm **out)
{
    tsr_comm *comm;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof *comm, (void **)&comm));
    comm->references = 1;
    comm->context = context;
    tsr_status status = tsr_table_read(table, &comm->engine);
    if (status == TSR_OK)
        status = ask_rank(comm, self);
    if (status == TSR_OK)
        status = tsr_arrays_create(comm);
    if (status == TSR_OK)
        status = tsr_hierarchy_create(comm, &comm->hierarchy);
    if (status == TSR_OK && comm->hierarchy)
        status = tsr_terms_reserve(comm, true);
    if (status != TSR_OK) {
        tsr_hierarchy_destroy(context, comm->hierarchy);
        tsr_arrays_destroy(comm);
        tsr_release(context, comm);
        return status;
    }
    if (comm->engine.table.tell_late)
        comm->engine.table.tell_late(self, tsr_comm_tell_late, comm);
    *out = comm;
    return TSR_OK;
}

tsr_status tsr_comm_create_from_table(tsr_context *context, const tsr_comm_table *table, void *self, tsr_comm **out)
{
    if (!table || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_create_from_table: %s is NULL", table ? "out" : "table");
    tsr_context *held;
    TSR_TRY(tsr_context_resolve(context, &held));
    const tsr_status status = make(held, table, self, out);
    if (status != TSR_OK)
        tsr_context_destroy(held);
    return status;
}

tsr_comm *tsr_comm_retain(tsr_comm *comm)
{
    if (comm)
        tsr_references_add(&comm->references);
    return comm;
}

void tsr_comm_release(tsr_comm *comm)
{
    while (comm && tsr_references_drop(&comm->references)) {
        tsr_context *const context = comm->context;
        tsr_comm *const parent = comm->parent;
        if (comm->self)
            comm->engine.table.destroy(comm->self);
        tsr_release(context, comm->ranks_in_parent);
        tsr_release(context, comm);
        tsr_context_destroy(context);
        comm = parent;
    }
}

/* What an engine has handed out to meshes' tensors stays until the last of them goes. */
static void leave_engine(tsr_comm *comm)
{
    if (comm->engine.memory.leave) {
        comm->engine.memory.leave(comm->self);
        return;
    }
    comm->engine.table.destroy(comm->self);
    comm->self = NULL;
}

void tsr_comm_destroy(tsr_comm *comm)
{
    if (!comm || !tsr_comm_is_open(comm) || !tsr_comm_close(comm))
        return;
    /* Peers may be reading what the groups hold. */
    if (tsr_comm_is_direct(comm))
        tsr_call_abandon(comm);
    tsr_groups_destroy(comm);
    tsr_orders_destroy(comm);
    leave_engine(comm);
    tsr_hierarchy_destroy(comm->context, comm->hierarchy);
    comm->hierarchy = NULL;
    tsr_arrays_destroy(comm);
    tsr_comm_release(comm);
}

int tsr_comm_rank(const tsr_comm *comm)
{
    return comm->rank;
}

int tsr_comm_size(const tsr_comm *comm)
{
    return comm->size;
}

const char *tsr_comm_engine(const tsr_comm *comm)
{
    return comm->engine.table.name;
}

int tsr_comm_node_of(const tsr_comm *comm, int rank)
{
    return comm->engine.nodes.node_of && tsr_comm_is_open(comm) ? comm->engine.nodes.node_of(comm->self, rank) : -1;
}

tsr_context *tsr_comm_context(const tsr_comm *comm)
{
    return comm->context;
}

static void describe_name(const void *arg, char *text, size_t capacity)
{
    if (capacity == 0)
        return;
    const size_t length = strnlen(arg, capacity - 1);
    memcpy(text, arg, length);
    text[length] = '\0';
}

static tsr_status agree(tsr_comm *comm, const char *name, tsr_status local)
{
    return tsr_comm_agree(comm, tsr_hash_text(TSR_HASH_SEED, name), local, describe_name, name);
}

static tsr_status check(const tsr_comm *comm, const char *call)
{
    return comm ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
}

/* The engine's part and the object around it, on this rank. */
static tsr_status split_locally(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    void *self = NULL;
    tsr_comm_table table = comm->engine.table;
    TSR_TRY(comm->engine.table.split(comm->self, color, key, &self));
    if (!self)
        return TSR_OK;
    if (comm->engine.table.tell_table)
        comm->engine.table.tell_table(self, &table);
    const tsr_status status = tsr_comm_create_from_table(comm->context, &table, self, out);
    if (status != TSR_OK)
        comm->engine.table.destroy(self);
    return status;
}

/* Who its members are in the communicator that it was split off. */
static tsr_status learn_ranks(tsr_comm *parent, tsr_comm *made)
{
    TSR_TRY(tsr_gather_bytes(made, &parent->rank, made->ranks_in_parent, sizeof parent->rank));
    made->parent = tsr_comm_retain(parent);
    tsr_comm_be_numbered(made);
    return TSR_OK;
}

static tsr_status split_off(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    TSR_TRY(split_locally(comm, color, key, out));
    if (!*out)
        return TSR_OK;
    void *ranks;
    TSR_TRY(tsr_allocate_array(comm->context, (size_t)(*out)->size, sizeof(int), &ranks));
    (*out)->ranks_in_parent = ranks;
    return TSR_OK;
}

/* A rank that has no place for the result takes part as failed, so that its peers are told. */
static tsr_status check_out(const void *out, const char *call)
{
    return out ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", call);
}

static tsr_status split(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    tsr_comm *made = NULL;
    tsr_status status = agree(comm, "split", check_out(out, "tsr_comm_split"));
    if (status == TSR_OK)
        status = agree(comm, "split", split_off(comm, color, key, &made));
    if (status == TSR_OK && made)
        status = learn_ranks(comm, made);
    if (status != TSR_OK) {
        tsr_comm_destroy(made);
        return status;
    }
    *out = made;
    return TSR_OK;
}

/* With what executions over the group need. */
static tsr_status split_off_group(tsr_comm *comm, int color, tsr_comm **out)
{
    TSR_TRY(split_locally(comm, color, comm->rank, out));
    if (!*out)
        return TSR_OK;
    (*out)->outer = comm;
    return tsr_cursors_reserve(*out);
}

tsr_status tsr_comm_split_group(tsr_comm *comm, int color, tsr_comm **out)
{
    TSR_TRY(agree(comm, "split", TSR_OK));
    tsr_comm *made = NULL;
    const tsr_status status = agree(comm, "split", split_off_group(comm, color, &made));
    if (status != TSR_OK) {
        tsr_comm_destroy(made);
        return status;
    }
    *out = made;
    return TSR_OK;
}

tsr_status tsr_comm_split(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    TSR_TRY(check(comm, "tsr_comm_split"));
    if (!tsr_comm_can_split(comm))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "tsr_comm_split: this communicator of \"%s\" is lent and may not be split",
                              comm->engine.table.name);
    TSR_TRY(tsr_comm_enter(comm, "tsr_comm_split"));
    return tsr_comm_leave(comm, split(comm, color, key, out));
}

static tsr_status barrier(tsr_comm *comm)
{
    if (tsr_comm_is_direct(comm) || tsr_comm_is_checked(comm))
        return agree(comm, "barrier", TSR_OK);
    TSR_TRY(tsr_comm_check_idle(comm));
    return comm->engine.messages.barrier(comm->self);
}

tsr_status tsr_comm_barrier(tsr_comm *comm)
{
    TSR_TRY(check(comm, "tsr_comm_barrier"));
    TSR_TRY(tsr_comm_enter(comm, "tsr_comm_barrier"));
    return tsr_comm_leave(comm, barrier(comm));
}

void tsr_comm_abort(tsr_comm *comm)
{
    if (comm && tsr_comm_is_open(comm))
        comm->engine.table.abort(comm->self);
}

static tsr_status wait_for_stream(tsr_comm *comm, tsr_stream stream, int64_t timeout_ms)
{
    return comm->engine.table.wait ? comm->engine.table.wait(comm->self, stream, timeout_ms) : TSR_OK;
}

tsr_status tsr_comm_wait(tsr_comm *comm, tsr_stream stream, int64_t timeout_ms)
{
    TSR_TRY(check(comm, "tsr_comm_wait"));
    if (timeout_ms < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_wait: timeout_ms is %lld; 0 waits for ever", (long long)timeout_ms);
    if (stream && tsr_comm_shares_some(comm))
        return tsr_refuse_host("tsr_comm_wait", tsr_device_host(), stream);
    TSR_TRY(tsr_comm_enter(comm, "tsr_comm_wait"));
    return tsr_comm_leave(comm, wait_for_stream(comm, stream, timeout_ms));
}

static tsr_status alloc_locally(tsr_comm *comm, size_t bytes, void **out)
{
    return comm->engine.memory.alloc ? comm->engine.memory.alloc(comm->self, bytes, out) : tsr_allocate_data(comm->context, bytes, out);
}

tsr_status tsr_comm_alloc_shared(tsr_comm *comm, size_t bytes, void **out)
{
    TSR_TRY(tsr_comm_check_open(comm, "memory"));
    return comm->engine.memory.alloc(comm->self, bytes, out);
}

static tsr_status alloc_on_all(tsr_comm *comm, size_t bytes, void **out)
{
    TSR_TRY(agree(comm, "alloc", check_out(out, "tsr_comm_alloc")));
    void *memory = NULL;
    const tsr_status local = alloc_locally(comm, bytes, &memory);
    const tsr_status status = agree(comm, "alloc", local);
    if (status != TSR_OK) {
        if (local == TSR_OK)
            tsr_comm_free(comm, memory, bytes);
        return status;
    }
    *out = memory;
    return TSR_OK;
}

tsr_status tsr_comm_alloc(tsr_comm *comm, size_t bytes, void **out)
{
    TSR_TRY(check(comm, "tsr_comm_alloc"));
    TSR_TRY(tsr_comm_enter(comm, "tsr_comm_alloc"));
    return tsr_comm_leave(comm, alloc_on_all(comm, bytes, out));
}

void tsr_comm_free(tsr_comm *comm, void *memory, size_t bytes)
{
    if (!comm || !memory)
        return;
    if (comm->engine.memory.free)
        comm->engine.memory.free(comm->self, memory, bytes);
    else
        tsr_release(comm->context, memory);
}
