#include "comm_suite.h"
#include "launched.h"
#include "nodes.h"

/* Two pretended nodes: with an odd number of ranks the second has one more than the first, and with
 * four ranks each has two or more. */
static tsr_status run_over_nodes(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    nodes_pretend(nranks > 2 ? nranks / 2 : 0);
    const tsr_status status = launched_run(nranks, body, arg, options);
    nodes_pretend(0);
    return status;
}

const comm_engine suite_engines[] = {
    {"nodes", run_over_nodes, false, false, true, launched_rank},
    {0},
};
