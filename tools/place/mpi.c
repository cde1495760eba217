/* The engine mpi: ranks are processes, which a launcher started. */
#include "command.h"
#include "place/engines.h"
#include "place/held_log.h"
#include "place/mpi_library.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

/* The MPI library and job of this process, which is one rank. */
static struct {
    bool tried, found;
    mpi_library library;
    char reason[MPI_REASON_BYTES], version[256];
    tsr_mpi_job *job;
} mine;

static const char *missing(const cuda_facts *cuda)
{
    (void)cuda;
    if (!mine.tried) {
        mine.tried = true;
        mine.found = mpi_library_open(&mine.library, mine.reason);
        if (!mine.found && errno == ENOMEM)
            say_memory_is_short();
    }
    return mine.found ? NULL : mine.reason;
}

static const char *version(const cuda_facts *cuda)
{
    if (missing(cuda) || mine.library.version_print(mine.version, sizeof mine.version) == 0)
        return NULL;
    return mine.version;
}

/* Ranks other than 0 are silent, since all would print the same lines. */
static bool be_silent(void)
{
    return freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
}

static tsr_status create_job(void)
{
    const char *const reason = missing(NULL);
    if (reason)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "--engine mpi: %s", reason);
    TSR_TRY(mpi_library_create_job(&mine.library, &mine.job));
    if (mine.library.job_rank(mine.job) > 0 && !be_silent())
        return tsr_status_set(TSR_ERROR_IO, "--engine mpi: /dev/null cannot be opened, for what only rank 0 is to say");
    return TSR_OK;
}

static tsr_status join(int *rank, int *ranks)
{
    if (!mine.job)
        TSR_TRY(create_job());
    *rank = mine.library.job_rank(mine.job);
    *ranks = mine.library.job_size(mine.job);
    return TSR_OK;
}

static tsr_status run_process(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    (void)ranks;
    (void)cuda;
    TSR_TRY(held_log_context(&options.context));
    const tsr_status status = mine.library.job_run(mine.job, main, arg, &options);
    tsr_context_destroy(options.context);
    return status;
}

static void leave(void)
{
    if (!mine.job)
        return;
    mine.library.job_destroy(mine.job);
    mine.job = NULL;
}

const engine mpi_engine = {.name = "mpi",
                           .ranks = "ranks are processes, started by mpirun",
                           .missing = missing,
                           .version = version,
                           .join = join,
                           .run = run_process,
                           .leave = leave};
