#include "comm/core/entry.h"

#include "comm/core/clock.h"
#include "comm/core/object.h"

#include <tessera/sys/log.h>

/* How long tsr_comm_close() waits for a call to end after it was aborted. */
#define PATIENCE_MS 10000

/* `inside` and `held` of a destroyed handle's mark; compared by address. */
static const char destroyed[] = "tsr_comm_destroy";

static tsr_status refuse_null(const char *call)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
}

static tsr_status refuse_destroyed(const tsr_comm *comm, const char *call)
{
    return tsr_status_set(
        TSR_ERROR_STATE,
        "%s: the communicator (rank %d of %d, \"%s\") was destroyed: what lies over it can only be read and destroyed",
        call, comm->rank, comm->size, comm->engine.table.name);
}

tsr_status tsr_comm_check_open(const tsr_comm *comm, const char *call)
{
    if (!comm)
        return refuse_null(call);
    return tsr_comm_is_open(comm) ? TSR_OK : refuse_destroyed(comm, call);
}

static bool is_here(const uintptr_t *thread)
{
    return __atomic_load_n(thread, __ATOMIC_RELAXED) == tsr_this_thread();
}

static bool is_called_here(const tsr_comm_mark *mark)
{
    return is_here(&mark->caller) || is_here(&mark->holder);
}

const char *tsr_comm_call_in_flight(const tsr_comm *comm)
{
    const char *const held = __atomic_load_n(&comm->mark.held, __ATOMIC_RELAXED);
    return held ? held : __atomic_load_n(&comm->mark.inside, __ATOMIC_RELAXED);
}

/* True if this thread holds the handle and has no call in flight on it; then no other thread can
 * get in. A former holder has cleared its id itself, so it cannot read it there again. */
static bool is_held_here(const tsr_comm *comm, const char *inside)
{
    const char *const held = __atomic_load_n(&comm->mark.held, __ATOMIC_RELAXED);
    return inside == held && is_here(&comm->mark.holder);
}

/* `inside` is what the caller's compare-and-swap saw; it tells of a destroy that has not set the
 * mark's other fields yet, too. */
static tsr_status refuse_call(const tsr_comm *comm, const char *call, const char *inside)
{
    if (inside == destroyed)
        return refuse_destroyed(comm, call);
    const char *const held = __atomic_load_n(&comm->mark.held, __ATOMIC_RELAXED);
    return tsr_status_set(TSR_ERROR_STATE,
                          "%s: rank %d of %d is in %s() already, which another thread called with this handle: a "
                          "handle is one rank's, and "
                          "takes one call at a time",
                          call, comm->rank, comm->size, held ? held : inside);
}

tsr_status tsr_comm_enter_taken(tsr_comm *comm, const char *call, const char *inside)
{
    if (!is_held_here(comm, inside))
        return refuse_call(comm, call, inside);
    __atomic_store_n(&comm->mark.inside, call, __ATOMIC_RELAXED);
    __atomic_store_n(&comm->mark.caller, tsr_this_thread(), __ATOMIC_RELAXED);
    return TSR_OK;
}

tsr_status tsr_comm_hold(tsr_comm *comm, const char *call)
{
    if (!comm)
        return refuse_null(call);
    tsr_comm_mark *const mark = &comm->mark;
    const char *inside = NULL;
    if (!__atomic_compare_exchange_n(&mark->inside, &inside, call, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (!is_held_here(comm, inside))
            return refuse_call(comm, call, inside);
        mark->holds++;
        return TSR_OK;
    }
    mark->holds = 1;
    __atomic_store_n(&mark->holder, tsr_this_thread(), __ATOMIC_RELAXED);
    __atomic_store_n(&mark->held, call, __ATOMIC_RELAXED);
    return TSR_OK;
}

static void let_go(tsr_comm_mark *mark)
{
    mark->holds = 0;
    __atomic_store_n(&mark->caller, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->holder, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->held, NULL, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->inside, NULL, __ATOMIC_RELEASE);
}

tsr_status tsr_comm_let_go(tsr_comm *comm, tsr_status status)
{
    if (!comm)
        return refuse_null("tsr_comm_let_go");
    if (!is_held_here(comm, __atomic_load_n(&comm->mark.inside, __ATOMIC_RELAXED)))
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_comm_let_go: this thread does not hold the communicator (rank %d of %d)", comm->rank,
                              comm->size);
    if (comm->mark.holds > 1)
        comm->mark.holds--;
    else
        let_go(&comm->mark);
    return status;
}

static bool close_if_idle(tsr_comm *comm)
{
    const char *idle = NULL;
    if (!__atomic_compare_exchange_n(&comm->mark.inside, &idle, destroyed, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    /* tsr_comm_leave() would store `held` to `inside`: this way nothing opens the mark again. */
    __atomic_store_n(&comm->mark.held, destroyed, __ATOMIC_RELAXED);
    __atomic_store_n(&comm->mark.closed, true, __ATOMIC_RELAXED);
    return true;
}

/* Tells the log why a handle stays open. Returns false. */
static bool keep_open(const tsr_comm *comm, const char *why)
{
    const char *const inside = tsr_comm_call_in_flight(comm);
    tsr_log(comm->context, TSR_LOG_ERROR, "tsr_comm_destroy: rank %d of %d is in %s(), %s: the handle stays as it is",
            comm->rank, comm->size, inside ? inside : "a call", why);
    return false;
}

bool tsr_comm_close(tsr_comm *comm)
{
    if (close_if_idle(comm))
        return true;
    if (is_called_here(&comm->mark))
        return keep_open(comm, "which this very thread called, and has to end first");
    const tsr_deadline deadline = tsr_deadline_in(PATIENCE_MS);
    comm->engine.table.abort(comm->self);
    for (int look = 0; !tsr_deadline_passed(deadline); look++) {
        if (close_if_idle(comm))
            return true;
        tsr_pause(look);
    }
    return keep_open(comm, "which another thread called, and which has not ended in 10 s since it was aborted");
}

void tsr_comm_forget_call(tsr_comm *comm)
{
    tsr_comm *outermost = comm;
    while (outermost->outer)
        outermost = outermost->outer;
    if (is_called_here(&outermost->mark))
        let_go(&outermost->mark);
}

bool tsr_comm_is_open(const tsr_comm *comm)
{
    return !__atomic_load_n(&comm->mark.closed, __ATOMIC_RELAXED);
}
