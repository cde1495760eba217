#include "comm/engines/mpi/notice.h"

#include "comm/engines/mpi/world.h"

/* The one tag of the first group that no kind of message uses. */
#define TAG ((int)TSR_MPI_WAYS)

_Static_assert((int)TSR_MPI_WAYS < TSR_MPI_TAGS, "notices have a tag that no message has");

typedef enum news { ABORTED, LEFT } news;

/* The buffers of sends; static, since MPI may read them after the world is freed. */
static const int notices[] = {ABORTED, LEFT};

bool tsr_mpi_may_speak(void)
{
    int level = MPI_THREAD_SINGLE, is_main = 0, finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized)
        return false;
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    return level == MPI_THREAD_MULTIPLE || (level <= MPI_THREAD_FUNNELED && is_main);
}

/* The sends are not waited for: a rank that is gone never receives them. */
static void tell_news(const tsr_mpi_world *world, news what)
{
    MPI_Request request;
    for (int rank = 0; rank < world->ranks; rank++)
        if (rank != world->rank &&
            MPI_Isend(&notices[what], 1, MPI_INT, rank, TAG, world->comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
}

void tsr_mpi_notice_abort(tsr_mpi_world *world)
{
    if (world->apart && tsr_mpi_world_aborter(world) == world->rank && !atomic_exchange(&world->told, true))
        tell_news(world, ABORTED);
}

void tsr_mpi_notice_departure(const tsr_mpi_world *world)
{
    if (world->apart)
        tell_news(world, LEFT);
}

static void take_notice(tsr_mpi_world *world, MPI_Message *message, int from)
{
    int what = ABORTED;
    if (MPI_Mrecv(&what, 1, MPI_INT, message, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return;
    if (what == ABORTED)
        tsr_mpi_world_abort(world, from);
    else
        atomic_store(&world->gone[from], atomic_fetch_add(&world->leavers, 1) + 1);
}

void tsr_mpi_notice_hear(tsr_mpi_world *world)
{
    MPI_Message message;
    MPI_Status from;
    for (int some = world->apart; some;) {
        if (MPI_Improbe(MPI_ANY_SOURCE, TAG, world->comm, &some, &message, &from) != MPI_SUCCESS)
            return;
        if (some)
            take_notice(world, &message, from.MPI_SOURCE);
    }
}

int tsr_mpi_notice_gone(const tsr_mpi_handle *handle)
{
    const tsr_mpi_world *world = handle->world;
    int first = 0, gone = -1;
    if (atomic_load_explicit(&world->leavers, memory_order_relaxed) == 0)
        return -1;
    for (int r = 0; r < handle->ranks; r++) {
        const int when = atomic_load_explicit(&world->gone[handle->names[r]], memory_order_relaxed);
        if (when == 0 || (gone >= 0 && when > first))
            continue;
        first = when;
        gone = r;
    }
    return gone;
}
