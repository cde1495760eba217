/** A program under test on devices that run work later, in any order that streams and events
 * allow. */
#ifndef TESTS_OPS_PROGRAMS_QUEUED_TRIAL_H
#define TESTS_OPS_PROGRAMS_QUEUED_TRIAL_H

#include "async_ops.h"
#include "device_running.h"

/** A program under test. */
typedef struct queued_trial {
    const device_case *c;
    const char *mesh;
    device_running on;
    async_machine *machine;
} queued_trial;

/** Makes the machine, of two devices, and the driver. */
void queued_start(queued_trial *t, const tsr_device_table *table, bool lazy);

/** Fails the test if the machine found a fault. */
void queued_stop(queued_trial *t);

/** Runs `body`, whose argument is the trial, on the ranks of the trial's mesh. */
void queued_run(queued_trial *t, tsr_rank_main *body);

#endif
