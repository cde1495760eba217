
#include "comm/engines/mpi/calls/leftover.h"

#include "comm/core/clock.h"

#include <tessera/sys/memory.h>

/* How long a rank waits in MPI_Finalize() for other ranks to come there, and then for messages that
 * may be on their way. */
#define COME_MS  1000
#define DRAIN_MS 20

/* A longer message is data of a transfer that was given up; it is not received. */
#define MOST_BYTES 16384

/* Receives the messages that have come, and drops them. */
static void drain(MPI_Comm comm)
{
    char memory[MOST_BYTES];
    MPI_Status status;
    for (int some = 1, bytes = 0; some;) {
        if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &some, &status) != MPI_SUCCESS || !some ||
            MPI_Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0 || bytes > MOST_BYTES ||
            MPI_Recv(memory, MOST_BYTES, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE) !=
                MPI_SUCCESS)
            return;
    }
}

/* Waits for the barrier, and drains meanwhile. False if not all ranks came. */
static bool await_barrier(tsr_mpi_leftover *leftover, tsr_deadline deadline)
{
    int done = 0;
    for (int look = 0; !done; look++) {
        const bool last = tsr_deadline_passed(deadline);
        drain(leftover->comm);
        if (MPI_Test(&leftover->barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || (last && !done))
            return false;
        if (!done)
            tsr_pause(look);
    }
    return true;
}

static void settle_leftover(tsr_mpi_leftover *leftover)
{
    const tsr_deadline deadline = tsr_deadline_in(COME_MS);
    if (await_barrier(leftover, deadline) && leftover->again &&
        MPI_Ibarrier(leftover->comm, &leftover->barrier) == MPI_SUCCESS)
        (void)await_barrier(leftover, deadline);
    const tsr_deadline drained = tsr_deadline_in(DRAIN_MS);
    for (int look = 0; !tsr_deadline_passed(drained); look++) {
        drain(leftover->comm);
        tsr_pause(look);
    }
}

static void release_leftover(tsr_mpi_leftover *leftover)
{
    tsr_context *const context = leftover->context;
    tsr_release(context, leftover);
    tsr_context_destroy(context);
}

static int end_leftover(MPI_Comm self, int key, void *value, void *extra)
{
    (void)self;
    (void)key;
    (void)extra;
    settle_leftover(value);
    release_leftover(value);
    return MPI_SUCCESS;
}

/* MPI_Finalize() first of all deletes the attributes of MPI_COMM_SELF, which calls
 * end_leftover(). */
static bool attach(tsr_mpi_leftover *leftover)
{
    int key;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_leftover, &key, NULL) != MPI_SUCCESS)
        return false;
    const bool attached = MPI_Comm_set_attr(MPI_COMM_SELF, key, leftover) == MPI_SUCCESS;
    MPI_Comm_free_keyval(&key);
    return attached;
}

void tsr_mpi_leftover_keep(const tsr_mpi_leftover *leftover)
{
    tsr_context *context;
    void *memory;
    if (tsr_context_create(NULL, &context) != TSR_OK)
        return;
    if (tsr_allocate(context, sizeof *leftover, &memory) != TSR_OK) {
        tsr_context_destroy(context);
        return;
    }
    tsr_mpi_leftover *const kept = memory;
    *kept = *leftover;
    kept->context = context;
    if (!attach(kept))
        release_leftover(kept);
}
