/* The engine mpi: ranks are processes, which a launcher started. */
#include "command.h"
#include "place/engines.h"
#include "place/held_log.h"

#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <stddef.h>
#include <stdio.h>

/* Room for any sentence of the library, NUL included. */
enum { REASON_BYTES = 1024 };

/* The MPI and the job of this process, which is one rank. */
static struct {
    bool tried, found;
    char reason[REASON_BYTES], version[256];
    tsr_context *context; /* of the job */
    tsr_job *job;
} mine;

static const char *missing(const cuda_facts *cuda)
{
    (void)cuda;
    if (!mine.tried) {
        const tsr_status status = tsr_job_mpi_version(NULL, mine.version, sizeof mine.version);
        mine.tried = true;
        mine.found = status == TSR_OK;
        if (!mine.found)
            snprintf(mine.reason, sizeof mine.reason, "%s", tsr_status_message());
        if (status == TSR_ERROR_MEMORY)
            say_memory_is_short();
    }
    return mine.found ? NULL : mine.reason;
}

static const char *version(const cuda_facts *cuda)
{
    return missing(cuda) || mine.version[0] == '\0' ? NULL : mine.version;
}

/* Ranks other than 0 are silent, since all would print the same lines. */
static bool be_silent(void)
{
    return freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
}

static tsr_status create_job(void)
{
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    const char *const reason = missing(NULL);
    if (reason)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "--engine mpi: %s", reason);
    if (!mine.context)
        TSR_TRY(held_log_context(&mine.context));
    options.context = mine.context;
    options.engine = "mpi";
    TSR_TRY(tsr_job_create(0, NULL, &options, &mine.job));
    if (tsr_job_rank(mine.job) > 0 && !be_silent())
        return tsr_status_set(TSR_ERROR_IO, "--engine mpi: /dev/null cannot be opened, for what only rank 0 is to say");
    return TSR_OK;
}

static tsr_status join(int *rank, int *ranks)
{
    if (!mine.job)
        TSR_TRY(create_job());
    *rank = tsr_job_rank(mine.job);
    *ranks = tsr_job_size(mine.job);
    return TSR_OK;
}

/* No memory is kept for the next run, as rank threads keep none. */
static tsr_status run_process(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda)
{
    (void)ranks;
    (void)cuda;
    const tsr_status status = tsr_job_run(mine.job, main, arg);
    tsr_context_trim(mine.context);
    return status;
}

static void leave(void)
{
    tsr_job_destroy(mine.job);
    mine.job = NULL;
    tsr_context_destroy(mine.context);
    mine.context = NULL;
}

const engine mpi_engine = {.name = "mpi",
                           .ranks = "ranks are processes, started by mpirun",
                           .missing = missing,
                           .version = version,
                           .join = join,
                           .run = run_process,
                           .leave = leave};
