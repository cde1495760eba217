#include "queued_trial.h"

#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { DEVICES = 2 };

void queued_start(queued_trial *t, const tsr_device_table *table, bool lazy)
{
    const async_options options = {.devices = DEVICES, .seed = 31, .lazy = lazy};
    t->machine = async_create(&options);
    assert_non_null(t->machine);
    t->on = (device_running){.devices = DEVICES, .held_up = async_held_up};
    assert_int_equal(tsr_device_driver_create(table, t->machine, &t->on.driver), TSR_OK);
}

void queued_stop(queued_trial *t)
{
    const char *const fault = async_fault(t->machine);
    if (fault)
        fail_msg("%s", fault);
    tsr_device_driver_destroy(t->on.driver);
    async_destroy(t->machine);
}

void queued_run(queued_trial *t, tsr_rank_main *body)
{
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.timeout_ms = 20000;
    const tsr_status status = tsr_threads_run(support_count_ranks(t->mesh), body, t, &threads);
    if (status != TSR_OK)
        fail_msg("mesh %s: %s: %s", t->mesh, tsr_status_name(status), tsr_status_message());
}
