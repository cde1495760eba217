/* tessera-example-rows: learns the communities of a graph's nodes, with a table of learned rows
 * that ranks share. */
#include "options.h"

#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <stdio.h>

static tsr_status run(int argc, char **argv, options *o)
{
    const tsr_launch launch = tsr_launch_get();
    tsr_run_options how = TSR_RUN_OPTIONS_INIT;
    if (launch.ranks > 0 && o->ranks > 0 && o->ranks != launch.ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--ranks %d: %s started %d ranks", o->ranks, launch.launcher,
                              launch.ranks);
    how.ranks = o->ranks;
    TSR_TRY(tsr_run_with(argc, argv, training_run, &o->training, &how));
    if (fflush(stdout) != 0 || ferror(stdout))
        return tsr_status_set(TSR_ERROR_IO, "standard output cannot be written");
    return TSR_OK;
}

int main(int argc, char **argv)
{
    /* Of processes the first speaks for all. */
    const bool speaks = tsr_launch_get().rank == 0;
    if (!speaks && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
        return 1;
    options o;
    options_parse(argc, argv, &o);
    const tsr_status status = run(argc, argv, &o);
    if (status != TSR_OK)
        fprintf(stderr, "tessera-example-rows: %s\n", tsr_status_message());
    return status != TSR_OK;
}
