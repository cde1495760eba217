
#include "comm/engines/mpi/calls/together.h"

#include "comm/core/clock.h"
#include "comm/engines/mpi/calls/error.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* The memory of one collective, which MPI uses until all ranks have come. */
typedef struct parcel {
    MPI_Request request;
    MPI_Comm duplicate;
    int64_t mine, least;
    char rows[]; /* what this rank brings, then what all ranks have brought */
} parcel;

/* `more`: bytes of `rows`. NULL: there is no memory. */
static parcel *make_parcel(const tsr_mpi_together *t, size_t more)
{
    void *memory;
    return tsr_allocate(t->context, sizeof(parcel) + more, &memory) == TSR_OK ? memory : NULL;
}

/* Frees the parcel, or, if the collective is not over, leaves it to MPI with its context. */
static void put_away(const tsr_mpi_together *t, parcel *p, bool over)
{
    if (over)
        tsr_release(t->context, p);
    else
        tsr_context_retain(t->context);
}

tsr_status tsr_mpi_say_late(const tsr_mpi_together *t)
{
    if (t->losses)
        t->losses->unmade = true;
    return tsr_status_set(TSR_ERROR_PEER, "%s: not all ranks came within %lld ms", t->call, (long long)t->timeout_ms);
}

/* Polls the request for `limit_ms` at most; 0: for ever. `*over`: MPI no longer uses the request
 * and its memory. */
static tsr_status wait_for_request(const tsr_mpi_together *t, MPI_Request *request, int result, const char *call,
                                   int64_t limit_ms, bool *over)
{
    const tsr_deadline deadline = tsr_deadline_in(limit_ms);
    int done = 0;
    *over = true;
    TSR_TRY(tsr_mpi_check(result, call));
    for (int look = 0; !tsr_deadline_passed(deadline); look++) {
        TSR_TRY(tsr_mpi_check(MPI_Test(request, &done, MPI_STATUS_IGNORE), call));
        if (done)
            return TSR_OK;
        tsr_pause(look);
    }
    *over = false;
    return tsr_mpi_say_late(t);
}

tsr_status tsr_mpi_duplicate(const tsr_mpi_together *t, MPI_Comm comm, MPI_Comm *out)
{
    parcel own, *const kept = make_parcel(t, 0), *const p = kept ? kept : &own;
    bool over;
    const int result = MPI_Comm_idup(comm, &p->duplicate, &p->request);
    const tsr_status status =
        wait_for_request(t, &p->request, result, "MPI_Comm_idup", kept ? t->timeout_ms : 0, &over);
    if (status == TSR_OK)
        *out = p->duplicate;
    put_away(t, kept, over);
    return status;
}

tsr_status tsr_mpi_least(const tsr_mpi_together *t, MPI_Comm comm, int64_t mine, int64_t *least)
{
    parcel own, *const kept = make_parcel(t, 0), *const p = kept ? kept : &own;
    bool over;
    p->mine = mine;
    const int result = MPI_Iallreduce(&p->mine, &p->least, 1, MPI_INT64_T, MPI_MIN, comm, &p->request);
    const tsr_status status =
        wait_for_request(t, &p->request, result, "MPI_Iallreduce", kept ? t->timeout_ms : 0, &over);
    if (status == TSR_OK)
        *least = p->least;
    put_away(t, kept, over);
    return status;
}

static tsr_status gather_at_once(const tsr_mpi_together *t, MPI_Comm comm, const void *mine, void *all, size_t bytes)
{
    MPI_Request request;
    bool over;
    const int result = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm, &request);
    return wait_for_request(t, &request, result, "MPI_Iallgather", 0, &over);
}

tsr_status tsr_mpi_gather_all(const tsr_mpi_together *t, MPI_Comm comm, const void *mine, void *all, size_t bytes)
{
    int ranks;
    bool over;
    TSR_TRY(tsr_mpi_check(MPI_Comm_size(comm, &ranks), "MPI_Comm_size"));
    parcel *const p = make_parcel(t, (1 + (size_t)ranks) * bytes);
    if (!p)
        return gather_at_once(t, comm, mine, all, bytes);
    memcpy(p->rows, mine, bytes);
    const int result =
        MPI_Iallgather(p->rows, (int)bytes, MPI_BYTE, p->rows + bytes, (int)bytes, MPI_BYTE, comm, &p->request);
    const tsr_status status = wait_for_request(t, &p->request, result, "MPI_Iallgather", t->timeout_ms, &over);
    if (status == TSR_OK)
        memcpy(all, p->rows + bytes, (size_t)ranks * bytes);
    put_away(t, p, over);
    return status;
}
