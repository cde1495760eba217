#include "comm/engines/mpi/engine.h"

#include "comm/engines/mpi/calls/error.h"
#include "comm/engines/mpi/calls/launcher.h"
#include "comm/engines/mpi/exchange.h"
#include "comm/engines/mpi/notice.h"
#include "comm/engines/mpi/split.h"
#include "comm/engines/mpi/world.h"

#include <tessera/sys/log.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/options.h>

/* The most bytes of a piece: a round number that an int holds. */
#define MOST_CHUNK ((int64_t)1 << 30)

static int rank_of(void *self)
{
    return ((const tsr_mpi_handle *)self)->rank;
}

static int count_ranks(void *self)
{
    return ((const tsr_mpi_handle *)self)->ranks;
}

static int node_of(void *self, int rank)
{
    const tsr_mpi_handle *handle = self;
    return handle->world->first[handle->names[rank]];
}

static void abort_all(void *self)
{
    tsr_mpi_world *world = ((tsr_mpi_handle *)self)->world;
    tsr_mpi_world_abort(world, world->rank);
    if (tsr_mpi_may_speak())
        tsr_mpi_notice_abort(world);
}

static void tell_late(void *self, tsr_comm_late *late, void *arg)
{
    tsr_mpi_handle *handle = self;
    handle->late = handle->gate.late = (tsr_late_hook){late, arg};
}

static void mpi_leave(void *self)
{
    tsr_mpi_handle_leave(self);
}

static void mpi_destroy(void *self)
{
    tsr_mpi_handle_destroy(self);
}

static void *slot_of(void *self, int rank)
{
    return tsr_mpi_gate_slot(&((const tsr_mpi_handle *)self)->gate, rank);
}

/* After a meet that failed: sends notices of this rank's abort if the aborting thread could not,
 * and notes a loss. */
static tsr_status tell_why(tsr_mpi_handle *handle, tsr_status status)
{
    if (status != TSR_OK)
        tsr_mpi_notice_abort(handle->world);
    if (status != TSR_OK && tsr_mpi_gate_has_missed(&handle->gate))
        tsr_mpi_world_note_loss(handle->world);
    return status;
}

static tsr_status mpi_meet(void *self)
{
    tsr_mpi_handle *handle = self;
    return tell_why(handle, tsr_mpi_gate_meet(&handle->gate));
}

static tsr_status mpi_arrive(void *self)
{
    tsr_mpi_gate_arrive(&((tsr_mpi_handle *)self)->gate);
    return TSR_OK;
}

static tsr_status mpi_await(void *self)
{
    tsr_mpi_handle *handle = self;
    return tell_why(handle, tsr_mpi_gate_await(&handle->gate));
}

static tsr_status alloc(void *self, size_t bytes, void **out)
{
    return tsr_mpi_node_alloc(((tsr_mpi_handle *)self)->node, bytes, out);
}

static void mpi_free(void *self, void *memory, size_t bytes)
{
    (void)bytes;
    tsr_mpi_node_free(((tsr_mpi_handle *)self)->node, memory);
}

static int shares(void *self, const void *memory, size_t bytes)
{
    return tsr_mpi_node_holds(((const tsr_mpi_handle *)self)->node, memory, bytes);
}

static int life(void *self, int rank)
{
    const tsr_mpi_handle *handle = self;
    const tsr_mpi_resident *const resident =
        tsr_mpi_resident_find(tsr_mpi_node_residents(handle->world->node), handle->names[rank]);
    return resident ? (int)tsr_mpi_resident_life(resident) : TSR_MPI_RUNS;
}

static const tsr_comm_messages mpi_messages = {
    .size = sizeof(tsr_comm_messages),
    .exchange = tsr_mpi_exchange_all,
    .barrier = tsr_mpi_barrier,
    .start = tsr_mpi_exchange_start,
    .finish = tsr_mpi_exchange_finish,
};

static const tsr_comm_direct mpi_direct = {
    .size = sizeof(tsr_comm_direct),
    .slot = slot_of,
    .meet = mpi_meet,
    .arrive = mpi_arrive,
    .await = mpi_await,
    .life = life,
};

static const tsr_comm_memory mpi_memory = {
    .size = sizeof(tsr_comm_memory),
    .alloc = alloc,
    .free = mpi_free,
    .leave = mpi_leave,
    .shares = shares,
};

static const tsr_comm_nodes mpi_nodes = {.size = sizeof(tsr_comm_nodes), .node_of = node_of};
static const tsr_comm_nodes mpi_direct_nodes = {.size = sizeof(tsr_comm_nodes), .node_of = node_of, .direct = 1};

/* A group within a node is direct, also if its world is not. Memory that ranks of a node allocate
 * is shared in both cases. */
static void tell_table(void *self, tsr_comm_table *out)
{
    const tsr_mpi_handle *handle = self;
    const tsr_mpi_options *options = &handle->world->options;
    *out = (tsr_comm_table){
        .size = sizeof *out,
        .name = "mpi",
        .flags = options->unchecked ? TSR_COMM_UNCHECKED : 0,
        .rank = rank_of,
        .ranks = count_ranks,
        .abort = abort_all,
        .destroy = mpi_destroy,
        .split = options->no_split ? NULL : tsr_mpi_split,
        .tell_table = tell_table,
        .tell_late = tell_late,
        .messages = &mpi_messages,
        .memory = handle->world->node ? &mpi_memory : NULL,
    };
    if (handle->gated)
        out->direct = &mpi_direct;
    else
        out->nodes = handle->world->shares ? &mpi_direct_nodes : &mpi_nodes;
}

static tsr_status check_mpi(const char *call)
{
    int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE, is_main = 1;
    TSR_TRY(tsr_mpi_check_package(call));
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return tsr_status_set(TSR_ERROR_STATE, "%s: MPI is %s", call,
                              finalized ? "finalized"
                                        : "not initialized: call MPI_Init_thread() first, or tsr_mpi_job_create()");
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
        MPI_Is_thread_main(&is_main);
    if (!is_main)
        return tsr_status_set(
            TSR_ERROR_STATE,
            "%s: MPI was initialized for its main thread alone, and this is another: ask MPI_Init_thread() for "
            "MPI_THREAD_SERIALIZED or more",
            call);
    return tsr_mpi_check_launcher(call);
}

static tsr_status check_comm(const char *call, MPI_Comm comm)
{
    int inter = 0;
    if (comm == MPI_COMM_NULL)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is MPI_COMM_NULL", call);
    TSR_TRY(tsr_mpi_check(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter"));
    if (inter)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: comm is an inter-communicator; merge it with MPI_Intercomm_merge() first", call);
    return TSR_OK;
}

static tsr_status read_options(const char *call, const tsr_mpi_options *given, tsr_mpi_options *options)
{
    TSR_TRY(tsr_options_read(call, given, options, sizeof *options));
    if (options->timeout_ms < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.timeout_ms is %lld; 0 waits for ever", call,
                              (long long)options->timeout_ms);
    if (options->chunk_bytes < 0 || options->chunk_bytes > MOST_CHUNK)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: options.chunk_bytes is %lld; it must be 1 to %lld, or 0 for the largest", call,
                              (long long)options->chunk_bytes, (long long)MOST_CHUNK);
    if (options->chunk_bytes == 0)
        options->chunk_bytes = MOST_CHUNK;
    return TSR_OK;
}

/* How ranks lie on nodes. */
typedef struct topology {
    int ranks, *first; /* `first`: one per rank, the lowest rank of its node */
    tsr_mpi_mates mates;
    bool shares; /* on every node the ranks share memory */
} topology;

/* `lost`: some ranks did not come, or do not free the communicator now, and freeing it might wait
 * for them: it is left to MPI_Finalize(). */
static void free_comm(MPI_Comm *comm, bool lost)
{
    if (*comm != MPI_COMM_NULL && !lost)
        MPI_Comm_free(comm);
}

static void free_topology(const tsr_mpi_together *together, topology *t)
{
    tsr_mpi_mates_free(together, &t->mates);
    tsr_release(together->context, t->first);
}

/* Fills t->first and t->mates; free_topology() frees them, also after an error. */
static tsr_status find_nodes(const tsr_mpi_together *together, MPI_Comm comm, topology *t)
{
    void *first = NULL;
    TSR_TRY(tsr_mpi_check(MPI_Comm_size(comm, &t->ranks), "MPI_Comm_size"));
    const bool able = tsr_allocate(together->context, (size_t)t->ranks * sizeof *t->first, &first) == TSR_OK;
    t->first = able ? first : NULL;
    return tsr_mpi_mates_find(together, comm, t->first, &t->mates);
}

/* Collective: `local` if it is a failure, TSR_ERROR_PEER if another rank's is, else TSR_OK. */
static tsr_status agree_on(const tsr_mpi_together *together, MPI_Comm comm, tsr_status local)
{
    int64_t all = 0;
    tsr_kept_sentence sentence;
    tsr_status_keep(&sentence);
    const tsr_status agreed = tsr_mpi_least(together, comm, local == TSR_OK, &all);
    if (local != TSR_OK)
        return tsr_status_restore(&sentence, local);
    TSR_TRY(agreed);
    return all ? TSR_OK
               : tsr_status_set(TSR_ERROR_PEER, "%s: another rank has no memory for a communicator", together->call);
}

/* Collective: makes the world's first handle, for all its ranks. On failure the world is
 * destroyed. */
static tsr_status make_handle(const tsr_mpi_together *together, tsr_mpi_world *world, tsr_mpi_handle **out)
{
    tsr_mpi_handle *handle = NULL;
    tsr_status status = agree_on(together, world->comm, tsr_mpi_handle_create(world, world->ranks, &handle));
    if (status != TSR_OK) {
        if (handle)
            tsr_mpi_handle_destroy(handle);
        else
            tsr_mpi_world_destroy(world);
        return status;
    }
    status = tsr_mpi_seat_all(together, handle);
    if (status == TSR_OK)
        *out = handle;
    else
        tsr_mpi_handle_abandon(handle);
    return status;
}

/* Collective: makes the shared memory of this node, unless a rank has set no_sharing, and sets
 * t->shares. */
static tsr_status share_memory(const tsr_mpi_together *together, MPI_Comm comm, topology *t,
                               const tsr_mpi_options *options, tsr_mpi_node **node)
{
    char reason[256] = "a rank set options.no_sharing";
    int64_t sharing = 0;
    int rank;
    TSR_TRY(tsr_mpi_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank"));
    TSR_TRY(tsr_mpi_least(together, comm, !options->no_sharing, &sharing));
    if (sharing)
        TSR_TRY(tsr_mpi_node_create(together, &t->mates, node, reason));
    if (!*node)
        tsr_log(together->context, sharing ? TSR_LOG_WARN : TSR_LOG_INFO,
                "%s: rank %d of %d shares no memory, and sends messages: %s", together->call, rank, t->ranks, reason);
    TSR_TRY(tsr_mpi_least(together, comm, *node != NULL, &sharing));
    t->shares = sharing != 0;
    return TSR_OK;
}

/* Collective: ranks that differ in this option would make different calls. */
static tsr_status compare_flag(const tsr_mpi_together *together, MPI_Comm comm, const char *name, int flag)
{
    int64_t least_set = 0, least_unset = 0;
    TSR_TRY(tsr_mpi_least(together, comm, flag != 0, &least_set));
    TSR_TRY(tsr_mpi_least(together, comm, flag == 0, &least_unset));
    if (least_set || least_unset)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: options.%s is %d on this rank and %d on others; give all ranks the same", together->call,
                          name, flag != 0, flag == 0);
}

static tsr_status compare_options(const tsr_mpi_together *together, MPI_Comm comm, const tsr_mpi_options *options)
{
    TSR_TRY(compare_flag(together, comm, "no_split", options->no_split));
    return compare_flag(together, comm, "unchecked", options->unchecked);
}

/* Collective: finds out which ranks share memory. The caller frees `*t` and `*node`, after an error
 * too. */
static tsr_status survey(const tsr_mpi_together *together, MPI_Comm comm, const tsr_mpi_options *options, topology *t,
                         tsr_mpi_node **node)
{
    TSR_TRY(tsr_mpi_check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    TSR_TRY(compare_options(together, comm, options));
    TSR_TRY(find_nodes(together, comm, t));
    return share_memory(together, comm, t, options, node);
}

/* Collective: makes the world. Takes over `comm`, on failure too. */
static tsr_status make_world(const tsr_mpi_together *together, MPI_Comm comm, const tsr_mpi_options *options,
                             tsr_mpi_world **out)
{
    tsr_mpi_node *node = NULL;
    tsr_mpi_world *world = NULL;
    topology t = {0};
    const tsr_status surveyed = survey(together, comm, options, &t, &node);
    tsr_status status = surveyed;
    if (status == TSR_OK)
        status =
            agree_on(together, comm, tsr_mpi_world_create(together->context, comm, options, node, &t.first, &world));
    const bool lost = status != TSR_OK && (surveyed == TSR_OK || surveyed == TSR_ERROR_PEER);
    if (status == TSR_OK) {
        world->shares = t.shares;
        *out = world;
    } else if (world) {
        tsr_mpi_world_destroy(world);
    } else {
        free_comm(&comm, lost);
    }
    if (node)
        tsr_mpi_node_release(node);
    free_topology(together, &t);
    return status;
}

/* Makes the communicator. Takes over the handle, on failure too. */
static tsr_status wrap_handle(const tsr_mpi_together *together, tsr_mpi_handle *handle, tsr_comm **out)
{
    tsr_comm_table table;
    tell_table(handle, &table);
    const tsr_status status = tsr_comm_create_from_table(together->context, &table, handle, out);
    if (status != TSR_OK)
        tsr_mpi_handle_destroy(handle);
    return status;
}

/* Collective. The world is held until all ranks know the outcome of the last step, which is
 * compared over its MPI communicator. */
static tsr_status make_first_comm(const tsr_mpi_together *together, MPI_Comm comm, const tsr_mpi_options *options,
                                  tsr_mpi_handle **out_handle, tsr_comm **out)
{
    tsr_mpi_world *world = NULL;
    tsr_mpi_handle *handle = NULL;
    tsr_comm *made = NULL;
    TSR_TRY(make_world(together, comm, options, &world));
    TSR_TRY(make_handle(together, world, &handle));
    tsr_mpi_world_hold(world);
    world->losses = together->losses;
    const tsr_status status = agree_on(together, world->comm, wrap_handle(together, handle, &made));
    if (status == TSR_OK) {
        *out = made;
        *out_handle = handle;
    } else {
        tsr_comm_destroy(made);
    }
    tsr_mpi_world_leave(world);
    return status;
}

tsr_status tsr_mpi_borrow_handle(const char *call, MPI_Comm comm, const tsr_mpi_options *given, tsr_mpi_losses *losses,
                                 tsr_mpi_handle **handle, tsr_comm **out)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    MPI_Comm own;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", call);
    TSR_TRY(read_options(call, given, &options));
    TSR_TRY(check_mpi(call));
    TSR_TRY(check_comm(call, comm));
    tsr_context *context = options.context;
    if (context)
        tsr_context_retain(context);
    else
        TSR_TRY(tsr_context_create(NULL, &context));
    options.timeout_ms = tsr_context_timeout_ms(context, options.timeout_ms);
    const tsr_mpi_together together = {call, context, options.timeout_ms, losses};
    tsr_status status = tsr_mpi_duplicate(&together, comm, &own);
    if (status == TSR_OK)
        status = make_first_comm(&together, own, &options, handle, out);
    tsr_context_destroy(context);
    return status;
}

tsr_status tsr_mpi_borrow(const char *call, MPI_Comm comm, const tsr_mpi_options *given, tsr_mpi_losses *losses,
                          tsr_comm **out)
{
    tsr_mpi_handle *handle;
    return tsr_mpi_borrow_handle(call, comm, given, losses, &handle, out);
}
