/* Ranks that are threads of this process. */
#include "engines.h"

static const char *nothing(const cuda_facts *cuda)
{
    (void)cuda;
    return NULL;
}

static tsr_status run_threads(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda)
{
    (void)cuda;
    return tsr_threads_run(ranks, main, arg, NULL);
}

const engine threads_engine = {
    .name = "threads", .ranks = "ranks are threads of one process", .missing = nothing, .version = nothing, .run = run_threads};
