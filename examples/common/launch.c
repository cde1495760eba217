#include "launch.h"

#include <tessera/sys/status.h>

#include <stdio.h>

bool example_begin(void)
{
    return tsr_launch_get().rank == 0 || (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr));
}

static tsr_status run(tsr_job *job, int ranks, tsr_rank_main *main, void *arg)
{
    const char *const launcher = tsr_launch_get().launcher;
    if (ranks > 0 && ranks != tsr_job_size(job))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the options ask for %d ranks, but %s started %d", ranks,
                              launcher ? launcher : "TSR_RANKS", tsr_job_size(job));
    TSR_TRY(tsr_job_run(job, main, arg));
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return TSR_OK;
}

static int fail(const char *name)
{
    fprintf(stderr, "%s: %s\n", name, tsr_status_message());
    return 1;
}

int example_run(const char *name, int argc, char **argv, int ranks, tsr_rank_main *main, void *arg)
{
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    tsr_job *job;
    options.ranks = ranks;
    if (tsr_job_create(argc, argv, &options, &job) != TSR_OK)
        return fail(name);
    /* Before ranks part: where a process ends with a failure, launchers kill the rest. */
    const int code = run(job, ranks, main, arg) == TSR_OK ? 0 : fail(name);
    tsr_job_destroy(job);
    return code;
}
