#include "comm/engines/mpi/calls/error.h"
#include "comm/engines/mpi/calls/launcher.h"
#include "comm/engines/mpi/engine.h"
#include "comm/engines/mpi/world.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/options.h>

#define CALL "tsr_mpi_job_run"

struct tsr_mpi_job {
    tsr_context *context;
    int rank, size;
    bool ours; /* this job initialized MPI, and finalizes it */
    bool lost; /* a peer was lost: MPI_Finalize() would wait for it */
    tsr_mpi_losses losses;
};

/* How long ranks wait for one another at the end of a run in which a rank was lost: the others have
 * no reason to be later. */
#define LOST_MS 1000

/* How a rank's program ended. */
typedef struct ending {
    int32_t status;
    tsr_kept_sentence sentence;
} ending;

/* The arguments are those of the program, which some MPIs read; NULL is fine. */
static tsr_status initialize(int argc, char **argv, bool *ours)
{
    int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (finalized)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_mpi_job_create: MPI is finalized, and may not be initialized again");
    if (initialized)
        return TSR_OK;
    TSR_TRY(tsr_mpi_check(MPI_Init_thread(argv ? &argc : NULL, argv ? &argv : NULL, MPI_THREAD_FUNNELED, &level),
                          "MPI_Init_thread"));
    if (level >= MPI_THREAD_FUNNELED) {
        *ours = true;
        /* MPICH reports errors of requests to this handler, whatever communicator they belong
         * to. */
        return tsr_mpi_check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    MPI_Finalize();
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "tsr_mpi_job_create: this MPI serves processes without threads alone; it takes "
                          "MPI_THREAD_FUNNELED");
}

static tsr_status make_job(tsr_context *context, int argc, char **argv, tsr_mpi_job **out)
{
    tsr_mpi_job *job;
    bool ours = false;
    TSR_TRY(tsr_allocate(context, sizeof *job, (void **)&job));
    tsr_status status = initialize(argc, argv, &ours);
    if (status == TSR_OK) {
        *job = (tsr_mpi_job){.context = context, .ours = ours};
        status = tsr_mpi_check(MPI_Comm_rank(MPI_COMM_WORLD, &job->rank), "MPI_Comm_rank");
    }
    if (status == TSR_OK)
        status = tsr_mpi_check(MPI_Comm_size(MPI_COMM_WORLD, &job->size), "MPI_Comm_size");
    if (status == TSR_OK)
        status = tsr_mpi_check_launcher("tsr_mpi_job_create");
    if (status != TSR_OK) {
        if (ours)
            MPI_Finalize();
        tsr_release(context, job);
        return status;
    }
    *out = job;
    return TSR_OK;
}

tsr_status tsr_mpi_job_create_with(int argc, char **argv, tsr_mpi_job **out)
{
    tsr_context *context;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mpi_job_create: out is NULL");
    TSR_TRY(tsr_mpi_check_package("tsr_mpi_job_create"));
    TSR_TRY(tsr_context_create(NULL, &context));
    const tsr_status status = make_job(context, argc, argv, out);
    if (status != TSR_OK)
        tsr_context_destroy(context);
    return status;
}

tsr_status tsr_mpi_job_create(tsr_mpi_job **out)
{
    return tsr_mpi_job_create_with(0, NULL, out);
}

void tsr_mpi_job_destroy(tsr_mpi_job *job)
{
    int finalized = 0;
    if (!job)
        return;
    tsr_context *context = job->context;
    MPI_Finalized(&finalized);
    if (job->ours && !job->lost && !finalized)
        MPI_Finalize();
    tsr_release(context, job);
    tsr_context_destroy(context);
}

int tsr_mpi_job_rank(const tsr_mpi_job *job)
{
    return job->rank;
}

int tsr_mpi_job_size(const tsr_mpi_job *job)
{
    return job->size;
}

/* The bytes behind the sentence are 0 too, since all of them are sent. */
static ending ending_of(tsr_status status)
{
    ending mine = {.status = (int32_t)status};
    if (status != TSR_OK)
        tsr_status_keep(&mine.sentence);
    return mine;
}

/* The least weight finds the rank whose ending counts: the lowest of those that failed for a reason
 * of their own, else of those that failed because of a peer, else of all. */
static int64_t weigh_ending(const tsr_mpi_job *job, const ending *mine)
{
    const int64_t grade = mine->status == TSR_OK ? 2 : mine->status == TSR_ERROR_PEER ? 1 : 0;
    return grade << 32 | job->rank;
}

/* Collective: `*cause` becomes the rank of least weight, and `*out` its ending, on all ranks. */
static tsr_status find_cause(const tsr_mpi_job *job, tsr_comm *witness, const ending *mine, int *cause, ending *out)
{
    const tsr_device host = tsr_device_host();
    int64_t weight = weigh_ending(job, mine);
    TSR_TRY(tsr_comm_all_reduce(witness, &weight, &weight, 1, TSR_I64, TSR_MIN, host, NULL));
    *cause = (int)(weight & INT32_MAX);
    *out = *mine;
    return tsr_comm_broadcast(witness, out, sizeof *out, TSR_U8, *cause, host, NULL);
}

/* Runs main over a communicator of its own. The thread's sentence is forgotten first, so that it is
 * not taken for one of main. */
static tsr_status run_main(tsr_mpi_job *job, tsr_rank_main *main, void *arg, const tsr_mpi_options *options)
{
    tsr_comm *comm;
    tsr_mpi_handle *handle;
    tsr_kept_sentence sentence;
    TSR_TRY(tsr_mpi_borrow_handle(CALL, MPI_COMM_WORLD, options, &job->losses, &handle, &comm));
    tsr_mpi_world *const world = handle->world;
    tsr_mpi_world_hold(world);
    tsr_status_forget();
    tsr_comm_retain(comm); /* main may destroy its handle */
    const tsr_status status = main(comm, arg);
    if (status == TSR_OK)
        tsr_status_keep(&sentence);
    else
        tsr_status_keep_returned(&sentence, status);
    tsr_comm_destroy(comm);
    tsr_comm_release(comm);
    atomic_store(&world->losses, NULL); /* communicators that main has split off may outlive the job */
    tsr_mpi_world_leave(world);
    return tsr_status_restore(&sentence, status);
}

/* After the witness has lost a rank: returns the failure of main, if main ran and failed, else that
 * of the witness, which names the rank. */
static tsr_status say_lost(tsr_mpi_job *job, const ending *mine, tsr_status status)
{
    const bool has_run = !job->losses.unmade;
    job->lost = true;
    if (mine->status != TSR_OK && has_run)
        return tsr_status_restore(&mine->sentence, (tsr_status)mine->status);
    return tsr_status_set(status, CALL ": %s", tsr_status_message());
}

/* Collective over the witness: every rank comes here, however its main ended. */
static tsr_status conclude_run(tsr_mpi_job *job, tsr_comm *witness, const ending *mine)
{
    ending theirs;
    int cause;
    const tsr_status status = find_cause(job, witness, mine, &cause, &theirs);
    if (status != TSR_OK)
        return say_lost(job, mine, status);
    job->lost = job->losses.unmade;
    return theirs.status == TSR_OK
               ? TSR_OK
               : tsr_status_set((tsr_status)theirs.status, "rank %d: %s", cause, theirs.sentence.text);
}

/* Runs main and agrees on the outcome over a second communicator, the witness, which nothing that
 * main does can break; it has the caller's timeout and context. */
static tsr_status run_witnessed(tsr_mpi_job *job, tsr_rank_main *main, void *arg, const tsr_mpi_options *options)
{
    tsr_mpi_options apart = TSR_MPI_OPTIONS_INIT;
    tsr_mpi_handle *handle;
    tsr_comm *witness;
    TSR_TRY(tsr_options_read(CALL, options, &apart, sizeof apart));
    apart.size = sizeof apart;
    job->losses = (tsr_mpi_losses){0};
    const tsr_status made = tsr_mpi_borrow_handle(CALL, MPI_COMM_WORLD, &apart, &job->losses, &handle, &witness);
    job->lost = job->losses.unmade;
    TSR_TRY(made);
    TSR_TRY(tsr_comm_hold(witness, CALL));
    const ending mine = ending_of(run_main(job, main, arg, options));
    if (job->losses.unmade || job->losses.missed)
        tsr_mpi_handle_hurry(handle, LOST_MS);
    const tsr_status status = tsr_comm_let_go(witness, conclude_run(job, witness, &mine));
    tsr_comm_destroy(witness);
    return status;
}

tsr_status tsr_mpi_job_run(tsr_mpi_job *job, tsr_rank_main *main, void *arg, const tsr_mpi_options *options)
{
    if (!job || !main)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is NULL", job ? "main" : "job");
    if (job->lost)
        return tsr_status_set(TSR_ERROR_STATE, CALL ": a rank was lost in an earlier run, and MPI would wait for it");
    return run_witnessed(job, main, arg, options);
}
