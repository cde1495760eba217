/* The engine threads: ranks are threads of this process. */
#include "place/engines.h"
#include "place/held_log.h"

#include <tessera/sys/status.h>

static const char *nothing(const cuda_facts *cuda)
{
    (void)cuda;
    return NULL;
}

static tsr_status run_threads(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    (void)cuda;
    TSR_TRY(held_log_context(&options.context));
    const tsr_status status = tsr_threads_run(ranks, main, arg, &options);
    tsr_context_destroy(options.context);
    return status;
}

const engine threads_engine = {.name = "threads",
                               .ranks = "ranks are threads of one process",
                               .missing = nothing,
                               .version = nothing,
                               .run = run_threads};
