#include "launch.h"

#include <tessera/sys/status.h>

#include <stdio.h>

bool example_begin(void)
{
    return tsr_launch_get().rank == 0 || (freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr));
}

static tsr_status run(int argc, char **argv, int ranks, tsr_rank_main *main, void *arg)
{
    const tsr_launch launch = tsr_launch_get();
    tsr_run_options options = TSR_RUN_OPTIONS_INIT;
    if (launch.ranks > 0 && ranks > 0 && ranks != launch.ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the options ask for %d ranks, but %s started %d", ranks,
                              launch.launcher, launch.ranks);
    options.ranks = ranks;
    TSR_TRY(tsr_run_with(argc, argv, main, arg, &options));
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return TSR_OK;
}

int example_run(const char *name, int argc, char **argv, int ranks, tsr_rank_main *main, void *arg)
{
    const tsr_status status = run(argc, argv, ranks, main, arg);
    if (status != TSR_OK)
        fprintf(stderr, "%s: %s\n", name, tsr_status_message());
    return status != TSR_OK;
}
