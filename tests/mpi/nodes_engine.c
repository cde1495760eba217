#include "comm_suite.h"
#include "launched.h"
#include "nodes.h"

/* Nodes of unequal size, with one rank more in the second than in the first where ranks are odd, and none alone where there are four. */
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
