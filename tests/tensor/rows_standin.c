/* Ranks over NCCL's engine, on its stand-in, which refuses every misuse. */
#include "rows_machine.h"
#include "standin_ranks.h"

#include <tessera/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const int rows_machine_share = 1;
const bool rows_machine_fails = false;

void rows_machine_run(int ranks, tsr_rank_main *body, void *arg)
{
    if (standin_run(ranks, body, arg, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

tsr_device rows_machine_device(int rank)
{
    (void)rank;
    return standin_ranks_device();
}

void rows_machine_fail(int nth)
{
    (void)nth;
}
