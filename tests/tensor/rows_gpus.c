/* Rank threads on GPUs; in a program with the emulation, on emulated ones, which run the kernels'
 * bodies. */
#include "gpus.h"
#include "ranks.h"
#include "rows_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const int rows_machine_share = 1;
const bool rows_machine_fails = false;

static gpus machine;

void rows_machine_run(int ranks, tsr_rank_main *body, void *arg)
{
    gpus_open(&machine);
    if (!machine.driver)
        return;
    run_ranks(ranks, body, arg);
    tsr_device_driver_destroy(machine.driver);
}

tsr_device rows_machine_device(int rank)
{
    return (tsr_device){machine.driver, rank % machine.count};
}

void rows_machine_fail(int nth)
{
    (void)nth;
}
