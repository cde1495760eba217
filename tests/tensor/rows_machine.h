/** Ranks whose memory is on devices. Each program of test_rows_on_devices.c has another machine. */
#ifndef TESTS_TENSOR_ROWS_MACHINE_H
#define TESTS_TENSOR_ROWS_MACHINE_H

#include <tessera/sys/comm.h>
#include <tessera/tensor.h>

#include <stdbool.h>

/** Runs `body` on `ranks` ranks, and fails the running test with the sentence of a rank that fails,
 * or with what the machine finds wrong; skips the test if there is no machine. */
void rows_machine_run(int ranks, tsr_rank_main *body, void *arg);

/** A rank's device. */
tsr_device rows_machine_device(int rank);

/** Of so many cases, one is tried. */
extern const int rows_machine_share;

/** With rows_machine_fails: the `nth` operation on devices from now on fails, of whatever kind; 0:
 * none. */
extern const bool rows_machine_fails;
void rows_machine_fail(int nth);

#endif
