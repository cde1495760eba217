#include "halves.h"

#include "comm_suite.h"
#include "launched.h"
#include "nodes.h"

int halves_size(const tsr_comm *comm)
{
    return tsr_comm_size(comm) / HALVES;
}

static void run(tsr_rank_main *body, void *arg, int64_t timeout_ms, int no_sharing)
{
    const int ranks = launched_ranks() / HALVES * HALVES;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = timeout_ms;
    options.no_sharing = no_sharing;
    nodes_pretend(ranks / HALVES);
    const tsr_status status = launched_run_with(ranks, body, arg, &options);
    nodes_pretend(0);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

void halves_run(tsr_rank_main *body, void *arg, int64_t timeout_ms)
{
    run(body, arg, timeout_ms, 0);
}

void halves_run_by_messages(tsr_rank_main *body, int64_t timeout_ms)
{
    run(body, NULL, timeout_ms, 1);
}
