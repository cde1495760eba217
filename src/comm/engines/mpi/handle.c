#include "comm/engines/mpi/handle.h"

#include "comm/engines/mpi/calls/error.h"
#include "comm/engines/mpi/calls/leftover.h"
#include "comm/engines/mpi/exchange.h"
#include "comm/engines/mpi/notice.h"
#include "comm/engines/mpi/world.h"

#include <tessera/sys/memory.h>

#include <string.h>

/* How long a rank that leaves waits for all others at a barrier. */
#define FAREWELL_MS 100

void tsr_mpi_handle_hurry(tsr_mpi_handle *handle, int64_t timeout_ms)
{
    int64_t *const limit = &handle->world->options.timeout_ms;
    if (*limit == 0 || *limit > timeout_ms)
        *limit = timeout_ms;
    tsr_mpi_gate_hurry(&handle->gate, timeout_ms);
}

/* True if all ranks come to a barrier in time; else `*barrier` is its request. Looks once more when
 * the time is over, since this process may not have run meanwhile. */
static bool all_come(const tsr_mpi_world *world, MPI_Request *barrier)
{
    int done = 0;
    if (MPI_Ibarrier(world->comm, barrier) != MPI_SUCCESS)
        return false;
    const tsr_deadline deadline = tsr_deadline_in(FAREWELL_MS);
    for (int look = 0;; look++) {
        const bool last = tsr_deadline_passed(deadline);
        if (MPI_Test(barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done || last)
            return done;
        tsr_pause(look);
    }
}

/*
 * If all ranks come to a barrier, all leave in peace, and nothing is under way but the departure
 * notices of ranks that did not learn in time that all had come. Such a rank does not come to a
 * second barrier. So if all come to that too, there are no notices, and none will be sent, even if
 * some rank does not learn that all came. A rank that left before the others came finishes the
 * barriers in MPI_Finalize() (calls/leftover.h).
 */
static void leave_mpi(tsr_mpi_world *world)
{
    tsr_mpi_leftover rest = {.comm = world->comm, .barrier = MPI_REQUEST_NULL};
    tsr_mpi_notice_abort(world);
    const bool lost = world->broken || tsr_mpi_world_aborter(world) >= 0, met = !lost && all_come(world, &rest.barrier);
    if (met && (!world->apart || all_come(world, &rest.barrier))) {
        MPI_Comm_free(&world->comm);
        return;
    }
    if (!met)
        tsr_mpi_notice_departure(world);
    rest.again = !lost && !met && world->apart;
    tsr_mpi_leftover_keep(&rest);
}

/* An MPI communicator over which other ranks may still send is left to MPI_Finalize(), so that MPI
 * does not reuse its id. Memory that MPI still uses is left too, with the context that it is
 * from. */
void tsr_mpi_world_destroy(tsr_mpi_world *world)
{
    tsr_context *context = world->context;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized)
        leave_mpi(world);
    const bool empty = !world->graves || (!finalized && tsr_mpi_exchange_dig(world));
    if (world->node)
        tsr_mpi_node_release(world->node);
    tsr_release(context, world->first);
    tsr_release(context, world->gone);
    tsr_release(context, world);
    if (empty)
        tsr_context_destroy(context);
}

static tsr_status set_up(tsr_mpi_world *world)
{
    int *bound = NULL, found = 0, level = MPI_THREAD_MULTIPLE;
    MPI_Query_thread(&level);
    world->alone = level <= MPI_THREAD_FUNNELED;
    TSR_TRY(tsr_mpi_check(MPI_Comm_rank(world->comm, &world->rank), "MPI_Comm_rank"));
    TSR_TRY(tsr_mpi_check(MPI_Comm_size(world->comm, &world->ranks), "MPI_Comm_size"));
    TSR_TRY(tsr_mpi_check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr"));
    /* MPI keeps this attribute at MPI_COMM_WORLD alone. */
    const int tags = found ? *bound : 32767, slots = (tags - TSR_MPI_TAGS + 1) / TSR_MPI_TAGS + 1;
    world->slots = slots < TSR_MPI_SLOTS ? slots : TSR_MPI_SLOTS;
    return TSR_OK;
}

/* Makes `gone`, with no departures, and sets `apart`. */
static tsr_status list_gone(tsr_context *context, tsr_mpi_world *world)
{
    TSR_TRY(tsr_allocate(context, (size_t)world->ranks * sizeof *world->gone, (void **)&world->gone));
    for (int r = 0; r < world->ranks; r++) {
        atomic_init(&world->gone[r], 0);
        world->apart = world->apart || !tsr_mpi_world_is_mate(world, r);
    }
    return TSR_OK;
}

tsr_status tsr_mpi_world_create(tsr_context *context, MPI_Comm comm, const tsr_mpi_options *options, tsr_mpi_node *node,
                                int **first, tsr_mpi_world **out)
{
    tsr_mpi_world *world;
    TSR_TRY(tsr_allocate(context, sizeof *world, (void **)&world));
    *world = (tsr_mpi_world){.comm = comm, .options = *options, .first = *first, .node = node};
    tsr_status status = set_up(world);
    if (status == TSR_OK)
        status = list_gone(context, world);
    if (status != TSR_OK) {
        tsr_release(context, world);
        return status;
    }
    *first = NULL;
    world->context = tsr_context_retain(context);
    if (node)
        tsr_mpi_node_retain(node);
    *out = world;
    return TSR_OK;
}

static void free_arrays(tsr_mpi_handle *handle)
{
    tsr_context *context = handle->context;
    tsr_mpi_exchange_free(handle);
    tsr_release(context, handle->counts[0]);
    tsr_release(context, handle->steps);
    tsr_release(context, handle->names);
    tsr_release(context, handle->posts);
}

static void free_handle(tsr_mpi_handle *handle)
{
    free_arrays(handle);
    tsr_release(handle->context, handle);
}

void tsr_mpi_world_hold(tsr_mpi_world *world)
{
    __atomic_add_fetch(&world->handles, 1, __ATOMIC_RELAXED);
}

void tsr_mpi_world_leave(tsr_mpi_world *world)
{
    if (__atomic_sub_fetch(&world->handles, 1, __ATOMIC_ACQ_REL) == 0)
        tsr_mpi_world_destroy(world);
}

static void leave_world(tsr_mpi_handle *handle)
{
    tsr_mpi_world *world = handle->world;
    free_handle(handle);
    tsr_mpi_world_leave(world);
}

void tsr_mpi_handle_leave(tsr_mpi_handle *handle)
{
    tsr_mpi_world *world = handle->world;
    if (handle->exchange.started) {
        world->broken = handle->broken = true;
        tsr_mpi_exchange_drop(handle);
    }
    tsr_mpi_gate_leave(&handle->gate);
    tsr_mpi_trays_leave(&handle->trays);
    if (!handle->broken)
        tsr_mpi_world_free_slot(world, handle->slot);
    tsr_context_retain(handle->context);
    if (handle->node)
        tsr_mpi_node_retain(handle->node);
    handle->left = true;
    free_arrays(handle);
    tsr_mpi_world_leave(world);
}

void tsr_mpi_handle_destroy(tsr_mpi_handle *handle)
{
    tsr_context *context = handle->context;
    if (!handle->left)
        tsr_mpi_handle_leave(handle);
    if (handle->node)
        tsr_mpi_node_release(handle->node);
    tsr_release(context, handle);
    tsr_context_destroy(context);
}

void tsr_mpi_handle_abandon(tsr_mpi_handle *handle)
{
    handle->world->broken = true;
    tsr_mpi_gate_abandon(&handle->gate);
    tsr_mpi_trays_abandon(&handle->trays);
    leave_world(handle);
}

static tsr_status furnish(tsr_mpi_handle *handle, int ranks)
{
    tsr_mpi_world *world = handle->world;
    TSR_TRY(tsr_allocate(world->context, (size_t)ranks * sizeof *handle->posts, (void **)&handle->posts));
    TSR_TRY(tsr_allocate(world->context, (size_t)ranks * sizeof *handle->names, (void **)&handle->names));
    TSR_TRY(tsr_allocate(world->context, (size_t)ranks * sizeof *handle->steps, (void **)&handle->steps));
    TSR_TRY(tsr_allocate(world->context, 4 * (size_t)ranks * sizeof *handle->counts[0], (void **)&handle->counts[0]));
    memset(handle->counts[0], 0, 4 * (size_t)ranks * sizeof *handle->counts[0]);
    handle->counts[1] = handle->counts[0] + ranks;
    handle->over[0] = handle->counts[1] + ranks;
    handle->over[1] = handle->over[0] + ranks;
    TSR_TRY(tsr_mpi_exchange_reserve(handle, 2 * (size_t)ranks));
    if (!world->node)
        return TSR_OK;
    TSR_TRY(tsr_mpi_trays_prepare(&handle->trays, world->node, world->context, ranks));
    return tsr_mpi_gate_take_seat(&handle->gate, world->node, world->context, ranks, world->rank, world->alone,
                                  world->options.timeout_ms);
}

tsr_status tsr_mpi_handle_create(tsr_mpi_world *world, int ranks, tsr_mpi_handle **out)
{
    tsr_mpi_handle *handle;
    TSR_TRY(tsr_allocate(world->context, sizeof *handle, (void **)&handle));
    *handle =
        (tsr_mpi_handle){.world = world, .context = world->context, .node = world->node, .slot = -1, .ranks = ranks};
    const tsr_status status = furnish(handle, ranks);
    if (status != TSR_OK) {
        tsr_mpi_trays_leave(&handle->trays);
        free_handle(handle);
        return status;
    }
    tsr_mpi_world_hold(world);
    *out = handle;
    return TSR_OK;
}
