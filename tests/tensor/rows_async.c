/* Rank threads on three devices that do their work late and in an odd order, and have no kernels of
 * rows. */
#include "fixture.h"
#include "rows_machine.h"
#include "support.h"

const int rows_machine_share = 3;
const bool rows_machine_fails = true;

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

/* Kinds take turns, so that each is tried at each of its first calls. */
void rows_machine_fail(int nth)
{
    static const async_call kinds[] = {ASYNC_ALLOC,  ASYNC_COPY,    ASYNC_COPY_BOXES,
                                       ASYNC_REDUCE, ASYNC_CONVERT, ASYNC_SYNCHRONIZE};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int i = 0; i < KINDS; i++)
        async_fail(machine.machine, kinds[i], nth > 0 && nth % KINDS == i ? 1 + nth / KINDS : 0);
}
