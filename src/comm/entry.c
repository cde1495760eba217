#include "comm/entry.h"

#include "comm/clock.h"
#include "comm/object.h"

/* In which a call ends that was aborted. */
#define PATIENCE_MS 10000

/* What the mark holds once the handle is destroyed: compared by address. */
static const char destroyed[] = "tsr_comm_destroy";

tsr_status tsr_comm_check_open(const tsr_comm *comm, const char *call)
{
    if (tsr_comm_is_open(comm))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_STATE,
                          "%s: the communicator (rank %d of %d, \"%s\") was destroyed: what lies over it can only be read and destroyed",
                          call, comm->rank, comm->size, comm->table.name);
}

tsr_status tsr_comm_refuse_entry(const tsr_comm *comm, const char *call, const char *inside)
{
    TSR_TRY(tsr_comm_check_open(comm, call));
    return tsr_status_set(TSR_ERROR_STATE,
                          "%s: rank %d of %d is in %s() already, which another thread called with this handle: a handle is one rank's, and "
                          "takes one call at a time",
                          call, comm->rank, comm->size, inside);
}

static bool close_if_idle(tsr_comm *comm)
{
    const char *idle = NULL;
    if (!__atomic_compare_exchange_n(&comm->mark.inside, &idle, destroyed, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&comm->mark.closed, true, __ATOMIC_RELAXED);
    return true;
}

bool tsr_comm_close(tsr_comm *comm)
{
    if (close_if_idle(comm))
        return true;
    const tsr_deadline deadline = tsr_deadline_in(PATIENCE_MS);
    comm->table.abort(comm->self);
    for (int look = 0; !tsr_deadline_passed(deadline); look++) {
        if (close_if_idle(comm))
            return true;
        tsr_pause(look);
    }
    return false;
}

void tsr_comm_forget_call(tsr_comm *comm)
{
    tsr_comm *outermost = comm;
    while (outermost->outer)
        outermost = outermost->outer;
    __atomic_store_n(&outermost->mark.inside, NULL, __ATOMIC_RELEASE);
}

bool tsr_comm_is_open(const tsr_comm *comm)
{
    return !__atomic_load_n(&comm->mark.closed, __ATOMIC_RELAXED);
}
