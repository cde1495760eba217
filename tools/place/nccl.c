/* The engine nccl: ranks are threads of this process with a GPU each, in a communicator of NCCL. */
#include "place/engines.h"
#include "place/held_log.h"

#include <tessera/sys/status.h>

#include <pthread.h>
#include <stdlib.h>

/* One run. NCCL does not tell peers of a rank that fails, so the failed rank aborts the
 * communicators of all ranks. */
typedef struct gathering {
    const cuda_facts *cuda;
    tsr_context *context;
    tsr_rank_main *main;
    void *arg;
    tsr_nccl_id id;
    pthread_mutex_t mutex;
    bool failed;
    tsr_comm **comms; /* one for each rank; NULL while it does not exist */
} gathering;

static const char *missing(const cuda_facts *cuda)
{
    if (cuda->count == 0)
        return cuda->reason;
    return !cuda->library.comm_create_nccl ? "libtessera-cuda was built without NCCL" : NULL;
}

static const char *version(const cuda_facts *cuda)
{
    return cuda->nccl[0] != '\0' ? cuda->nccl : NULL;
}

static void abort_all(gathering *g, int ranks)
{
    pthread_mutex_lock(&g->mutex);
    g->failed = true;
    for (int r = 0; r < ranks; r++)
        if (g->comms[r])
            tsr_comm_abort(g->comms[r]);
    pthread_mutex_unlock(&g->mutex);
}

/* Lists a rank's communicator, or takes it off the list (NULL). After a failure a new one is
 * aborted at once. */
static void list(gathering *g, int rank, tsr_comm *comm)
{
    pthread_mutex_lock(&g->mutex);
    g->comms[rank] = comm;
    if (comm && g->failed)
        tsr_comm_abort(comm);
    pthread_mutex_unlock(&g->mutex);
}

/* The barrier lets every rank get its GPU, or all fail, before any rank waits for peers in NCCL. */
static tsr_status take_gpu(const gathering *g, tsr_comm *seat)
{
    const int rank = tsr_comm_rank(seat), error = g->cuda->library.set_device(rank);
    if (error != 0)
        return tsr_status_set(TSR_ERROR_DEVICE, "--engine nccl: rank %d cannot use GPU %d: CUDA's error %d", rank, rank,
                              error);
    return tsr_comm_barrier(seat);
}

/* The sentence of a failure of g->main() is kept: abort and destroy may set another. */
static tsr_status run_rank(tsr_comm *seat, void *arg)
{
    gathering *const g = arg;
    const int rank = tsr_comm_rank(seat), ranks = tsr_comm_size(seat);
    tsr_nccl_options options = TSR_NCCL_OPTIONS_INIT;
    tsr_comm *comm;
    tsr_kept_sentence sentence;
    options.driver = g->cuda->driver;
    options.context = g->context;
    TSR_TRY(take_gpu(g, seat));
    TSR_TRY(g->cuda->library.comm_create_nccl(ranks, rank, &g->id, &options, &comm));
    list(g, rank, comm);
    const tsr_status status = g->main(comm, g->arg);
    tsr_status_keep(&sentence);
    if (status != TSR_OK)
        abort_all(g, ranks);
    list(g, rank, NULL);
    tsr_comm_destroy(comm);
    return tsr_status_restore(&sentence, status);
}

static tsr_status run_gathering(gathering *g, int ranks)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    TSR_TRY(g->cuda->library.nccl_id_create(&g->id));
    TSR_TRY(held_log_context(&g->context));
    options.context = g->context;
    const tsr_status status = tsr_threads_run(ranks, run_rank, g, &options);
    tsr_context_destroy(g->context);
    return status;
}

static tsr_status run_gpus(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda)
{
    gathering g = {.cuda = cuda, .main = main, .arg = arg, .mutex = PTHREAD_MUTEX_INITIALIZER};
    if (ranks > cuda->count)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE,
                              "--engine nccl: %d ranks take as many GPUs, and this process sees %d; with --engine "
                              "threads ranks share a GPU",
                              ranks, cuda->count);
    g.comms = calloc((size_t)ranks, sizeof *g.comms);
    if (!g.comms)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %d ranks", ranks);
    const tsr_status status = run_gathering(&g, ranks);
    free(g.comms);
    pthread_mutex_destroy(&g.mutex);
    return status;
}

const engine nccl_engine = {.name = "nccl",
                            .ranks = "ranks are GPUs",
                            .of_gpus = true,
                            .sends = true,
                            .missing = missing,
                            .version = version,
                            .run = run_gpus};
