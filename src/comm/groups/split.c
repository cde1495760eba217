#include "comm/groups/split.h"

#include "base/memory/memory.h"
#include "comm/collectives/collectives.h"
#include "comm/core/agree.h"
#include "comm/core/arrays.h"
#include "comm/core/comm.h"
#include "comm/core/lineage.h"
#include "comm/core/traits.h"

/* The engine splits; this rank's new handle is made around the result. A negative color leaves
 * `*out` as it is. */
static tsr_status split_locally(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    void *self = NULL;
    tsr_comm_table table = comm->engine.table;
    TSR_TRY(comm->engine.table.split(comm->self, color, key, &self));
    if (!self)
        return TSR_OK;
    if (comm->engine.table.tell_table)
        comm->engine.table.tell_table(self, &table);
    const tsr_status status = tsr_comm_create_with(comm->context, &table, self, comm, out);
    if (status != TSR_OK)
        comm->engine.table.destroy(self);
    return status;
}

/* Collective over `made`: its members learn one another's ranks in `parent`, which becomes its
 * parent. */
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

static tsr_status split_by_color(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    tsr_comm *made = NULL;
    tsr_status status = tsr_comm_agree_on(comm, "split", tsr_comm_check_out(out, "tsr_comm_split"));
    if (status == TSR_OK)
        status = tsr_comm_agree_on(comm, "split", split_off(comm, color, key, &made));
    if (status == TSR_OK && made)
        status = learn_ranks(comm, made);
    if (status != TSR_OK) {
        tsr_comm_destroy(made);
        return status;
    }
    *out = made;
    return TSR_OK;
}

/* Splits, and reserves comm->cursors, which executions over the group need. */
static tsr_status split_off_group(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    TSR_TRY(split_locally(comm, color, key, out));
    if (!*out)
        return TSR_OK;
    (*out)->outer = comm;
    return tsr_cursors_reserve(*out);
}

tsr_status tsr_comm_split_group(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    TSR_TRY(tsr_comm_agree_on(comm, "split", TSR_OK));
    tsr_comm *made = NULL;
    const tsr_status status = tsr_comm_agree_on(comm, "split", split_off_group(comm, color, key, &made));
    if (status != TSR_OK) {
        tsr_comm_destroy(made);
        return status;
    }
    *out = made;
    return TSR_OK;
}

tsr_status tsr_comm_split(tsr_comm *comm, int color, int key, tsr_comm **out)
{
    TSR_TRY(tsr_comm_check(comm, "tsr_comm_split"));
    if (!tsr_comm_can_split(comm))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "tsr_comm_split: this communicator of \"%s\" is lent and may not be split",
                              comm->engine.table.name);
    TSR_TRY(tsr_comm_enter(comm, "tsr_comm_split"));
    return tsr_comm_leave(comm, split_by_color(comm, color, key, out));
}
