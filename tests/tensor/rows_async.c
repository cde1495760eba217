/* Rank threads on three devices that do their work late and in an odd order, and have no kernels of
 * rows. */
#include "fixture.h"
#include "rows_machine.h"
#include "support.h"

const int rows_machine_share = 3;

static fixture machine;

void rows_machine_run(int ranks, tsr_rank_main *body, void *arg)
{
    fixture_start(&machine, ranks, (async_options){.devices = ranks < 3 ? ranks : 3, .lazy = ranks % 2 == 0});
    run_ranks(ranks, body, arg);
    fixture_finish(&machine);
}

tsr_device rows_machine_device(int rank)
{
    return fixture_device(&machine, rank);
}
