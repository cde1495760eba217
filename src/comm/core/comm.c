#include "comm/core/comm.h"

#include "base/context.h"
#include "base/memory/memory.h"
#include "base/settings.h"
#include "comm/core/agree.h"
#include "comm/core/arrays.h"
#include "comm/core/call.h"
#include "comm/core/hierarchy.h"
#include "comm/core/late.h"
#include "comm/core/lineage.h"
#include "comm/core/traits.h"
#include "device/host/choose.h"

#include <string.h>

static tsr_status ask_rank(tsr_comm *comm, void *self)
{
    const tsr_comm_table *table = &comm->engine.table;
    comm->self = self;
    comm->rank = table->rank(self);
    comm->size = table->ranks(self);
    comm->whole.group = (tsr_group){.comm = comm, .count = comm->size};
    if (comm->size < 1 || comm->rank < 0 || comm->rank >= comm->size)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_create_from_table: \"%s\" says that it is rank %d of %d",
                              table->name, comm->rank, comm->size);
    return TSR_OK;
}

/* Shares the kernel choices of `parent`, or makes new ones if it is NULL. */
static tsr_status make_choices(tsr_comm *comm, const tsr_comm *parent)
{
    comm->choices = tsr_choices_retain(parent ? parent->choices : NULL);
    if (!parent)
        TSR_TRY(tsr_kernel_choices_create(comm->context, &comm->choices));
    comm->host = tsr_device_resolve(comm->context, tsr_device_host());
    comm->host.self = comm->whole.group.choices = comm->choices;
    return TSR_OK;
}

static tsr_status make_from_table(tsr_context *context, const tsr_comm_table *table, void *self, const tsr_comm *parent,
                                  tsr_comm **out)
{
    tsr_comm *comm;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof *comm, (void **)&comm));
    comm->references = 1;
    comm->context = context;
    tsr_status status = tsr_table_read(table, &comm->engine);
    if (status == TSR_OK)
        status = ask_rank(comm, self);
    if (status == TSR_OK)
        status = make_choices(comm, parent);
    if (status == TSR_OK)
        status = tsr_arrays_create(comm);
    if (status == TSR_OK)
        status = tsr_hierarchy_create(comm, &comm->hierarchy);
    if (status == TSR_OK && comm->hierarchy)
        status = tsr_terms_reserve(comm, true);
    if (status != TSR_OK) {
        tsr_hierarchy_destroy(context, comm->hierarchy);
        tsr_arrays_destroy(comm);
        tsr_kernel_choices_destroy(comm->choices);
        tsr_release(context, comm);
        return status;
    }
    if (comm->engine.table.tell_late)
        comm->engine.table.tell_late(self, tsr_comm_tell_late, comm);
    *out = comm;
    return TSR_OK;
}

tsr_status tsr_comm_create_with(tsr_context *context, const tsr_comm_table *table, void *self, const tsr_comm *parent,
                                tsr_comm **out)
{
    tsr_context *held;
    TSR_TRY(tsr_context_resolve(context, &held));
    const tsr_status status = make_from_table(held, table, self, parent, out);
    if (status != TSR_OK)
        tsr_context_destroy(held);
    return status;
}

tsr_status tsr_comm_create_from_table(tsr_context *context, const tsr_comm_table *table, void *self, tsr_comm **out)
{
    if (!table || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_create_from_table: %s is NULL", table ? "out" : "table");
    return tsr_comm_create_with(context, table, self, NULL, out);
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
        tsr_kernel_choices_destroy(comm->choices);
        tsr_release(context, comm->ranks_in_parent);
        tsr_release(context, comm);
        tsr_context_destroy(context);
        comm = parent;
    }
}

/* An engine with memory of its own is only left here: tensors may still use that memory, so it is
 * destroyed with the last reference. */
static void leave_engine(tsr_comm *comm)
{
    if (comm->engine.memory.leave) {
        comm->engine.memory.leave(comm->self);
        return;
    }
    comm->engine.table.destroy(comm->self);
    comm->self = NULL;
}

void tsr_group_release_slot(tsr_comm *comm, tsr_group *group)
{
    if (group->keeper)
        group->keeper->release(comm, group->slot);
}

void tsr_group_free(tsr_comm *comm, tsr_group_entry *entry)
{
    if (!entry)
        return;
    tsr_comm_destroy(entry->group.comm);
    tsr_group_release_slot(comm, &entry->group);
    tsr_release(comm->context, entry);
}

static void destroy_groups(tsr_comm *comm)
{
    while (comm->groups) {
        tsr_group_entry *entry = comm->groups;
        comm->groups = entry->next;
        tsr_group_free(comm, entry);
    }
    tsr_group_release_slot(comm, &comm->whole.group);
}

void tsr_comm_destroy(tsr_comm *comm)
{
    if (!comm || !tsr_comm_is_open(comm) || !tsr_comm_close(comm))
        return;
    /* First of all: peers may still read the content of the groups' slots. */
    if (tsr_comm_is_direct(comm))
        tsr_call_abandon(comm);
    destroy_groups(comm);
    if (comm->drop_kept)
        comm->drop_kept(comm->kept);
    comm->kept = NULL;
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

const tsr_kernel_choices *tsr_comm_kernel_choices(const tsr_comm *comm)
{
    return comm->choices;
}

void *tsr_comm_kept(const tsr_comm *comm)
{
    return comm->kept;
}

void tsr_comm_keep(tsr_comm *comm, void *kept, void (*drop)(void *kept))
{
    comm->kept = kept;
    comm->drop_kept = drop;
}

tsr_status tsr_comm_check(const tsr_comm *comm, const char *call)
{
    return comm ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
}

tsr_status tsr_comm_check_out(const void *out, const char *call)
{
    return out ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", call);
}

static tsr_status barrier(tsr_comm *comm)
{
    if (tsr_comm_is_direct(comm) || tsr_comm_is_checked(comm))
        return tsr_comm_agree_on(comm, "barrier", TSR_OK);
    TSR_TRY(tsr_comm_check_idle(comm));
    return comm->engine.messages.barrier(comm->self);
}

/* `local` is the caller's, whose code may have worded no sentence: then this thread's last one is
 * of another matter. */
static void word_failure(tsr_status local)
{
    tsr_kept_sentence own;
    tsr_status_keep_returned(&own, local);
    tsr_status_restore(&own, local);
}

tsr_status tsr_comm_share_status(tsr_comm *comm, const char *call, tsr_status local)
{
    const char *const name = call ? call : "tsr_comm_share_status";
    TSR_TRY(tsr_comm_check(comm, name));
    TSR_TRY(tsr_comm_enter(comm, name));
    if (local != TSR_OK)
        word_failure(local);
    return tsr_comm_leave(comm, tsr_comm_agree_on(comm, name, local));
}

tsr_status tsr_comm_barrier(tsr_comm *comm)
{
    TSR_TRY(tsr_comm_check(comm, "tsr_comm_barrier"));
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

tsr_status tsr_comm_wait_within(tsr_comm *comm, tsr_stream stream)
{
    return wait_for_stream(comm, stream, 0);
}

tsr_status tsr_comm_wait(tsr_comm *comm, tsr_stream stream, int64_t timeout_ms)
{
    TSR_TRY(tsr_comm_check(comm, "tsr_comm_wait"));
    if (timeout_ms < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_wait: timeout_ms is %lld; 0 waits for ever",
                              (long long)timeout_ms);
    if (stream && tsr_comm_shares_some(comm))
        return tsr_refuse_host("tsr_comm_wait", tsr_device_host(), stream);
    TSR_TRY(tsr_comm_enter(comm, "tsr_comm_wait"));
    return tsr_comm_leave(comm, wait_for_stream(comm, stream, timeout_ms));
}

static tsr_status alloc_locally(tsr_comm *comm, size_t bytes, void **out)
{
    return comm->engine.memory.alloc ? comm->engine.memory.alloc(comm->self, bytes, out)
                                     : tsr_allocate_data(comm->context, bytes, out);
}

tsr_status tsr_comm_alloc_shared(tsr_comm *comm, size_t bytes, void **out)
{
    TSR_TRY(tsr_comm_check_open(comm, "memory"));
    return comm->engine.memory.alloc(comm->self, bytes, out);
}

static tsr_status alloc_on_all(tsr_comm *comm, size_t bytes, void **out)
{
    TSR_TRY(tsr_comm_agree_on(comm, "alloc", tsr_comm_check_out(out, "tsr_comm_alloc")));
    void *memory = NULL;
    const tsr_status local = alloc_locally(comm, bytes, &memory);
    const tsr_status status = tsr_comm_agree_on(comm, "alloc", local);
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
    TSR_TRY(tsr_comm_check(comm, "tsr_comm_alloc"));
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
